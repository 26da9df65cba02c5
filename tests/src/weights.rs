//! Weights made by a counter: every element is a hash of its tensor's number and its own, so that a model of any size
//! can be written, checked or recomputed anywhere without storing it. `tests/fixtures/make/weights.py` is the same
//! definition for PyTorch, and a test holds the two together bit for bit.

/// The number of the first user input; the tensors of a program's state count from 0 in signature order.
pub const FIRST_INPUT: u64 = 1 << 32;

/// The range of inputs, of unit variance: the square root of 3 on either side.
pub const INPUT_RANGE: (f64, f64) = (-1.732_050_807_568_877_2, 1.732_050_807_568_877_2);

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a bijection of 64-bit words.
pub const fn splitmix64(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The uniform number in `[0, 1)` with 24 bits that belongs to element `element` of tensor `tensor`.
pub fn uniform(tensor: u64, element: u64) -> f64 {
    let bits = splitmix64(splitmix64(tensor) ^ element) >> 40;
    bits as f64 / f64::from(1u32 << 24)
}

/// The range that a tensor's elements are drawn from, chosen by what the tensor is for so that activations neither
/// vanish nor overflow: the last component of its name and its shape decide.
///
/// * `running_var`: `[0.5, 1.5)`; `running_mean` and every bias: `[-0.1, 0.1)`;
/// * a vector `weight` (a normalisation's scale): `[0.75, 1.25)`;
/// * any other tensor (`[out, in, ...]`): `±sqrt(3 / fan_in)`, of variance `1 / fan_in`.
pub fn range(name: &str, shape: &[u64]) -> (f64, f64) {
    match (name.rsplit('.').next().unwrap_or(name), shape.len()) {
        ("running_var", _) => (0.5, 1.5),
        ("running_mean" | "bias", _) => (-0.1, 0.1),
        ("weight", 0 | 1) => (0.75, 1.25),
        _ => {
            let fan_in: u64 = shape.iter().skip(1).product();
            let bound = (3.0 / fan_in.max(1) as f64).sqrt();
            (-bound, bound)
        }
    }
}

/// Element `element` of tensor `tensor`, drawn from `range`; whoever stores it rounds it to the tensor's dtype.
pub fn value(tensor: u64, element: u64, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * uniform(tensor, element)
}
