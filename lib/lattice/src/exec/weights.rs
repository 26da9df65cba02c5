//! Weights as operations take them, read from where they are mapped.
//!
//! A weight is read when an operation needs it and dropped when that is done: what stays in memory is the mapping.

use super::product::Kernel;
use super::value::{elements, is_computed, widen};
use crate::plan::{Kind, Packed, Part, Plan, Stored, Weight, Window};
use m2m_record::{DType, Data};
use m2m_tensor::source::Files;
use std::collections::HashSet;
use std::path::Path;

/// The files of a plan's weights.
pub(super) struct Weights {
    files: Files,
}

/// A kernel with how features are rounded before and sums after it.
pub(super) struct Loaded {
    pub kernel: Kernel,
    /// Of a packed weight: the element type of its scales.
    pub scale_dtype: Option<DType>,
}

impl Weights {
    /// Maps those files of a plan that weights lie in; `root` is what relative paths are relative to.
    pub fn open(plan: &Plan, root: Option<&Path>) -> Result<Weights, String> {
        let mut files = Files::new();
        let used: HashSet<&str> = plan.ops.iter().flat_map(|op| parts(&op.kind)).filter_map(file_of).collect();
        for file in plan.files.iter().filter(|file| used.contains(file.id.as_str())) {
            files.open(file, root).map_err(|error| error.to_string())?;
        }
        Ok(Weights { files })
    }

    /// What `take` makes of a tensor's bytes, which stay where they are.
    fn read<T>(&mut self, part: &Part, take: impl FnOnce(&[u8]) -> T) -> Result<T, String> {
        let wrong = |error: m2m_tensor::source::Error| format!("weight {:?}: {error}", part.name);
        let view = self.files.view(&part.data, part.dtype, &part.shape).map_err(wrong)?;
        let bytes = view.to_contiguous().map_err(wrong)?;
        Ok(take(&bytes))
    }

    fn floats(&mut self, part: &Part) -> Result<Vec<f32>, String> {
        if !is_computed(part.dtype) {
            return Err(format!("weight {:?} is {}; expected f32, f16 or bf16", part.name, part.dtype));
        }
        elements(&sizes(part))?;
        self.read(part, |bytes| widen(part.dtype, bytes))?
            .ok_or_else(|| format!("weight {:?} cannot be read", part.name))
    }

    /// A bias or a channel vector of so many elements, widened.
    pub fn vector(&mut self, weight: &Weight, channels: usize) -> Result<Vec<f32>, String> {
        let part = dense(weight)?;
        match sizes(part)[..] {
            [count] if count == channels => self.floats(part),
            _ => Err(format!("weight {:?} has shape {:?}; expected [{channels}]", part.name, part.shape)),
        }
    }

    /// An embedding: entries, channels, values.
    pub fn table(&mut self, weight: &Weight) -> Result<(usize, usize, Vec<f32>), String> {
        let part = dense(weight)?;
        match sizes(part)[..] {
            [entries, channels] if part.dtype == DType::F32 => Ok((entries, channels, self.floats(part)?)),
            [_, _] => Err(format!("weight {:?} is {}; expected f32", part.name, part.dtype)),
            _ => Err(format!("weight {:?} has shape {:?}; expected entries and channels", part.name, part.shape)),
        }
    }

    /// The weight of a convolution, or of a linear layer, whose window is pointwise, on features of so many channels.
    pub fn kernel(
        &mut self,
        weight: &Weight,
        window: &Window,
        channels: usize,
        dtype: DType,
    ) -> Result<Loaded, String> {
        match &weight.stored {
            Stored::Dense(part) => {
                if part.dtype != dtype {
                    return Err(format!("weight {:?} is {}; the features are {dtype}", part.name, part.dtype));
                }
                Ok(Loaded { kernel: self.dense_kernel(part, window, channels)?, scale_dtype: None })
            }
            Stored::Packed(packed) => {
                let kernel = self.packed_kernel(packed, window, channels)?;
                Ok(Loaded { kernel, scale_dtype: Some(packed.scales.dtype) })
            }
        }
    }

