//! `torchvision`: what models of detection need, by the definitions of its CPU kernels.

use super::Given;
use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::DType;

/// Boxes by falling score, without those that overlap a kept one by more than `iou_threshold`: `boxes: [n, 4]` as x1, y1,
/// x2, y2, `scores: [n]`; the result holds indices.
pub fn nms(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (boxes, scores) = (given.tensor("boxes")?, given.tensor("scores")?);
    let (shape, count) = (boxes.shape()?, scores.shape()?);
    let &[n, 4] = shape.as_slice() else {
        return Err(Error::value(format!("boxes of shape {shape:?}; expected [n, 4]")));
    };
    if count != [n] || boxes.dtype()? != DType::F32 {
        return Err(Error::value(format!("{boxes:?} and {scores:?}; expected f32 [n, 4] and [n]")));
    }
    let threshold = given.float("iou_threshold")?;
    let boxes = floats(boxes)?;
    let args = [scores.into(), Value::Bool(true), Value::Int(0), Value::Bool(true)];
    let sorted = engine.call("aten.sort.stable", &args)?;
    let order = sorted.get(1).unwrap_or(&Value::None).tensor()?.to_bytes()?;
    let order = order.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
    let mut kept: Vec<i64> = Vec::new();
    for candidate in order {
        let overlaps = |known: &i64| {
            let pair = (corners(&boxes, *known), corners(&boxes, candidate));
            matches!(pair, (Some(a), Some(b)) if overlap(a, b) > threshold)
        };
        if !kept.iter().any(overlaps) {
            kept.push(candidate);
        }
    }
    let bytes: Vec<u8> = kept.iter().flat_map(|index| index.to_le_bytes()).collect();
    Ok(vec![engine.copied(DType::I64, &[kept.len() as i64], &bytes)?.into()])
}

fn floats(tensor: &Tensor) -> Result<Vec<f32>, Error> {
    Ok(tensor.to_bytes()?.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn corners(boxes: &[f32], index: i64) -> Option<[f32; 4]> {
    let at = usize::try_from(index).ok()?.checked_mul(4)?;
    boxes.get(at..at + 4)?.try_into().ok()
}

/// Intersection over union, in f32 as the kernel has it.
fn overlap(a: [f32; 4], b: [f32; 4]) -> f64 {
    let area = |[x1, y1, x2, y2]: [f32; 4]| (x2 - x1) * (y2 - y1);
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let inter = width * height;
    f64::from(inter / (area(a) + area(b) - inter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_intersection_over_union() {
        // 1 by 1 common of 4 + 4 - 1.
        assert_eq!(overlap([0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]), f64::from(1.0f32 / 7.0));
        assert_eq!(overlap([0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]), 0.0);
    }
}
