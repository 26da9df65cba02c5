//! The ten convolutions, and linear layers, which are one of a single position on dense rows.
//!
//! `out[o] = sum over edges (i, o, k) of features[i] . w[k]`, in f32 and rounded once to the element type of the features;
//! then the bias, rounded to that type first, is added and the sum rounded again. With a packed weight, features are
//! rounded to the element type of its scales before, and sums to it after, as the contract's runtime does.
//!
//! The normalized ones divide by `sqrt(energy + eps)`, where the energy is what the same edges give of a row of ones and
//! the squared weight, before they round and add the bias.

use super::Machine;
use super::coords::Support;
use super::edges::{Edges, Gather, coarser, finer, forward_support, gather, generate, spread};
use super::product::{Kernel, matrix, sums};
use super::value::{Floats, Sparse, round};
use crate::plan::{Convolution, Relation, Stored, ValueId, Window};
use m2m_record::DType;
use std::sync::{Arc, Weak};

/// Most relations that are kept for the next operation on the same rows.
const KEPT: usize = 8;

/// A relation that has been computed. It keeps no rows alive, and is forgotten with them.
pub(super) struct Related {
    relation: Relation,
    window: Window,
    input: Weak<Support>,
    target: Option<Weak<Support>>,
    output: Weak<Support>,
    edges: Arc<Edges>,
}

impl Related {
    fn is_alive(&self) -> bool {
        let alive = |support: &Weak<Support>| support.strong_count() > 0;
        alive(&self.input) && alive(&self.output) && self.target.as_ref().is_none_or(alive)
    }

    fn is(&self, relation: Relation, window: &Window, input: &Arc<Support>, target: Option<&Arc<Support>>) -> bool {
        let same = |weak: &Weak<Support>, arc: &Arc<Support>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(arc));
        let same_target = match (&self.target, target) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.relation == relation && self.window == *window && same(&self.input, input) && same_target
    }
}

/// The window of a linear layer.
const POINT: Window = Window { kernel_size: [1; 3], stride: [1; 3], padding: [0; 3], dilation: [1; 3] };

/// How a sum becomes an element.
struct Finish<'a> {
    dtype: DType,
    scale_dtype: Option<DType>,
    bias: Option<&'a [f32]>,
}

impl Finish<'_> {
    fn element(&self, sum: f32, channel: usize) -> f32 {
        let sum = self.scale_dtype.map_or(sum, |dtype| round(sum, dtype));
        let sum = round(sum, self.dtype);
        self.bias.and_then(|bias| bias.get(channel)).map_or(sum, |bias| sum + bias)
    }
}

