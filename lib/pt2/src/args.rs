//! Arguments: from the schema's unions to those of records.

use m2m_record::{Arg, Float};

use crate::enums;
use crate::schema::{
    Argument, ConstantValue, GraphArgument, OptionalTensor, Real, SymBoolArgument, SymFloatArgument, SymIntArgument,
    TensorArgument,
};
use crate::types::device;

/// Converts an argument. `graphs` gives the ids of nested graphs in the order in which [`nested`] finds them.
///
/// # Errors
/// Enum numbers that are not known, in words.
pub fn convert<'g>(argument: &Argument<'_>, graphs: &mut impl Iterator<Item = &'g str>) -> Result<Arg, String> {
    Ok(match argument {
        Argument::None(_) => Arg::Null,
        Argument::Tensor(t) => value(t),
        Argument::Tensors(list) => Arg::List(list.iter().map(value).collect()),
        Argument::OptionalTensor(t) => optional(t),
        Argument::OptionalTensors(list) => Arg::List(list.iter().map(optional).collect()),
        Argument::NestedTensors(lists) => nest(lists, value),
        Argument::Int(n) => Arg::Int(*n),
        Argument::Ints(list) => Arg::ints(list.iter().copied()),
        Argument::IntLists(lists) => nest(lists, |n| Arg::Int(*n)),
        Argument::Float(x) => float(x),
        Argument::Floats(list) => Arg::List(list.iter().map(float).collect()),
        Argument::FloatLists(lists) => nest(lists, float),
        Argument::Bool(b) => Arg::Bool(*b),
        Argument::Bools(list) => Arg::List(list.iter().map(|b| Arg::Bool(*b)).collect()),
        Argument::Str(text) => Arg::Str(text.into()),
        Argument::Strs(list) => Arg::List(list.iter().map(|text| Arg::Str(text.into())).collect()),
        Argument::Complex(c) => Arg::Complex(Float(c.real.0), Float(c.imag.0)),
        Argument::SymInt(n) => sym_int(n),
        Argument::SymInts(list) => Arg::List(list.iter().map(sym_int).collect()),
        Argument::SymFloat(x) => sym_float(x),
        Argument::SymFloats(list) => Arg::List(list.iter().map(sym_float).collect()),
        Argument::SymBool(b) => sym_bool(b),
        Argument::SymBools(list) => Arg::List(list.iter().map(sym_bool).collect()),
        Argument::ScalarType(n) => Arg::DType(enums::scalar_type(*n).ok_or_else(|| unknown("ScalarType", *n))?),
        Argument::MemoryFormat(n) => {
            Arg::MemoryFormat(enums::memory_format(*n).ok_or_else(|| unknown("MemoryFormat", *n))?.to_owned())
        }
        Argument::Layout(n) => Arg::Layout(enums::layout(*n).ok_or_else(|| unknown("Layout", *n))?.to_owned()),
        Argument::Device(d) => Arg::Device(device(d)),
        Argument::Graph(_) => Arg::Graph(graphs.next().unwrap_or_default().to_owned()),
        Argument::CustomObj(object) => Arg::Object { name: (&object.name).into(), class: (&object.class_fqn).into() },
        Argument::Operator(target) => Arg::Op(crate::names::operator(target.as_ref()).0.into_owned()),
        Argument::Map(pairs) => {
            let mut map = m2m_record::Kwargs::new();
            for (key, argument) in &pairs.0 {
                if map.insert(key.into(), convert(argument, graphs)?).is_some() {
                    return Err(format!("key {:?} is there twice", key.as_ref()));
                }
            }
            Arg::Map(map)
        }
    })
}

/// Calls `f` with each nested graph of an argument.
pub fn nested<'p, 'a>(argument: &'p Argument<'a>, f: &mut impl FnMut(&'p GraphArgument<'a>)) {
    match argument {
        Argument::Graph(graph) => f(graph),
        Argument::Map(pairs) => pairs.0.iter().for_each(|(_, argument)| nested(argument, f)),
        _ => {}
    }
}

/// The literal of a constant input.
pub fn constant(value: &ConstantValue<'_>) -> Arg {
    match value {
        ConstantValue::None(_) => Arg::Null,
        ConstantValue::Int(n) => Arg::Int(*n),
        ConstantValue::Float(x) => float(x),
        ConstantValue::Str(text) => Arg::Str(text.into()),
        ConstantValue::Bool(b) => Arg::Bool(*b),
    }
}

fn unknown(kind: &str, number: i64) -> String {
    format!("{kind} {number} is not known")
}

fn value(t: &TensorArgument<'_>) -> Arg {
    Arg::Value((&t.name).into())
}

fn optional(t: &OptionalTensor<'_>) -> Arg {
    match t {
        OptionalTensor::Tensor(t) => value(t),
        OptionalTensor::None(_) => Arg::Null,
    }
}

fn nest<T>(lists: &[Vec<T>], one: impl Fn(&T) -> Arg) -> Arg {
    Arg::List(lists.iter().map(|list| Arg::List(list.iter().map(&one).collect())).collect())
}

fn float(x: &Real) -> Arg {
    Arg::Float(Float(x.0))
}

fn sym_int(n: &SymIntArgument<'_>) -> Arg {
    match n {
        SymIntArgument::Name(name) => Arg::Value(name.into()),
        SymIntArgument::Int(n) => Arg::Int(*n),
    }
}

fn sym_float(x: &SymFloatArgument<'_>) -> Arg {
    match x {
        SymFloatArgument::Name(name) => Arg::Value(name.into()),
        SymFloatArgument::Float(x) => float(x),
    }
}

fn sym_bool(b: &SymBoolArgument<'_>) -> Arg {
    match b {
        SymBoolArgument::Name(name) => Arg::Value(name.into()),
        SymBoolArgument::Bool(b) => Arg::Bool(*b),
    }
}
