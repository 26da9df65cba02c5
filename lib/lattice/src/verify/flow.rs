//! What follows from how operations meet: strides, channels, packed operands, and what nothing uses.
//!
//! Values are followed in order. A stride is known from `sparse.make` or `voxelize` on; channels are known where a type or the
//! weights file states them. What is not known is not held against anything.

use super::Model;
use super::op::{MAX_COORDINATE, View};
use super::weights::{Bound, Channels, Storage, convolution, linear, storage};
use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Operation, Type, Types, Value};
use crate::plan::element_name;
use crate::schema::{Op, PoolMode};
use std::collections::HashMap;

/// What is known of a value.
#[derive(Clone, Copy, Default)]
struct Fact {
    stride: Option<[i64; 3]>,
    rows: Option<u64>,
    channels: Option<u64>,
}

/// Checks a model operation by operation.
pub(super) fn check(model: &Model<'_, '_>, findings: &mut Findings) {
    let bound: HashMap<usize, &[Bound]> =
        model.weights.iter().map(|(place, bound)| (*place, bound.as_slice())).collect();
    let mut flow = Flow { findings, facts: vec![Fact::default(); model.graph.values.len()], weights: HashMap::new() };
    for (at, ty) in model.graph.values.iter().enumerate() {
        if let (Type::Tensor { shape: Some(shape), .. }, Some(fact)) =
            (model.graph.types.get(*ty), flow.facts.get_mut(at))
        {
            fact.rows = shape.first().copied().flatten();
            fact.channels = shape.get(1).copied().flatten();
        }
    }
    for (place, op, own) in model.ops().filter(|(_, op, _)| !op.is_broken) {
        if own == Op::Weight {
            if let Some(storage) = storage(model, op) {
                flow.weights.insert(op.first_result, (storage, bound.get(&place).copied()));
            }
        } else {
            flow.op(&View { graph: model.graph, op, def: own.def() }, own);
        }
    }
    // What could not be read may be what uses the rest.
    if !findings.has_errors() {
        unused(model, findings);
    }
}

/// A weight operand: what its operation says, its tensors, and where it is used.
type Stored<'s> = (&'s Storage<'s>, Option<&'s [Bound]>, Option<Offset>);

struct Flow<'f, 'g> {
    findings: &'f mut Findings,
    facts: Vec<Fact>,
    weights: HashMap<Value, (Storage<'g>, Option<&'f [Bound]>)>,
}

impl Flow<'_, '_> {
    fn say(&mut self, view: &View<'_, '_>, code: Code, at: Option<Offset>, message: &str) {
        let message = format!("lattice.{}: {message}", view.def.name);
        self.findings.push(code, at.or(view.op.at), message);
    }

    fn operand(&self, view: &View<'_, '_>, name: &str) -> Option<(Value, Option<Offset>)> {
        let at = view.def.values().position(|each| each.name == name)?;
        view.op.operands.get(at).map(|operand| (operand.value, operand.at))
    }

    fn fact(&self, view: &View<'_, '_>, name: &str) -> Fact {
        let value = self.operand(view, name).map(|(value, _)| value);
        value.and_then(|value| self.facts.get(value.0 as usize).copied()).unwrap_or_default()
    }

    fn set(&mut self, view: &View<'_, '_>, fact: Fact) {
        if let Some(slot) = self.facts.get_mut(view.op.first_result.0 as usize) {
            *slot = fact;
        }
    }

    fn op(&mut self, view: &View<'_, '_>, own: Op) {
        match own {
            Op::SparseMake | Op::Voxelize => {
                let channels = self.fact(view, "features").channels;
                self.set(view, Fact { stride: view.triple("stride"), rows: None, channels });
            }
            Op::SparseDecompose => self.decompose(view),
            Op::SparseWithFeatures => {
                let (input, features) = (self.fact(view, "input"), self.fact(view, "features"));
                self.set(view, Fact { channels: features.channels, ..input });
            }
            Op::SparseReindex => {
                self.meet(view, "input", "target");
                let (input, target) = (self.fact(view, "input"), self.fact(view, "target"));
                self.set(view, Fact { channels: input.channels, ..target });
            }
            Op::SparseBinary | Op::SparseCat => self.algebra(view, own),
            Op::GlobalPool => self.global_pool(view),
            Op::Devoxelize => {
                let (points, voxels) = (self.fact(view, "points"), self.fact(view, "voxels"));
                self.result(view, points.rows, voxels.channels);
            }
            Op::Linear => self.linear(view),
            Op::EmbeddingLookup => self.embedding(view),
            Op::Elementwise | Op::Softmax | Op::Activation | Op::BatchNorm | Op::LayerNorm | Op::RmsNorm => {
                let input = self.fact(view, "input");
                for name in ["scale", "bias", "mean", "var"] {
                    self.vector(view, name, input.channels);
                }
                self.result(view, input.rows, input.channels);
            }
            _ => self.window(view, own),
        }
    }

