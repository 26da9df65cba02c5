//! Executes a plan on the CPU with the numerics of the contract.
//!
//! Sums of products are f32 in a fixed order and rounded once to the element type of the features, so a plan gives the
//! same bytes on any machine and with any number of threads. What does not fit is refused with the name of its tensor and
//! its row: coordinates that the stride does not divide or that leave 32 bits, two active rows of one coordinate, points
//! that are no numbers, indices outside of a table. Weights stay in the files that they are mapped from; an operation reads
//! its own and drops what it has read.
//!
//! It leaves out, and says so: element types other than f32, f16, bf16 and i32 coordinates.

mod algebra;
mod conv;
mod coords;
mod dense;
mod edges;
mod error;
mod points;
mod pool;
mod product;
mod uses;
mod value;
mod weights;

pub use error::Error;
pub use value::{Given, Returned};

use crate::plan::{Kind, Operation, Plan, ValueId, ValueType, Weight};
use m2m_record::DType;
use std::path::Path;
use std::sync::Arc;
use value::{Floats, Ints, Sparse, Value};
use weights::Weights;

/// How to run a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// What relative paths of files are relative to; the working directory if none.
    pub root: Option<&'a Path>,
    /// Threads; as many as there are processors if none.
    pub threads: Option<usize>,
}

/// Runs a plan. `given` finds an argument by its number and its ABI name. A sparse output is returned as four tensors:
/// physical coordinates, features, active rows and stride.
pub fn run<'g>(
    plan: &Plan,
    given: &dyn Fn(usize, &str) -> Option<Given<'g>>,
    options: Options<'_>,
) -> Result<Vec<Returned>, Error> {
    let weights = Weights::open(plan, options.root).map_err(Error::File)?;
    let values = vec![None; plan.values.len()];
    let mut machine = Machine { plan, weights, values, related: Vec::new() };
    machine.bind(given)?;
    let Some(threads) = options.threads else { return machine.run() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::Threads(error.to_string()))?.install(|| machine.run())
}

/// A plan with the values that it has so far.
struct Machine<'a> {
    plan: &'a Plan,
    weights: Weights,
    values: Vec<Option<Value>>,
    related: Vec<conv::Related>,
}

/// An operand with the name that messages give it.
struct Operand<'a, T> {
    name: String,
    value: &'a Arc<T>,
}

impl<T> Operand<'_, T> {
    /// Puts the operand's name before an error.
    fn say<R>(&self, result: Result<R, String>) -> Result<R, String> {
        result.map_err(|message| format!("{}: {message}", self.name))
    }
}

