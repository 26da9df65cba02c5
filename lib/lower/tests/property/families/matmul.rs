//! Contractions.

use super::{FLOATS, INTS};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Equations, each with the axes of its operands.
const EQUATIONS: &[(&str, &[&str])] = &[
    ("ij,jk->ik", &["ij", "jk"]),
    ("bij,bkj->bik", &["bij", "bkj"]),
    ("ij,ij->", &["ij", "ij"]),
    ("ij->ji", &["ij"]),
    ("ii->i", &["ii"]),
    ("ii", &["ii"]),
    ("i,j->ij", &["i", "j"]),
    ("bhid,bhjd->bhij", &["bhid", "bhjd"]),
    ("ij,jk,kl->il", &["ij", "jk", "kl"]),
    ("...ij,...jk->...ik", &["bij", "bjk"]),
    ("abc,cd", &["abc", "cd"]),
    ("ijk,k->ij", &["ijk", "k"]),
    ("ab,cb->ca", &["ab", "cb"]),
];

/// Products of matrices and vectors.
pub fn matmul(draw: &mut Draw<'_>) -> Drawn {
    let dtype = if draw.dice.once_in(4) { draw.dice.one(INTS) } else { draw.dice.one(FLOATS) };
    let sizes = draw.shape(5);
    let [b, m, k, n, c] = [sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]];
    match draw.dice.between(0, 8) {
        0 | 1 => {
            let left = draw.dice.one(&[vec![k], vec![m, k], vec![b, m, k], vec![c, b, m, k], vec![1, m, k]]);
            let right = draw.dice.one(&[vec![k], vec![k, n], vec![b, k, n], vec![c, 1, k, n], vec![1, k, n]]);
            let (x, y) = (draw.input(dtype, &left, Range::Plain), draw.input(dtype, &right, Range::Plain));
            draw.call("aten.matmul.default", vec![x.arg(), y.arg()]).map(drop)
        }
        2 => {
            let bias = draw.dice.one(&[vec![n], vec![m, n], vec![1, n], vec![m, 1]]);
            let bias = draw.input(dtype, &bias, Range::Plain);
            let (x, y) = (draw.input(dtype, &[m, k], Range::Plain), draw.input(dtype, &[k, n], Range::Plain));
            let scales = [draw.dice.between(0, 3), draw.dice.between(-1, 3)].map(Arg::Int);
            let [beta, alpha] = scales;
            draw.call("aten.addmm.default", vec![bias.arg(), x.arg(), y.arg(), beta, alpha]).map(drop)
        }
        3 => {
            let bias = draw.input(dtype, &[b, m, n], Range::Plain);
            let (x, y) = (draw.input(dtype, &[b, m, k], Range::Plain), draw.input(dtype, &[b, k, n], Range::Plain));
            let op = draw.dice.one(&["bmm", "baddbmm"]);
            let args = if op == "bmm" { vec![x.arg(), y.arg()] } else { vec![bias.arg(), x.arg(), y.arg()] };
            draw.call(&format!("aten.{op}.default"), args).map(drop)
        }
        4 | 5 => {
            let shape = draw.dice.one(&[vec![k], vec![m, k], vec![b, m, k]]);
            let (x, weight) = (draw.input(dtype, &shape, Range::Plain), draw.input(dtype, &[n, k], Range::Plain));
            let bias = draw.input(dtype, &[n], Range::Plain);
            let bias = if draw.dice.once_in(2) { Arg::Null } else { bias.arg() };
            draw.call("aten.linear.default", vec![x.arg(), weight.arg(), bias]).map(drop)
        }
        6 => {
            let (equation, operands) = draw.dice.one(EQUATIONS);
            let size = |axis: u8| sizes[usize::from(axis) % sizes.len()];
            let shapes: Vec<Vec<i64>> = operands.iter().map(|axes| axes.bytes().map(size).collect()).collect();
            let dtype = if dtype.is_float() { dtype } else { DType::F32 };
            let operands: Vec<_> = shapes.iter().map(|shape| draw.input(dtype, shape, Range::Plain)).collect();
            draw.call("aten.einsum.default", vec![Arg::from(equation), super::list(&operands)]).map(drop)
        }
        _ => {
            let op = draw.dice.one(&["mv", "dot", "outer", "mm", "kron"]);
            let (left, right) = match op {
                "mv" => (vec![m, k], vec![k]),
                "dot" => (vec![k], vec![k]),
                "outer" => (vec![m], vec![n]),
                "mm" => (vec![m, k], vec![k, n]),
                _ => (vec![m, k], vec![n, 2]),
            };
            let (x, y) = (draw.input(dtype, &left, Range::Plain), draw.input(dtype, &right, Range::Plain));
            draw.call(&format!("aten.{op}.default"), vec![x.arg(), y.arg()]).map(drop)
        }
    }
}
