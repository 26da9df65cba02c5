//! Operations on matrices: embedding, elementwise functions, softmax, activations, norms.
//!
//! Functions of one number are computed in f64 and rounded to f32, with the elementary functions of a library of our own
//! choosing, so that results do not depend on the machine's. Sums are f32, in the order of channels.

use super::Machine;
use super::value::Floats;
use crate::plan::ValueId;
use crate::schema::{Activation, Elementwise, GeluApprox};
use m2m_record::DType;

/// sqrt(2 / pi), as the contract spells it.
const GELU_TANH: f64 = 0.7978845608028654;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// `activation`, of one number.
struct Function {
    function: Activation,
    approximate: GeluApprox,
    alpha: f64,
    beta: f64,
    threshold: f64,
}

impl Function {
    fn at(&self, x: f64) -> f64 {
        match self.function {
            Activation::Relu if x <= 0.0 => 0.0,
            Activation::Relu => x,
            Activation::Sigmoid => sigmoid(x),
            Activation::Silu => x * sigmoid(x),
            Activation::LeakyRelu if x >= 0.0 => x,
            Activation::LeakyRelu => self.alpha * x,
            Activation::Tanh => libm::tanh(x),
            Activation::Softplus if self.beta * x > self.threshold => x,
            Activation::Softplus => libm::log1p(libm::exp(self.beta * x)) / self.beta,
            Activation::Gelu => match self.approximate {
                GeluApprox::None | GeluApprox::Precise => {
                    0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
                }
                GeluApprox::Tanh => 0.5 * x * (1.0 + libm::tanh(GELU_TANH * (x + 0.044715 * x * x * x))),
                GeluApprox::Fast => x * sigmoid(1.702 * x),
            },
        }
    }
}

/// Mean of numbers, in order.
fn mean(values: impl Iterator<Item = f32>, count: usize) -> f32 {
    values.fold(0.0f32, |sum, x| sum + x) / count as f32
}

impl Machine<'_> {
    /// Each row of a matrix becomes one of as many channels.
    fn each_row(&self, input: ValueId, fill: impl Fn(&[f32], &mut [f32]) + Sync) -> Result<Floats, String> {
        let input = self.floats_of(input)?;
        let (rows, channels) = input.say(input.value.matrix())?;
        Floats::by_rows(input.value.dtype, rows, channels, |row, out| fill(input.value.row(row, channels), out))
    }

    fn each(&self, input: ValueId, function: impl Fn(f64) -> f64 + Sync) -> Result<Floats, String> {
        self.each_row(input, |row, out| {
            out.iter_mut().zip(row).for_each(|(out, x)| *out = function(f64::from(*x)) as f32);
        })
    }

    /// Rows of a table, of which every index must be one.
    pub(super) fn embedding_lookup(&mut self, input: ValueId, weight: ValueId) -> Result<Floats, String> {
        let (entries, channels, table) = self.weights.table(self.weight(weight)?)?;
        let input = self.ints_of(input)?;
        let [rows] = input.value.shape[..] else {
            return input.say(Err(format!("has shape {:?}; expected one axis", input.value.shape)));
        };
        let index = |row: usize| {
            let index = input.value.values.get(row).copied().unwrap_or(-1);
            usize::try_from(index).ok().filter(|index| *index < entries)
        };
        if let Some(row) = (0..rows).find(|row| index(*row).is_none()) {
            let found = input.value.values.get(row).copied().unwrap_or_default();
            return input.say(Err(format!("row {row}: index {found}; the table has {entries} entries")));
        }
        Floats::by_rows(DType::F32, rows, channels, |row, out| {
            let start = index(row).unwrap_or(0) * channels;
            out.copy_from_slice(table.get(start..start + channels).unwrap_or_default());
        })
    }

    pub(super) fn elementwise(&self, input: ValueId, function: Elementwise) -> Result<Floats, String> {
        match function {
            Elementwise::Exp => self.each(input, libm::exp),
            Elementwise::Round => self.each(input, f64::round_ties_even),
        }
    }

    /// Over the channels, from whose greatest all are subtracted first.
    pub(super) fn softmax(&self, input: ValueId) -> Result<Floats, String> {
        self.each_row(input, |row, out| {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0f32;
            for (out, x) in out.iter_mut().zip(row) {
                *out = libm::exp(f64::from(x - most)) as f32;
                sum += *out;
            }
            out.iter_mut().for_each(|x| *x /= sum);
        })
    }

    pub(super) fn activation(
        &self,
        input: ValueId,
        function: Activation,
        approximate: GeluApprox,
        [alpha, beta, threshold]: [f32; 3],
    ) -> Result<Floats, String> {
        let (alpha, beta, threshold) = (alpha.into(), beta.into(), threshold.into());
        let function = Function { function, approximate, alpha, beta, threshold };
        self.each(input, |x| function.at(x))
    }

    /// Channel vectors of a norm, each as long as a row of the input.
    fn vectors<const N: usize>(&mut self, input: ValueId, weights: [ValueId; N]) -> Result<[Vec<f32>; N], String> {
        let input = self.floats_of(input)?;
        let (_, channels) = input.say(input.value.matrix())?;
        let mut vectors = [const { Vec::new() }; N];
        for (vector, weight) in vectors.iter_mut().zip(weights) {
            *vector = self.weights.vector(self.weight(weight)?, channels)?;
        }
        Ok(vectors)
    }

    /// `(x - mean) / sqrt(var + eps) * scale + bias`, each channel by its own.
    pub(super) fn batch_norm(
        &mut self,
        input: ValueId,
        [scale, bias, mean, var]: [ValueId; 4],
        eps: f32,
    ) -> Result<Floats, String> {
        let [scale, bias, mean, var] = self.vectors(input, [scale, bias, mean, var])?;
        self.each_row(input, |row, out| {
            let of = |vector: &[f32], at: usize| vector.get(at).copied().unwrap_or_default();
            for (at, (out, x)) in out.iter_mut().zip(row).enumerate() {
                let factor = 1.0 / (of(&var, at) + eps).sqrt();
                *out = (x - of(&mean, at)) * factor * of(&scale, at) + of(&bias, at);
            }
        })
    }

    /// The same with the mean and the biased variance of each row.
    pub(super) fn layer_norm(
        &mut self,
        input: ValueId,
        [scale, bias]: [ValueId; 2],
        eps: f32,
    ) -> Result<Floats, String> {
        let [scale, bias] = self.vectors(input, [scale, bias])?;
        self.each_row(input, |row, out| {
            let centre = mean(row.iter().copied(), row.len());
            let variance = mean(row.iter().map(|x| (x - centre) * (x - centre)), row.len());
            let factor = 1.0 / (variance + eps).sqrt();
            for (((out, x), scale), bias) in out.iter_mut().zip(row).zip(&scale).zip(&bias) {
                *out = (x - centre) * factor * scale + bias;
            }
        })
    }

    /// `x / sqrt(mean of squares + eps) * scale`.
    pub(super) fn rms_norm(&mut self, input: ValueId, scale: ValueId, eps: f32) -> Result<Floats, String> {
        let [scale] = self.vectors(input, [scale])?;
        self.each_row(input, |row, out| {
            let factor = 1.0 / (mean(row.iter().map(|x| x * x), row.len()) + eps).sqrt();
            for ((out, x), scale) in out.iter_mut().zip(row).zip(&scale) {
                *out = x * factor * scale;
            }
        })
    }
}
