//! Products with matrices of 4-bit and 8-bit weights.

use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Packed as this machine packs, or as it is stored everywhere.
pub fn packed(draw: &mut Draw<'_>) -> Drawn {
    let rows = draw.dice.between(1, 6);
    match draw.dice.between(0, 5) {
        0..=2 => grouped(draw, rows),
        3 => by_channel(draw, rows),
        _ => dynamic(draw, rows),
    }
}

/// `_weight_int4pack_mm_for_cpu` of any bytes, or of what the graph packs.
fn grouped(draw: &mut Draw<'_>, rows: i64) -> Drawn {
    let dtype = draw.dice.one(&[DType::F32, DType::BF16, DType::BF16, DType::F16]);
    let group = draw.dice.one(&[32, 32, 64]);
    let (groups, outputs) = (draw.dice.between(1, 3), 16 * draw.dice.between(1, 12));
    let columns = groups * group;
    let w = if draw.dice.once_in(2) {
        let numbers = draw.input(DType::I32, &[outputs, columns], Range::Between(0, 16));
        draw.call("aten._convert_weight_to_int4pack_for_cpu.default", vec![numbers.arg(), Arg::Int(2)])?
    } else {
        draw.input(DType::U8, &[outputs, columns / 2], Range::Between(0, 256))
    };
    let x = draw.input(dtype, &[rows, columns], Range::Unit);
    let scales = draw.input(dtype, &[groups, outputs, 2], Range::Unit);
    draw.call("aten._weight_int4pack_mm_for_cpu.default", vec![x.arg(), w.arg(), Arg::Int(group), scales.arg()])
        .map(drop)
}

/// `_weight_int8pack_mm`, in whole vectors: of other sizes PyTorch 2.13 reads beyond the end.
fn by_channel(draw: &mut Draw<'_>, rows: i64) -> Drawn {
    let dtype = draw.dice.one(&[DType::F32, DType::BF16, DType::F16]);
    let (columns, outputs) = (32 * draw.dice.between(1, 4), 4 * draw.dice.between(1, 12));
    let x = draw.input(dtype, &[rows, columns], Range::Unit);
    let w = draw.input(DType::I8, &[outputs, columns], Range::Between(-9, 9));
    let scales = draw.input(dtype, &[outputs], Range::Unit);
    draw.call("aten._weight_int8pack_mm.default", vec![x.arg(), w.arg(), scales.arg()]).map(drop)
}

/// `_dyn_quant_matmul_4bit`, by channel and by group.
fn dynamic(draw: &mut Draw<'_>, rows: i64) -> Drawn {
    let (groups, outputs) = (draw.dice.between(1, 4), draw.dice.between(1, 40));
    let group = if groups == 1 { 2 * draw.dice.between(1, 40) } else { 32 * draw.dice.between(1, 3) };
    let dtype = if groups == 1 { draw.dice.one(&[DType::F32, DType::BF16]) } else { DType::F32 };
    let columns = groups * group;
    let sizes = [group, columns, outputs].map(Arg::Int);
    let w = draw.input(DType::U8, &[outputs, columns / 2], Range::Between(0, 256));
    let scales = draw.input(DType::F32, &[outputs, groups], Range::Unit);
    let bias = if draw.dice.once_in(2) { draw.input(DType::F32, &[outputs], Range::Plain).arg() } else { Arg::Null };
    let args = [w.arg(), scales.arg(), bias].into_iter().chain(sizes.clone()).collect();
    let stored = draw.call("aten._dyn_quant_pack_4bit_weight.default", args)?;
    let x = draw.input(dtype, &[rows, columns], Range::Plain);
    let args = [x.arg(), stored.arg()].into_iter().chain(sizes).collect();
    draw.call("aten._dyn_quant_matmul_4bit.default", args).map(drop)
}
