//! Loops over tensors: `linalg.generic` with its body as a closure, and the named operations that newer LLVMs keep.
//!
//! Elementwise named operations (`linalg.add` and friends) are left out on purpose: later releases removed them.

#![allow(unsafe_code)]

use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Type, ValueLike};
use mlir_sys::mlirLinalgFillBuiltinNamedOpRegion;

use super::{Builder, Value, operand_error, results_of};
use crate::error::Error;
use crate::map::Map;
use crate::{attr, types};

/// What a loop dimension does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iter {
    /// Every point writes its own result.
    Parallel,
    /// Points along it are folded into one result.
    Reduction,
}

impl Iter {
    fn attribute<'c>(self, b: &Builder<'c>) -> Result<Attribute<'c>, Error> {
        attr::parse(
            b.context,
            match self {
                Self::Parallel => "#linalg.iterator_type<parallel>",
                Self::Reduction => "#linalg.iterator_type<reduction>",
            },
        )
    }
}

impl<'c> Builder<'c> {
    /// `linalg.fill`: `out` with a scalar in every element.
    pub fn fill(&self, scalar: Value<'c>, out: Value<'c>) -> Result<Value<'c>, Error> {
        Ok(self.named("linalg.fill", &[scalar], &[out], &[])?[0])
    }

    /// `linalg.generic`. The body gets one scalar an operand, ins then outs, and returns one a result.
    pub fn generic(
        &self,
        ins: &[(Value<'c>, Map)],
        outs: &[(Value<'c>, Map)],
        iterators: &[Iter],
        body: impl FnOnce(&Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let maps: Vec<Map> = ins.iter().chain(outs).map(|(_, map)| map.clone()).collect();
        let iterators = iterators.iter().map(|iterator| iterator.attribute(self)).collect::<Result<Vec<_>, _>>()?;
        let attributes = [
            ("indexing_maps", attr::maps(self.context, &maps)),
            ("iterator_types", attr::array(self.context, &iterators)),
        ];
        let ins: Vec<_> = ins.iter().map(|&(value, _)| value).collect();
        let outs: Vec<_> = outs.iter().map(|&(value, _)| value).collect();
        self.with_body("linalg.generic", &ins, &outs, &attributes, true, body)
    }

    /// An elementwise `linalg.generic`: every loop parallel, the result written by the identity.
    pub fn elementwise(
        &self,
        ins: &[(Value<'c>, Map)],
        out: Value<'c>,
        body: impl FnOnce(&Self, &[Value<'c>]) -> Result<Value<'c>, Error>,
    ) -> Result<Value<'c>, Error> {
        let rank = types::dims(out.r#type()).len();
        let iterators = vec![Iter::Parallel; rank];
        let results = self.generic(ins, &[(out, Map::identity(rank))], &iterators, |b, arguments| {
            let inputs = arguments.get(..ins.len()).unwrap_or_default();
            Ok(vec![body(b, inputs)?])
        })?;
        Ok(results[0])
    }

    /// `linalg.reduce` over `axes`. The body gets elements of the inputs, then the accumulators.
    pub fn reduce(
        &self,
        ins: &[Value<'c>],
        inits: &[Value<'c>],
        axes: &[i64],
        body: impl FnOnce(&Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let attributes = [("dimensions", attr::int64_array(self.context, axes))];
        self.with_body("linalg.reduce", ins, inits, &attributes, false, body)
    }

    /// `linalg.transpose`: axis `i` of the result is axis `permutation[i]` of the input; `out` has the result's shape.
    pub fn transpose(&self, input: Value<'c>, out: Value<'c>, permutation: &[i64]) -> Result<Value<'c>, Error> {
        let attributes = [("permutation", attr::int64_array(self.context, permutation))];
        self.copying("linalg.transpose", input, out, &attributes)
    }

    /// `linalg.broadcast`: `axes` are those of the result that the input lacks.
    pub fn broadcast(&self, input: Value<'c>, out: Value<'c>, axes: &[i64]) -> Result<Value<'c>, Error> {
        let attributes = [("dimensions", attr::int64_array(self.context, axes))];
        self.copying("linalg.broadcast", input, out, &attributes)
    }

    fn copying(
        &self,
        name: &str,
        input: Value<'c>,
        out: Value<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Value<'c>, Error> {
        let results =
            self.with_body(name, &[input], &[out], attributes, false, |_, arguments| Ok(vec![arguments[0]]))?;
        Ok(results[0])
    }

    /// `linalg.index`, inside a `generic` body.
    pub fn index(&self, dim: usize) -> Result<Value<'c>, Error> {
        let dim = attr::int64(self.context, dim.cast_signed() as i64);
        self.op1("linalg.index", &[], self.index_type(), &[("dim", dim)])
    }

    /// A named structured operation with its own body: `linalg.matmul`, `linalg.batch_matmul`,
    /// `linalg.conv_2d_nchw_fchw`, `linalg.pooling_nchw_max`, …. Strides and dilations are `attr::int64_vector`.
    pub fn named(
        &self,
        name: &str,
        ins: &[Value<'c>],
        outs: &[Value<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Vec<Value<'c>>, Error> {
        let operands: Vec<_> = ins.iter().chain(outs).copied().collect();
        let results: Vec<_> = outs.iter().map(|out| out.r#type()).collect();
        let mut attributes = attributes.to_vec();
        attributes.push(("operandSegmentSizes", segments(self, ins.len(), outs.len())));
        if let (Some(maps), true) = (product_maps(name), attributes.iter().all(|(name, _)| *name != "indexing_maps")) {
            attributes.push(("indexing_maps", attr::maps(self.context, &maps)));
        }
        let operation = self.append(name, &operands, &results, &attributes, vec![melior::ir::Region::new()])?;
        // SAFETY: the operation has one empty region, and is one of the structured operations that have a builtin body;
        // the guard below keeps others out.
        if self.context.is_registered_operation(name) && name.starts_with("linalg.") {
            unsafe { mlirLinalgFillBuiltinNamedOpRegion(operation.to_raw()) };
        }
        let mut nested = 0;
        operation.walk(melior::ir::operation::WalkOrder::PreOrder, |_| {
            nested += 1;
            melior::ir::operation::WalkResult::Advance
        });
        self.ordinal.set(self.ordinal.get() + nested - 1);
        Ok(results_of(operation))
    }

    fn with_body(
        &self,
        name: &str,
        ins: &[Value<'c>],
        outs: &[Value<'c>],
        attributes: &[(&str, Attribute<'c>)],
        segmented: bool,
        body: impl FnOnce(&Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let operands: Vec<_> = ins.iter().chain(outs).copied().collect();
        let results: Vec<_> = outs.iter().map(|out| out.r#type()).collect();
        if let Some(&scalar) = outs.iter().find(|out| types::ranked(out.r#type()).is_none()) {
            return Err(operand_error(name, "tensors as outs", scalar));
        }
        let arguments: Vec<Type<'c>> = operands.iter().map(|operand| types::element(operand.r#type())).collect();
        let mut attributes = attributes.to_vec();
        if segmented {
            attributes.push(("operandSegmentSizes", segments(self, ins.len(), outs.len())));
        }
        let mut body = Some(body);
        self.op_with_regions(name, &operands, &results, &attributes, &[arguments], |b, _, arguments| {
            let body = body.take().expect("one region is filled once");
            b.untagged(|| {
                let yielded = body(b, arguments)?;
                b.op("linalg.yield", &yielded, &[], &[]).map(drop)
            })
        })
    }
}

fn segments<'c>(b: &Builder<'c>, ins: usize, outs: usize) -> Attribute<'c> {
    let number = |count| i32::try_from(count).expect("operand lists are short");
    attr::int32_array(b.context, &[number(ins), number(outs)])
}

/// The maps of a product without transposition, written out because forms differ in whether they imply them.
fn product_maps(name: &str) -> Option<[Map; 3]> {
    match name {
        "linalg.matmul" => Some([Map::dims(3, &[0, 2]), Map::dims(3, &[2, 1]), Map::dims(3, &[0, 1])]),
        "linalg.batch_matmul" => Some([Map::dims(4, &[0, 1, 3]), Map::dims(4, &[0, 3, 2]), Map::dims(4, &[0, 1, 2])]),
        _ => None,
    }
}
