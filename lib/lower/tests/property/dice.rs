//! Numbers of a case: each is a function of the seed, the family, the case and how many were drawn before it, so that a
//! case is the same whichever others run.

use m2m_record::DType;

/// Draws numbers.
pub struct Dice {
    key: u64,
    count: u64,
}

/// Which numbers elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Floats close to normal, a quarter of them multiples of a quarter; integers from -6 to 6.
    Plain,
    /// Plain, with NaN, infinities, zeros of both signs and the largest numbers among them.
    Special,
    /// No two alike, in any order.
    Distinct,
    /// From 1/4 to below 4; integers from 1 to 4.
    Positive,
    /// From 0 to below 1.
    Unit,
    /// Integers from the first to below the second.
    Between(i64, i64),
}

/// The finalizer of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Dice {
    /// The dice of a case's `attempt`.
    pub fn new(seed: u64, family: &str, case: u64, attempt: u64) -> Self {
        let text = family.bytes().fold(mix(seed), |key, byte| mix(key ^ u64::from(byte)));
        Dice { key: mix(mix(text ^ case) ^ attempt), count: 0 }
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        mix(self.key.wrapping_add(self.count.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// From `low` to below `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % high.abs_diff(low).max(1)).cast_signed()
    }

    /// True once in so many times.
    pub fn once_in(&mut self, sides: i64) -> bool {
        self.between(0, sides) == 0
    }

    /// One of several.
    pub fn one<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.between(0, items.len() as i64) as usize].clone()
    }

    /// All of several, in any order.
    pub fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for k in (1..items.len()).rev() {
            let other = self.between(0, k as i64 + 1) as usize;
            items.swap(k, other);
        }
        items
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 40) as f64 / f64::from(1 << 24)
    }

    fn plain(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.unit()).sum();
        let number = (sum - 3.0) * 1.5;
        if self.once_in(4) { (number * 4.0).round() / 4.0 } else { number }
    }

    /// Row-major little-endian elements.
    pub fn elements(&mut self, dtype: DType, count: usize, range: Range) -> Vec<u8> {
        if range == Range::Distinct {
            let numbers = self.shuffled((0..count as i64).collect());
            let middle = count as i64 / 2;
            return numbers.into_iter().flat_map(|n| bytes(dtype, n as f64 / 2.0 - 1.0, n - middle)).collect();
        }
        (0..count).flat_map(|_| self.element(dtype, range)).collect()
    }

    fn element(&mut self, dtype: DType, range: Range) -> Vec<u8> {
        if dtype == DType::Bool {
            return vec![u8::from(self.once_in(2))];
        }
        let lowest = if is_unsigned(dtype) { 0 } else { -6 };
        let (real, whole) = match range {
            Range::Special if self.once_in(3) => {
                let largest = if dtype == DType::F16 { 65504.0 } else { 3e38 };
                let real = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, largest, -largest, 0.5, -1.0];
                let (least, most) = limits(dtype);
                (self.one(&real), self.one(&[least, most, 0, 1]))
            }
            Range::Plain | Range::Special | Range::Distinct => (self.plain(), self.between(lowest, 7)),
            Range::Positive => (0.25 + 3.75 * self.unit(), self.between(1, 5)),
            Range::Unit => (self.unit(), self.between(0, 2)),
            Range::Between(low, high) => {
                let whole = self.between(low, high);
                (whole as f64, whole)
            }
        };
        bytes(dtype, real, whole)
    }
}

/// Whether an integer type has no sign.
pub fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// How many elements of a dtype can all differ.
pub fn distinct(dtype: DType) -> usize {
    match dtype {
        DType::Bool => 0,
        DType::BF16 | DType::I8 => 250,
        DType::U8 => 0,
        _ => 2000,
    }
}

fn limits(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// A number in a dtype: the real one if that is a float, else the whole one.
fn bytes(dtype: DType, real: f64, whole: i64) -> Vec<u8> {
    match dtype {
        DType::F64 => real.to_le_bytes().to_vec(),
        DType::F32 => (real as f32).to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(real).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(real).to_le_bytes().to_vec(),
        DType::Bool => vec![u8::from(whole % 2 != 0)],
        _ => whole.to_le_bytes()[..(dtype.bits() / 8) as usize].to_vec(),
    }
}
