//! Plans made by hand, with values for their arguments.

use m2m_lattice::exec::{self, Given, Options, Returned};
use m2m_lattice::plan::{Argument, Kind, Operation, Output, Packed, Part, Plan, Stored, ValueId, ValueType, Weight};
use m2m_lattice::schema::{Family, InputRole, Op, OutputRole};
use m2m_record::{DType, Data, Float, Scalar};
use std::collections::HashMap;

/// A tensor given to a plan.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

pub fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor { dtype: DType::F32, shape: shape.iter().map(|n| *n as u64).collect(), bytes }
}

pub fn halves(shape: &[usize], values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect();
    Tensor { dtype: DType::F16, shape: shape.iter().map(|n| *n as u64).collect(), bytes }
}

pub fn ints(shape: &[usize], values: &[i32]) -> Tensor {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor { dtype: DType::I32, shape: shape.iter().map(|n| *n as u64).collect(), bytes }
}

/// What a plan returned, by name.
pub struct Results(HashMap<String, Returned>);

impl Results {
    pub fn get(&self, name: &str) -> &Returned {
        &self.0[name]
    }

    pub fn floats(&self, name: &str) -> Vec<f32> {
        let found = self.get(name);
        match found.dtype {
            DType::F16 => found.bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect(),
            DType::F32 => found.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            other => panic!("{name} is {other}"),
        }
    }

    pub fn ints(&self, name: &str) -> Vec<i32> {
        assert_eq!(self.get(name).dtype, DType::I32, "{name}");
        self.get(name).bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect()
    }

    pub fn coords(&self, name: &str) -> Vec<[i32; 4]> {
        self.ints(&format!("{name}.coords")).as_chunks().0.to_vec()
    }

    pub fn features(&self, name: &str) -> Vec<f32> {
        self.floats(&format!("{name}.features"))
    }
}

/// A plan under construction. All arguments come before the first operation.
pub struct Model {
    pub plan: Plan,
    given: Vec<Tensor>,
}

impl Model {
    pub fn new() -> Model {
        let (arguments, values, ops) = (Vec::new(), Vec::new(), Vec::new());
        Model { plan: Plan { arguments, values, ops, outputs: Vec::new(), files: Vec::new() }, given: Vec::new() }
    }

    fn value(&mut self, ty: ValueType) -> ValueId {
        self.plan.values.push(ty);
        ValueId(self.plan.values.len() - 1)
    }

    pub fn tensor(&mut self, name: &str, tensor: Tensor) -> ValueId {
        assert!(self.plan.ops.is_empty(), "arguments come first");
        let ty = ValueType::Tensor { shape: vec![None; tensor.shape.len()], dtype: tensor.dtype };
        self.plan.arguments.push(Argument { abi_name: name.to_owned(), role: InputRole::Tensor });
        self.given.push(tensor);
        self.value(ty)
    }

    /// The three arguments of a sparse value, called `NAME_coords`, `NAME_features` and `NAME_active`.
    pub fn components(&mut self, name: &str, coords: &[[i32; 4]], features: Tensor, active: i32) -> [ValueId; 3] {
        let flat: Vec<i32> = coords.iter().flatten().copied().collect();
        [
            self.tensor(&format!("{name}_coords"), ints(&[coords.len(), 4], &flat)),
            self.tensor(&format!("{name}_features"), features),
            self.tensor(&format!("{name}_active"), ints(&[1], &[active])),
        ]
    }

    pub fn make(&mut self, [coords, features, active]: [ValueId; 3], stride: [i64; 3]) -> ValueId {
        let dtype = self.plan.values[features.0].dtype();
        self.sparse(Op::SparseMake, Kind::Make { coords, features, active, stride }, dtype)
    }

    pub fn sparse(&mut self, op: Op, kind: Kind, dtype: DType) -> ValueId {
        self.op(op, kind, ValueType::Sparse { dtype })
    }

    pub fn dense(&mut self, op: Op, kind: Kind, dtype: DType, axes: usize) -> ValueId {
        self.op(op, kind, ValueType::Tensor { shape: vec![None; axes], dtype })
    }

    pub fn op(&mut self, op: Op, kind: Kind, ty: ValueType) -> ValueId {
        let result = self.value(ty);
        self.plan.ops.push(Operation { op, kind, results: vec![result], loc: Some("7:3".to_owned()) });
        result
    }

    pub fn weight(&mut self, family: Family, tensor: &Tensor) -> ValueId {
        let part = part("w", tensor);
        let dtype = part.dtype;
        self.stored(family, dtype, Stored::Dense(part))
    }

    pub fn packed(&mut self, family: Family, bits: u32, group_size: u32, parts: [&Tensor; 3]) -> ValueId {
        let [weight, scales, biases] = parts;
        let dtype = scales.dtype;
        let (weight, scales, biases) = (part("w.weight", weight), part("w.scales", scales), part("w.biases", biases));
        self.stored(family, dtype, Stored::Packed(Box::new(Packed { bits, group_size, weight, scales, biases })))
    }

    fn stored(&mut self, family: Family, dtype: DType, stored: Stored) -> ValueId {
        let (symbol, storage_key) = ("w".to_owned(), "w".to_owned());
        let kind = Kind::Weight(Box::new(Weight { symbol, storage_key, family, dtype, stored }));
        self.op(Op::Weight, kind, ValueType::Weight { family, dtype })
    }

    pub fn returns(&mut self, name: &str, value: ValueId) {
        let is_sparse = self.plan.values[value.0].is_sparse();
        let role = if is_sparse { OutputRole::SparseTensor } else { OutputRole::Tensor };
        self.plan.outputs.push(Output { value, abi_name: name.to_owned(), role });
    }

    pub fn try_run(&self, threads: Option<usize>) -> Result<Vec<Returned>, exec::Error> {
        let given = |at: usize, _: &str| {
            let tensor = self.given.get(at)?;
            Some(Given { dtype: tensor.dtype, shape: &tensor.shape, bytes: &tensor.bytes })
        };
        exec::run(&self.plan, &given, Options { root: None, threads })
    }

    pub fn run(&self) -> Results {
        let returned = self.try_run(None).unwrap();
        Results(returned.into_iter().map(|each| (each.name.clone(), each)).collect())
    }

    /// The message with which the plan is refused.
    pub fn refused(&self) -> String {
        self.try_run(None).expect_err("the plan is refused").to_string()
    }
}

/// A stored tensor whose elements are in the plan itself.
fn part(name: &str, tensor: &Tensor) -> Part {
    let float = |x: f64| Scalar::Float(Float(x));
    let items: Vec<Scalar> = match tensor.dtype {
        DType::F32 => tensor.bytes.as_chunks().0.iter().map(|b| float(f32::from_le_bytes(*b).into())).collect(),
        DType::F16 => tensor.bytes.as_chunks().0.iter().map(|b| float(half::f16::from_le_bytes(*b).into())).collect(),
        _ => tensor.bytes.as_chunks().0.iter().map(|b| Scalar::Int(u32::from_le_bytes(*b).into())).collect(),
    };
    let shape = tensor.shape.iter().map(|n| i64::try_from(*n).unwrap()).collect();
    let dtype = if tensor.dtype == DType::I32 { DType::U32 } else { tensor.dtype };
    Part { name: name.to_owned(), dtype, shape, data: Data::Inline(items) }
}