    fn dense_kernel(&mut self, part: &Part, window: &Window, channels: usize) -> Result<Kernel, String> {
        let positions = usize::try_from(window.volume()).unwrap_or(usize::MAX);
        let kernel_size = window.kernel_size.map(|k| usize::try_from(k).unwrap_or(0));
        let sizes = sizes(part);
        // Channels out and in, and how far apart neighbours are along position, out and in.
        let layout = match sizes[..] {
            [out, x, y, z, inner] if [x, y, z] == kernel_size => Some((out, inner, [inner, positions * inner, 1])),
            [out, inner] if positions == 1 => Some((out, inner, [0, inner, 1])),
            [count, inner, out] if count == positions => Some((out, inner, [inner * out, 1, out])),
            _ => None,
        };
        let (out, _, steps) = layout.filter(|(_, inner, _)| *inner == channels).ok_or_else(|| {
            let [x, y, z] = kernel_size;
            let also = if positions == 1 { " or [out, in]" } else { " or [positions, in, out]" };
            format!(
                "weight {:?} has shape {:?}; expected [out, {x}, {y}, {z}, in]{also} for {channels} channels in",
                part.name, part.shape
            )
        })?;
        let values = self.floats(part)?;
        let at = |k: usize, o: usize, i: usize| {
            values.get(k * steps[0] + o * steps[1] + i * steps[2]).copied().unwrap_or_default()
        };
        Kernel::new([positions, out, channels], at)
    }

    /// Codes are `scale * code + bias`, product and sum each rounded to f32.
    fn packed_kernel(&mut self, packed: &Packed, window: &Window, channels: usize) -> Result<Kernel, String> {
        let Packed { bits, group_size, weight, scales, biases } = packed;
        let positions = usize::try_from(window.volume()).unwrap_or(usize::MAX);
        let sizes_of = |part: &Part| match sizes(part)[..] {
            [count, out, inner] if positions == 1 => Some((count, inner, out)),
            [count, inner, out] => Some((count, inner, out)),
            _ => None,
        };
        let wrong = |part: &Part, expected: String| {
            Err(format!("weight {:?} is {} {:?}; expected {expected}", part.name, part.dtype, part.shape))
        };
        let per_word = 32 / (*bits).max(1) as usize;
        let group = *group_size as usize;
        let order = if positions == 1 { "[1, out, words]" } else { "[positions, words, out]" };
        let Some((count, words, out)) = sizes_of(weight).filter(|_| weight.dtype == DType::U32 && group > 0) else {
            return wrong(weight, format!("u32 {order}"));
        };
        let stored = words.saturating_mul(per_word);
        if count != positions || stored < channels || stored % group != 0 {
            return wrong(
                weight,
                format!("u32 {order} of {positions} positions, {channels} channels and groups of {group}"),
            );
        }
        let groups = stored / group;
        for part in [scales, biases] {
            if sizes_of(part) != Some((positions, groups, out)) || part.dtype != scales.dtype {
                return wrong(
                    part,
                    format!("{} of {positions} positions, {groups} groups and {out} channels out", scales.dtype),
                );
            }
        }
        elements(&[positions, words, out])?;
        let words_of = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let codes: Vec<u32> = self.read(weight, words_of)?;
        let (scales, biases) = (self.floats(scales)?, self.floats(biases)?);
        // Where an element of a position and a channel out is, of `size` along the channels in.
        let place = |k: usize, o: usize, at: usize, size: usize| match positions {
            1 => o * size + at,
            _ => (k * size + at) * out + o,
        };
        let mask = u32::MAX >> (32 - bits);
        Kernel::new([positions, out, channels], |k, o, i| {
            let word = codes.get(place(k, o, i / per_word, words)).copied().unwrap_or_default();
            let code = (word >> ((i % per_word) as u32 * bits)) & mask;
            let at = place(k, o, i / group, groups);
            let (scale, bias) = (scales.get(at).copied(), biases.get(at).copied());
            scale.unwrap_or_default() * code as f32 + bias.unwrap_or_default()
        })
    }
}

/// The stored tensors that an operation binds.
fn parts(kind: &Kind) -> Vec<&Part> {
    let Kind::Weight(weight) = kind else { return Vec::new() };
    match &weight.stored {
        Stored::Dense(part) => vec![part],
        Stored::Packed(packed) => vec![&packed.weight, &packed.scales, &packed.biases],
    }
}

fn file_of(part: &Part) -> Option<&str> {
    match &part.data {
        Data::Tensor { file, .. } | Data::Range { file, .. } => Some(file),
        Data::Inline(_) | Data::Splat(_) | Data::Missing => None,
    }
}

fn sizes(part: &Part) -> Vec<usize> {
    part.shape.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect()
}

fn dense(weight: &Weight) -> Result<&Part, String> {
    match &weight.stored {
        Stored::Dense(part) => Ok(part),
        Stored::Packed(packed) => Err(format!("weight {:?} is packed; expected a dense one", packed.weight.name)),
    }
}