    /// Two sparse values that must have the same stride.
    fn meet(&mut self, view: &View<'_, '_>, a: &str, b: &str) {
        if let (Some(x), Some(y)) = (self.fact(view, a).stride, self.fact(view, b).stride)
            && x != y
        {
            let at = self.operand(view, b).and_then(|(_, at)| at);
            self.say(view, Code::StrideMatch, at, &format!("{a} has stride {x:?} and {b} {y:?}; expected the same"));
        }
    }

    fn decompose(&mut self, view: &View<'_, '_>) {
        let input = self.fact(view, "input");
        let Some(features) = view.value("features").and_then(|seen| view.shape(seen.ty)) else { return };
        let found = features.get(1).copied().flatten();
        self.same_channels(view, "features", found, input.channels);
    }

    fn algebra(&mut self, view: &View<'_, '_>, own: Op) {
        self.meet(view, "lhs", "rhs");
        let (lhs, rhs) = (self.fact(view, "lhs"), self.fact(view, "rhs"));
        let channels = match own {
            Op::SparseCat => lhs.channels.zip(rhs.channels).and_then(|(a, b)| a.checked_add(b)),
            _ => {
                self.same_channels(view, "rhs", rhs.channels, lhs.channels);
                lhs.channels.or(rhs.channels)
            }
        };
        self.set(view, Fact { stride: lhs.stride.or(rhs.stride), rows: None, channels });
    }

    fn same_channels(&mut self, view: &View<'_, '_>, name: &str, found: Option<u64>, wanted: Option<u64>) {
        if let (Some(found), Some(wanted)) = (found, wanted)
            && found != wanted
        {
            let at = self.operand(view, name).and_then(|(_, at)| at);
            self.say(view, Code::Channels, at, &format!("{name} has {found} channels; expected {wanted}"));
        }
    }

    /// A dense result: its declared sizes against those that are known.
    fn result(&mut self, view: &View<'_, '_>, rows: Option<u64>, channels: Option<u64>) {
        let declared = self.facts.get(view.op.first_result.0 as usize).copied().unwrap_or_default();
        if let (Some(found), Some(wanted)) = (declared.rows, rows)
            && found != wanted
        {
            self.say(view, Code::SameRows, None, &format!("the result has {found} rows; expected {wanted}"));
        }
        self.same_channels(view, "result", declared.channels, channels);
        let fact = Fact { stride: None, rows: declared.rows.or(rows), channels: declared.channels.or(channels) };
        self.set(view, fact);
    }

    fn global_pool(&mut self, view: &View<'_, '_>) {
        let input = self.fact(view, "input");
        let batches = match view.op.attribute("batch_size").map(|entry| &entry.value) {
            Some(Attribute::Int { value, .. }) => u64::try_from(*value).ok(),
            _ => None,
        };
        self.result(view, batches, input.channels);
    }

