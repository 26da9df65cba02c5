//! Operators that write, and what they are without writing.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::Expander;
use crate::promote::{Participant, float_of, result_type};
use crate::schema::{self, Schema};
use crate::value::O;
use m2m_record::{Arg, DType, Node};

/// Whether a call writes to memory. `detach_` only changes what autograd sees.
pub(crate) fn is_write(node: &Node, schema: &Schema) -> bool {
    node.op != "aten.detach_.default" && (schema.is_mutable() || batch_norm_writes(node))
}

/// Whether a normalisation in training moves its running statistics, of which most schemas say nothing.
pub(crate) fn batch_norm_writes(node: &Node) -> bool {
    let flag = match node.op.as_str() {
        "aten.batch_norm.default" | "aten.native_batch_norm.default" => "training",
        "aten.instance_norm.default" => "use_input_stats",
        "aten._native_batch_norm_legit.default" | "aten._batch_norm_with_update.default" => return true,
        _ => return false,
    };
    crate::bind::bind(node)
        .is_ok_and(|b| b.bool(flag).unwrap_or(false) && b.opt_tensor("running_mean").is_ok_and(|m| m.is_some()))
}

/// `aten.add.Tensor` for `aten.add_.Tensor`.
pub(crate) fn functional_name(op: &str) -> Result<String, Error> {
    let mut parts = op.splitn(3, '.');
    let (Some(space), Some(name), Some(overload)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::NoSchema { op: op.to_owned() });
    };
    let plain = match name {
        "__iand__" => "bitwise_and",
        "__ior__" => "bitwise_or",
        "__ixor__" => "bitwise_xor",
        "__ilshift__" => "__lshift__",
        "__irshift__" => "__rshift__",
        "normal_" => "normal_functional",
        _ => name.trim_end_matches('_'),
    };
    // Overloads that are called otherwise; `pow.Scalar` even means something else.
    let overload = match (plain, overload) {
        ("bernoulli", "float") => "p",
        ("floor_divide", "Tensor") => "default",
        ("ldexp", "default") => "Tensor",
        ("pow", "Scalar") => "Tensor_Scalar",
        ("pow", "Tensor") => "Tensor_Tensor",
        _ => overload,
    };
    if op == "aten.arange.start_out" {
        return Ok("aten.arange.start_step".to_owned());
    }
    let functional = format!("{space}.{plain}.{overload}");
    match schema::find(&functional) {
        Some(found) if plain != name && !found.is_mutable() => Ok(functional),
        _ => Err(Error::unsupported(format!("{op} writes to its arguments and has no functional form"))),
    }
}

/// The dtype that the functional form gives before it is cast to that of the tensor written to.
pub(crate) fn written_dtype(e: &Expander<'_, '_>, b: &Bound<'_>, own: DType) -> Result<DType, Error> {
    let name = b.op().split('.').nth(1).unwrap_or("").trim_end_matches('_');
    let promoted = || -> Result<DType, Error> {
        let mut participants: Vec<Participant> = Vec::new();
        for arg in
            b.schema.args.iter().filter(|a| matches!(a.name, "self" | "other" | "exponent" | "tensor1" | "tensor2"))
        {
            let operand = match b.arg(arg.name)? {
                Arg::Value(_) => e.operand(b, arg.name)?,
                number => O::N(number.clone()),
            };
            participants.push(operand.participant()?);
        }
        Ok(result_type(&participants)?.unwrap_or(own))
    };
    match name {
        "add" | "sub" | "mul" | "pow" | "remainder" | "fmod" | "floor_divide" | "addcmul" | "bitwise_and"
        | "bitwise_or" | "bitwise_xor" | "subtract" | "multiply" => promoted(),
        "div" if b.has("rounding_mode") && b.str_or("rounding_mode")?.is_some() => promoted(),
        "div" | "true_divide" | "divide" | "addcdiv" | "atan2" => promoted().map(float_of),
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "logical_and" | "logical_or" | "logical_xor" | "logical_not" => {
            Ok(DType::Bool)
        }
        _ => Ok(own),
    }
}