impl<'a> Machine<'a> {
    fn bind<'g>(&mut self, given: &dyn Fn(usize, &str) -> Option<Given<'g>>) -> Result<(), Error> {
        for (at, argument) in self.plan.arguments.iter().enumerate() {
            let wrong = |message: String| Error::Argument { name: argument.abi_name.clone(), message };
            let ty = self.plan.values.get(at);
            let shown = ty.map(ToString::to_string).unwrap_or_default();
            let given = given(at, &argument.abi_name).ok_or_else(|| wrong(format!("no value; expected {shown}")))?;
            let value = Value::of(&given).map_err(wrong)?;
            self.check(ValueId(at), &value).map_err(wrong)?;
            self.set(ValueId(at), value);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Vec<Returned>, Error> {
        let plan = self.plan;
        for ((at, op), done) in plan.ops.iter().enumerate().zip(uses::last_uses(plan)) {
            let wrong =
                |message: String| Error::Operation { name: op.op.def().full_name(), loc: op.loc.clone(), message };
            let results = self.compute(at, op).map_err(wrong)?;
            for (id, value) in op.results.iter().zip(results) {
                self.check(*id, &value).map_err(|found| wrong(format!("the result {found}")))?;
                self.set(*id, value);
            }
            done.into_iter().for_each(|id| self.values[id.0] = None);
        }
        let mut returned = Vec::new();
        for output in &plan.outputs {
            let wrong = |message: String| Error::Output { name: output.abi_name.clone(), message };
            let value = self.value(output.value).map_err(wrong)?;
            returned.extend(value.returned(&output.abi_name).map_err(wrong)?);
        }
        Ok(returned)
    }

    fn compute(&mut self, at: usize, op: &Operation) -> Result<Vec<Value>, String> {
        let floats = |floats: Floats| vec![Value::Floats(Arc::new(floats))];
        let sparse = |sparse: Sparse| vec![Value::Sparse(sparse)];
        Ok(match op.kind {
            Kind::Weight(_) => vec![Value::Weight(at)],
            Kind::Make { coords, features, active, stride } => {
                sparse(self.make(coords, features, active, narrow(stride)?)?)
            }
            Kind::Decompose { input } => {
                let input = self.sparse(input)?;
                let (coords, active) = (Arc::new(input.physical()?), Arc::new(input.active()));
                vec![Value::Ints(coords), Value::Floats(input.features.clone()), Value::Ints(active)]
            }
            Kind::WithFeatures { input, features } => sparse(self.with_features(input, features)?),
            Kind::Reindex { input, target, fill } => sparse(self.reindex(input, target, fill)?),
            Kind::Convolution(ref conv) => sparse(self.convolution(conv)?),
            Kind::Pool { input, mode, ref window } => sparse(self.pool(input, mode, window)?),
            Kind::PoolTranspose { input, target, ref window } => sparse(self.pool_transpose(input, target, window)?),
            Kind::Upsample { input, target, stride } => sparse(self.upsample(input, target, stride)?),
            Kind::GlobalPool { input, mode, batch_size } => floats(self.global_pool(input, mode, batch_size)?),
            Kind::Voxelize { points, features, batch_indices, active_rows, voxel_size, origin, reduction, stride } => {
                let operands = [points, features, batch_indices, active_rows];
                sparse(self.voxelize(operands, voxel_size, origin, reduction, narrow(stride)?)?)
            }
            Kind::Devoxelize {
                points,
                voxels,
                batch_indices,
                point_active_rows,
                voxel_size,
                origin,
                interpolation,
            } => {
                let operands = [points, voxels, batch_indices, point_active_rows];
                floats(self.devoxelize(operands, voxel_size, origin, interpolation)?)
            }
            Kind::Linear { input, weight, bias } => floats(self.linear(input, weight, bias)?),
            Kind::EmbeddingLookup { input, weight } => floats(self.embedding_lookup(input, weight)?),
            Kind::Elementwise { input, function } => floats(self.elementwise(input, function)?),
            Kind::Softmax { input } => floats(self.softmax(input)?),
            Kind::Activation { input, function, approximate, alpha, beta, threshold } => {
                floats(self.activation(input, function, approximate, [alpha, beta, threshold])?)
            }
            Kind::BatchNorm { input, scale, bias, mean, var, eps } => {
                floats(self.batch_norm(input, [scale, bias, mean, var], eps)?)
            }
            Kind::LayerNorm { input, scale, bias, eps } => floats(self.layer_norm(input, [scale, bias], eps)?),
            Kind::RmsNorm { input, scale, eps } => floats(self.rms_norm(input, scale, eps)?),
            Kind::Binary { lhs, rhs, op, join, lhs_fill, rhs_fill } => {
                sparse(self.binary(lhs, rhs, op, join, [lhs_fill, rhs_fill])?)
            }
            Kind::Cat { lhs, rhs, join } => sparse(self.cat(lhs, rhs, join)?),
        })
    }

    /// Holds a value against the type that the plan gives it.
    fn check(&self, id: ValueId, value: &Value) -> Result<(), String> {
        let Some(ty) = self.plan.values.get(id.0) else { return Err("is no value of the plan".to_owned()) };
        let sizes_fit = |sizes: &[usize], stated: &[Option<u64>]| {
            let fits = |(size, stated): (&usize, &Option<u64>)| stated.is_none_or(|n| n == *size as u64);
            sizes.len() == stated.len() && sizes.iter().zip(stated).all(fits)
        };
        let (found, fits) = match (value, ty) {
            (Value::Floats(floats), _) => {
                let fits = matches!(ty, ValueType::Tensor { shape, dtype }
                    if *dtype == floats.dtype && sizes_fit(&floats.shape, shape));
                (format!("{} {:?}", floats.dtype, floats.shape), fits)
            }
            (Value::Ints(ints), _) => {
                let fits =
                    matches!(ty, ValueType::Tensor { shape, dtype: DType::I32 } if sizes_fit(&ints.shape, shape));
                (format!("i32 {:?}", ints.shape), fits)
            }
            (Value::Sparse(sparse), _) => {
                let dtype = sparse.features.dtype;
                (format!("sparse {dtype}"), *ty == ValueType::Sparse { dtype })
            }
            (Value::Weight(_), _) => ("a weight".to_owned(), matches!(ty, ValueType::Weight { .. })),
        };
        if fits { Ok(()) } else { Err(format!("is {found}; the plan says {ty}")) }
    }

    fn set(&mut self, id: ValueId, value: Value) {
        if let Some(slot) = self.values.get_mut(id.0) {
            *slot = Some(value);
        }
    }

    /// How messages call a value: an argument by its ABI name, a result by its label.
    fn name(&self, id: ValueId) -> String {
        self.plan.arguments.get(id.0).map_or_else(|| format!("v{}", id.0), |argument| argument.abi_name.clone())
    }

    fn value(&self, id: ValueId) -> Result<&Value, String> {
        let value = self.values.get(id.0).and_then(Option::as_ref);
        value.ok_or_else(|| format!("{} has no value", self.name(id)))
    }

    fn sparse(&self, id: ValueId) -> Result<&Sparse, String> {
        match self.value(id)? {
            Value::Sparse(sparse) => Ok(sparse),
            _ => Err(format!("{} is not sparse", self.name(id))),
        }
    }

    fn floats(&self, id: ValueId) -> Result<&Arc<Floats>, String> {
        match self.value(id)? {
            Value::Floats(floats) => Ok(floats),
            _ => Err(format!("{} is no tensor of floats", self.name(id))),
        }
    }

    fn floats_of(&self, id: ValueId) -> Result<Operand<'_, Floats>, String> {
        Ok(Operand { name: self.name(id), value: self.floats(id)? })
    }

    fn ints_of(&self, id: ValueId) -> Result<Operand<'_, Ints>, String> {
        match self.value(id)? {
            Value::Ints(value) => Ok(Operand { name: self.name(id), value }),
            _ => Err(format!("{} is no tensor of i32", self.name(id))),
        }
    }

    /// The weight that a value binds; it belongs to the plan, not to the machine.
    fn weight(&self, id: ValueId) -> Result<&'a Weight, String> {
        let op = match self.value(id)? {
            Value::Weight(at) => self.plan.ops.get(*at),
            _ => None,
        };
        match op.map(|op| &op.kind) {
            Some(Kind::Weight(weight)) => Ok(weight),
            _ => Err(format!("{} is no weight", self.name(id))),
        }
    }
}

/// A stride as supports have it.
fn narrow(stride: [i64; 3]) -> Result<[i32; 3], String> {
    let narrow = stride.map(|n| i32::try_from(n).ok().filter(|n| *n > 0));
    match narrow {
        [Some(x), Some(y), Some(z)] => Ok([x, y, z]),
        _ => Err(format!("stride is {stride:?}; expected numbers above 0 that fit 32 bits")),
    }
}