    /// What the weights file says of a weight operand, with where it is used.
    fn stored(&self, view: &View<'_, '_>, name: &str) -> Option<Stored<'_>> {
        let (value, at) = self.operand(view, name)?;
        let (storage, bound) = self.weights.get(&value)?;
        Some((storage, *bound, at))
    }

    /// A vector of a weight against the channels that it goes with.
    fn vector(&mut self, view: &View<'_, '_>, name: &str, channels: Option<u64>) {
        let Some((_, Some([bound]), at)) = self.stored(view, name) else { return };
        let [found] = bound.shape.as_slice() else { return };
        let (found, key) = (*found, bound.name.clone());
        if let Some(wanted) = channels.filter(|wanted| *wanted != found) {
            let message = format!("{name} {key:?} has {found} elements; expected {wanted}, one for each channel");
            self.say(view, Code::Channels, at, &message);
        }
    }

    /// Channels of a weight, held against those of the input; the output's.
    fn through(
        &mut self,
        view: &View<'_, '_>,
        channels: Option<Result<Channels, String>>,
        input: Option<u64>,
        at: Option<Offset>,
    ) -> Option<u64> {
        match channels? {
            Err(message) => {
                self.say(view, Code::WeightShape, at, &message);
                None
            }
            Ok(channels) => {
                let fits =
                    |input: u64| if channels.is_padded { input <= channels.input } else { input == channels.input };
                if let Some(input) = input.filter(|input| !fits(*input)) {
                    let message = format!("the weight takes {} channels and the input has {input}", channels.input);
                    self.say(view, Code::Channels, at, &message);
                }
                Some(channels.output)
            }
        }
    }

    /// A dense weight has the element of the features.
    fn dense_element(&mut self, view: &View<'_, '_>) {
        let Some(input) = view.value("input").and_then(|seen| view.element(seen.ty)) else { return };
        let Some((storage, _, at)) = self.stored(view, "weight") else { return };
        let (Some(dtype), None) = (storage.dtype, storage.packing) else { return };
        let (found, wanted) = (element_name(dtype), view.text(input));
        if found != wanted && input != Types::UNKNOWN {
            self.say(view, Code::DenseElement, at, &format!("the weight holds {found} and the input {wanted}"));
        }
    }

    fn linear(&mut self, view: &View<'_, '_>) {
        self.dense_element(view);
        let input = self.fact(view, "input");
        let stored =
            self.stored(view, "weight").map(|(storage, bound, at)| (bound.map(|bound| linear(storage, bound)), at));
        let output = stored.and_then(|(channels, at)| self.through(view, channels, input.channels, at));
        self.vector(view, "bias", output);
        self.result(view, input.rows, output);
    }

    fn embedding(&mut self, view: &View<'_, '_>) {
        let rows = self.fact(view, "input").rows;
        let width = match self.stored(view, "weight") {
            Some((_, Some([bound]), _)) => bound.shape.get(1).copied(),
            _ => None,
        };
        self.result(view, rows, width);
    }

    /// Convolutions, pooling and upsampling.
    fn window(&mut self, view: &View<'_, '_>, own: Op) {
        let input = self.fact(view, "input");
        let stride = self.stride(view, own, input.stride);
        let mut channels = input.channels;
        if view.def.is_convolution() {
            self.packed(view, own);
            self.dense_element(view);
            let kernel = view.triple("kernel_size");
            let stored = self.stored(view, "weight").map(|(storage, bound, at)| {
                (kernel.and_then(|kernel| bound.map(|bound| convolution(storage, bound, kernel))), at)
            });
            channels = stored.and_then(|(found, at)| self.through(view, found, input.channels, at));
            self.vector(view, "bias", channels);
        }
        self.set(view, Fact { stride, rows: None, channels });
        self.lint(view, own);
    }

    /// The stride of the result, checked on the way.
    fn stride(&mut self, view: &View<'_, '_>, own: Op, input: Option<[i64; 3]>) -> Option<[i64; 3]> {
        let by = view.triple("stride").unwrap_or([1; 3]);
        if by.iter().any(|n| *n <= 0) {
            return None;
        }
        let at = view.op.attribute("stride").and_then(|entry| entry.at);
        let stride = match (input, is_spreading(own)) {
            (None, _) => None,
            (Some(input), false) => {
                let product: Vec<Option<i64>> = input.iter().zip(by).map(|(s, n)| s.checked_mul(n)).collect();
                match product.as_slice() {
                    [Some(x), Some(y), Some(z)] if [*x, *y, *z].iter().all(|n| *n <= MAX_COORDINATE) => {
                        Some([*x, *y, *z])
                    }
                    _ => {
                        let message = format!("the input's stride {input:?} times {by:?} is beyond {MAX_COORDINATE}");
                        self.say(view, Code::KernelVolume, at, &message);
                        None
                    }
                }
            }
            (Some(input), true) if input.iter().zip(by).all(|(s, n)| s % n == 0) => {
                Some([input[0] / by[0], input[1] / by[1], input[2] / by[2]])
            }
            (Some(input), true) => {
                let message = format!("the input's stride is {input:?}; it is not divided by {by:?}");
                self.say(view, Code::StrideDivision, at, &message);
                None
            }
        };
        let target = self.fact(view, "target").stride;
        if let (Some(stride), Some(target)) = (stride, target)
            && stride != target
        {
            let at = self.operand(view, "target").and_then(|(_, at)| at);
            let message = format!("the target has stride {target:?}; expected {stride:?}, what the input's becomes");
            self.say(view, Code::StrideMatch, at, &message);
        }
        target.or(stride)
    }

    /// Operations that cannot unpack a weight.
    fn packed(&mut self, view: &View<'_, '_>, own: Op) {
        let cannot = own == Op::TargetConvTranspose3d || view.def.attribute("eps").is_some();
        let Some((storage, _, at)) = self.stored(view, "weight") else { return };
        if cannot && storage.packing.is_some() {
            self.say(
                view,
                Code::PackedOperand,
                at,
                "a packed weight, which this operation cannot unpack; store it dense",
            );
        }
    }

    /// Windows that do something else than what is usually meant.
    fn lint(&mut self, view: &View<'_, '_>, own: Op) {
        let (Some(kernel), stride) = (view.triple("kernel_size"), view.triple("stride").unwrap_or([1; 3])) else {
            return;
        };
        let padding = view.triple("padding").unwrap_or([0; 3]);
        let dilation = view.triple("dilation").unwrap_or([1; 3]);
        let is_plausible = |triple: [i64; 3]| triple.iter().all(|n| (0..=MAX_COORDINATE).contains(n));
        if ![kernel, stride, padding, dilation].into_iter().all(is_plausible) {
            return;
        }
        let is_centred = matches!(own, Op::Conv3d | Op::TargetConv3d | Op::Pool3d);
        if is_centred && kernel.iter().zip(padding).any(|(k, p)| *k > 1 && k % 2 == 1 && p != 0) {
            let at = view.op.attribute("padding").and_then(|entry| entry.at);
            let message = format!(
                "padding {padding:?} with kernel {kernel:?}: an odd kernel is centred already, and padding moves its window to \
                 lower coordinates"
            );
            self.say(view, Code::ShiftedWindow, at, &message);
        }
        let is_generative = matches!(own, Op::GenerativeConvTranspose3d | Op::NormalizedGenerativeConvTranspose3d);
        if is_generative && kernel.iter().zip(stride).any(|(k, s)| *k > s) {
            let message =
                format!("kernel {kernel:?} is larger than stride {stride:?}: coordinates come out more than once");
            self.say(view, Code::RepeatedRows, None, &message);
        }
        let is_max = matches!(view.op.attribute("mode").map(|entry| &entry.value),
            Some(Attribute::Keyword { keyword, .. }) if *keyword == PoolMode::Max.name());
        // A cell holds offsets 0 to stride - 1 along each axis; each of them must be a position of the window.
        let covers = |axis: usize| {
            let (k, d) = (kernel[axis].max(0), dilation[axis]);
            let first = if k % 2 == 1 { -(k / 2) * d } else { 0 };
            let (low, high) = (first - padding[axis], first - padding[axis] + (k - 1).max(0).saturating_mul(d));
            low <= 0 && high >= stride[axis] - 1 && (d == 1 || stride[axis] == 1 && low % d == 0)
        };
        if own == Op::Pool3d && is_max && !(0..3).all(covers) {
            let message = format!(
                "a window of kernel {kernel:?}, padding {padding:?}, dilation {dilation:?} leaves places of a cell of {stride:?} out: \
                 a row may be the maximum of nothing, minus infinity"
            );
            self.say(view, Code::EmptyRows, None, &message);
        }
    }
}

