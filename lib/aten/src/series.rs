//! Series of functions that decompositions and the targets' own rules both compute.

/// Lanczos' series for the gamma function with `g = 7` and nine terms: the constant, and those over `x + k`.
pub const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];