impl Machine<'_> {
    pub(super) fn convolution(&mut self, conv: &Convolution) -> Result<Sparse, String> {
        let input = self.sparse(conv.input)?.clone();
        let target = conv.target.map(|target| self.sparse(target).cloned()).transpose()?;
        let weight = self.weight(conv.weight)?;
        let is_packed = matches!(weight.stored, Stored::Packed(_));
        if is_packed && (conv.eps.is_some() || conv.relation == Relation::TargetTransposed) {
            let key = &weight.storage_key;
            return Err(format!("weight {key:?} is packed, which this operation does not take; expected a dense one"));
        }
        let dtype = input.features.dtype;
        let loaded = self.weights.kernel(weight, &conv.window, input.channels(), dtype)?;
        let channels = loaded.kernel.channels_out;
        let bias = self.bias(conv.bias, channels, dtype)?;
        let finish = Finish { dtype, scale_dtype: loaded.scale_dtype, bias: bias.as_deref() };
        let features = input.features.cast(loaded.scale_dtype.unwrap_or(dtype));
        if matches!(conv.relation, Relation::Forward | Relation::Submanifold) && conv.window.is_pointwise() {
            let features = pointwise(&features, input.rows(), &loaded.kernel, &finish)?;
            return Ok(Sparse { support: input.support, features: Arc::new(features) });
        }
        let target = target.as_ref().map(|target| &target.support);
        let (support, edges) = self.relate(conv.relation, &conv.window, &input.support, target)?;
        let energy = match conv.eps {
            Some(eps) if eps > 0.0 => {
                let ones = vec![1.0; input.rows()];
                Some((sums(&ones, &edges, &loaded.kernel.energy()?)?, eps))
            }
            Some(eps) => return Err(format!("eps is {eps}; expected a number above 0")),
            None => None,
        };
        let sums = sums(&features.values, &edges, &loaded.kernel)?;
        let features = by_rank(&support, &edges, channels, dtype, |at, channel| {
            let sum = sums.get(at).copied().unwrap_or_default();
            let sum = match &energy {
                Some((energy, eps)) => sum / (energy.get(at).copied().unwrap_or_default() + eps).sqrt(),
                None => sum,
            };
            finish.element(sum, channel)
        })?;
        Ok(Sparse { support, features: Arc::new(features) })
    }

    pub(super) fn linear(&mut self, input: ValueId, weight: ValueId, bias: Option<ValueId>) -> Result<Floats, String> {
        let input = self.floats(input)?.clone();
        let (rows, channels) = input.matrix()?;
        let loaded = self.weights.kernel(self.weight(weight)?, &POINT, channels, input.dtype)?;
        let bias = self.bias(bias, loaded.kernel.channels_out, input.dtype)?;
        let finish = Finish { dtype: input.dtype, scale_dtype: loaded.scale_dtype, bias: bias.as_deref() };
        pointwise(&input.cast(loaded.scale_dtype.unwrap_or(input.dtype)), rows, &loaded.kernel, &finish)
    }

    fn bias(&mut self, bias: Option<ValueId>, channels: usize, dtype: DType) -> Result<Option<Vec<f32>>, String> {
        let Some(bias) = bias else { return Ok(None) };
        let mut bias = self.weights.vector(self.weight(bias)?, channels)?;
        bias.iter_mut().for_each(|x| *x = round(*x, dtype));
        Ok(Some(bias))
    }

    /// The rows that a relation gives, and its edges.
    pub(super) fn relate(
        &mut self,
        relation: Relation,
        window: &Window,
        input: &Arc<Support>,
        target: Option<&Arc<Support>>,
    ) -> Result<(Arc<Support>, Arc<Edges>), String> {
        self.related.retain(Related::is_alive);
        let known = self.related.iter().find(|each| each.is(relation, window, input, target));
        if let Some((output, known)) = known.and_then(|known| Some((known.output.upgrade()?, known))) {
            return Ok((output, known.edges.clone()));
        }
        let (output, edges) = related(relation, window, input, target)?;
        let edges = Arc::new(edges);
        if self.related.len() >= KEPT {
            self.related.remove(0);
        }
        self.related.push(Related {
            relation,
            window: *window,
            input: Arc::downgrade(input),
            target: target.map(Arc::downgrade),
            output: Arc::downgrade(&output),
            edges: edges.clone(),
        });
        Ok((output, edges))
    }
}

fn related(
    relation: Relation,
    window: &Window,
    input: &Arc<Support>,
    target: Option<&Arc<Support>>,
) -> Result<(Arc<Support>, Edges), String> {
    let given = |stride: [i32; 3]| {
        let target = target.ok_or_else(|| "no target".to_owned())?;
        match target.stride == stride {
            true => Ok(target.clone()),
            false => Err(format!("the target has stride {:?}; expected {stride:?}", target.stride)),
        }
    };
    Ok(match relation {
        Relation::Forward | Relation::Submanifold => {
            let output = forward_support(input, window)?;
            let edges = gather(input, &output, window, Gather::Forward);
            (output, edges)
        }
        Relation::Target => {
            let output = given(coarser(input.stride, window.stride)?)?;
            let edges = gather(input, &output, window, Gather::Forward);
            (output, edges)
        }
        Relation::TargetTransposed => {
            let output = given(finer(input.stride, window.stride)?)?;
            let edges = gather(input, &output, window, Gather::Transposed);
            (output, edges)
        }
        Relation::Transposed => spread(input, window)?,
        Relation::Generative => generate(input, window)?,
    })
}

/// A matrix product on every row, those that are not active included.
fn pointwise(features: &Floats, rows: usize, kernel: &Kernel, finish: &Finish<'_>) -> Result<Floats, String> {
    let channels = kernel.channels_out;
    let sums = matrix(&features.values, rows, kernel)?;
    Floats::by_rows(finish.dtype, rows, channels, |row, out| {
        for (channel, out) in out.iter_mut().enumerate() {
            *out = finish.element(sums.get(row * channels + channel).copied().unwrap_or_default(), channel);
        }
    })
}

/// Features of a support from what `element` gives of each rank's place and channel; zeros where no row is active.
pub(super) fn by_rank(
    support: &Support,
    edges: &Edges,
    channels: usize,
    dtype: DType,
    element: impl Fn(usize, usize) -> f32 + Sync,
) -> Result<Floats, String> {
    let mut ranks = vec![0u32; edges.rows.len()];
    for (rank, row) in edges.rows.iter().enumerate() {
        ranks[*row as usize] = rank as u32;
    }
    Floats::by_rows(dtype, support.coords.len(), channels, |row, out| {
        let Some(rank) = ranks.get(row) else { return };
        for (channel, out) in out.iter_mut().enumerate() {
            *out = element(*rank as usize * channels + channel, channel);
        }
    })
}