/// Whether an operation spreads to a finer stride.
fn is_spreading(own: Op) -> bool {
    let name = own.def().name;
    name.contains("transpose") || own == Op::TrilinearUpsample3d
}

/// Operations whose results reach no result of the function, and symbols that are given twice.
fn unused(model: &Model<'_, '_>, findings: &mut Findings) {
    let Some(returned) = model.returned() else { return };
    let mut is_used = vec![false; model.graph.values.len()];
    let mark = |op: &Operation<'_>, is_used: &mut Vec<bool>| {
        for operand in &op.operands {
            if let Some(slot) = is_used.get_mut(operand.value.0 as usize) {
                *slot = true;
            }
        }
    };
    mark(returned, &mut is_used);
    for op in model.block.ops.iter().rev().skip(1) {
        let is_needed = op.result_values().any(|value| is_used.get(value.0 as usize) == Some(&true));
        if is_needed || op.is_broken {
            mark(op, &mut is_used);
        } else {
            let message = format!("{}: what it gives reaches no result of the function", op.name.text());
            findings.push(Code::UnusedOp, op.at, message);
        }
    }
    let mut seen = HashMap::new();
    for (_, op, _) in model.ops().filter(|(_, op, own)| *own == Op::Weight && !op.is_broken) {
        let Some(Attribute::Str(symbol)) = op.attribute("sym_name").map(|entry| &entry.value) else { continue };
        if seen.insert(symbol.as_ref(), ()).is_some() {
            let message = format!("lattice.weight: @{symbol} names two weights");
            findings.push(Code::DuplicateSymbol, op.at, message);
        }
    }
}
