//! Operators that call nested graphs: branches, loops, and regions with another mode.

use crate::error::Error;
use crate::program::{Program, Watch};
use crate::symbols::Symbols;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::{Arg, DType};

/// Most iterations of a loop whose end depends on data; a bound on programs that never end.
const MAX_ITERATIONS: usize = 100_000_000;

/// A call of nested graphs, by their ids.
pub enum Region {
    /// `cond(predicate, true, false, [operands])`.
    Cond(String, String),
    /// `while_loop(condition, body, [carried], [additional])`.
    While(String, String),
    /// `map_impl(body, [mapped], [others])`.
    Map(String),
    /// `scan(combine, [init], [xs], [additional])`.
    Scan(String),
    /// `associative_scan(combine, [xs], [additional])`: sums from the first row on, where `combine` is the addition.
    AssociativeScan(String),
    /// A graph that is executed once, in place.
    Inline(String),
    /// The same under autocast.
    Autocast {
        /// The device.
        device: String,
        /// The dtype to cast to; the device's own if none.
        dtype: Option<DType>,
        /// Whether autocast is on.
        is_enabled: bool,
        /// Whether casts of weights are kept.
        is_cached: bool,
        /// The graph.
        body: String,
    },
}

impl Region {
    /// Reads the arguments of a `higher_order` operator; what is left are its operands.
    pub fn new(name: &str, args: &[Arg]) -> Result<(Region, Vec<Arg>), Error> {
        let wrong = || Error::value(format!("arguments that higher_order.{name} does not have: {args:?}"));
        let region = match (name, args) {
            ("cond", [predicate, Arg::Graph(yes), Arg::Graph(no), rest @ ..]) => {
                let operands = rest.first().cloned().unwrap_or(Arg::List(Vec::new()));
                return Ok((Region::Cond(yes.clone(), no.clone()), vec![predicate.clone(), operands]));
            }
            ("while_loop", [Arg::Graph(condition), Arg::Graph(body), rest @ ..]) => {
                (Region::While(condition.clone(), body.clone()), rest.to_vec())
            }
            ("map_impl" | "map", [Arg::Graph(body), rest @ ..]) => (Region::Map(body.clone()), rest.to_vec()),
            ("scan", [Arg::Graph(combine), rest @ ..]) => {
                // Older exports state the dimension and the direction, which are always these.
                let is_list = |arg: &&Arg| matches!(arg, Arg::List(_));
                if rest.iter().any(|arg| !matches!(arg, Arg::List(_) | Arg::Int(0) | Arg::Bool(false))) {
                    return Err(wrong());
                }
                (Region::Scan(combine.clone()), rest.iter().filter(is_list).cloned().collect())
            }
            ("associative_scan", [Arg::Graph(combine), xs @ Arg::List(_), rest @ ..]) => {
                let additional = rest.first().cloned().unwrap_or(Arg::List(Vec::new()));
                return Ok((Region::AssociativeScan(combine.clone()), vec![xs.clone(), additional]));
            }
            ("wrap_with_set_grad_enabled", [Arg::Bool(_), Arg::Graph(body), operands @ ..]) => {
                (Region::Inline(body.clone()), operands.to_vec())
            }
            ("invoke_subgraph", [Arg::Graph(body), Arg::Str(_), operands @ ..])
            | ("wrap" | "tag_activation_checkpoint", [Arg::Graph(body), operands @ ..]) => {
                (Region::Inline(body.clone()), operands.to_vec())
            }
            ("strict_mode" | "run_const_graph", [Arg::Graph(body), Arg::List(operands)]) => {
                (Region::Inline(body.clone()), operands.clone())
            }
            (
                "wrap_with_autocast",
                [Arg::Str(device), dtype, Arg::Bool(is_enabled), cached, Arg::Graph(body), operands @ ..],
            ) => {
                let dtype = match dtype {
                    Arg::DType(dtype) => Some(*dtype),
                    Arg::Null => None,
                    _ => return Err(wrong()),
                };
                let is_cached = !matches!(cached, Arg::Bool(false));
                let device = if device.starts_with("cuda") { "cpu" } else { device }.to_owned();
                let region = Region::Autocast { device, dtype, is_enabled: *is_enabled, is_cached, body: body.clone() };
                (region, operands.to_vec())
            }
            ("cond" | "while_loop" | "wrap_with_set_grad_enabled" | "wrap_with_autocast", _) => return Err(wrong()),
            _ => return Err(Error::value("this higher-order operator is not executed by the torch engine")),
        };
        Ok(region)
    }

    /// Executes it; its results are flat.
    pub fn run(
        &self,
        program: &Program<'_>,
        operands: Vec<Value>,
        outer: &Symbols,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Error> {
        let mut call = |graph: &str, inputs: Vec<Value>| program.run_nested(graph, inputs, outer, watch);
        match self {
            Region::Cond(yes, no) => {
                let [predicate, operands] = lists(operands)?;
                let is_true = truth(program, predicate.first().unwrap_or(&Value::None))?;
                call(if is_true { yes } else { no }, operands)
            }
            Region::While(condition, body) => {
                let [mut carried, additional] = lists(operands)?;
                for _ in 0..MAX_ITERATIONS {
                    let inputs = || [carried.as_slice(), &additional].concat();
                    let again = call(condition, inputs())?;
                    if !truth(program, again.first().unwrap_or(&Value::None))? {
                        return Ok(carried);
                    }
                    carried = call(body, inputs())?;
                }
                Err(Error::value(format!("a loop that has not ended after {MAX_ITERATIONS} rounds")))
            }
            Region::Map(body) => {
                let [mapped, others] = lists(operands)?;
                let mut rows = Vec::new();
                for row in 0..length(&mapped)? {
                    rows.push(call(body, [slices(program, &mapped, row)?.as_slice(), &others].concat())?);
                }
                stacked(program, rows)
            }
            Region::Scan(combine) => {
                let [mut carried, xs, additional] = lists(operands)?;
                let mut rows = Vec::new();
                for row in 0..length(&xs)? {
                    let inputs = [carried.as_slice(), &slices(program, &xs, row)?, &additional].concat();
                    let mut results = call(combine, inputs)?;
                    if results.len() < carried.len() {
                        return Err(Error::value("a scan whose graph returns fewer values than it carries"));
                    }
                    rows.push(results.split_off(carried.len()));
                    carried = results;
                }
                carried.extend(stacked(program, rows)?);
                Ok(carried)
            }
            Region::AssociativeScan(combine) => {
                let [xs, additional] = lists(operands)?;
                let mut rows: Vec<Vec<Value>> = Vec::new();
                for row in 0..length(&xs)? {
                    let next = slices(program, &xs, row)?;
                    rows.push(match rows.last() {
                        None => next,
                        Some(before) => call(combine, [before.as_slice(), &next, &additional].concat())?,
                    });
                }
                stacked(program, rows)
            }
            Region::Inline(body) => call(body, operands),
            Region::Autocast { device, dtype, is_enabled, is_cached, body } => {
                program.engine().with_autocast(device, *dtype, *is_enabled, *is_cached, || call(body, operands))
            }
        }
    }
}

/// Operands that are lists; a missing last one is empty, a lone value is a list of it.
fn lists<const N: usize>(operands: Vec<Value>) -> Result<[Vec<Value>; N], Error> {
    let mut lists: Vec<Vec<Value>> = operands
        .into_iter()
        .map(|operand| match operand {
            Value::List(items) => items,
            other => vec![other],
        })
        .collect();
    if lists.len() < N {
        lists.push(Vec::new());
    }
    lists.try_into().map_err(|lists: Vec<_>| Error::value(format!("{} lists of operands; expected {N}", lists.len())))
}

/// Whether a predicate holds.
fn truth(program: &Program<'_>, value: &Value) -> Result<bool, Error> {
    let number = match value {
        Value::Tensor(_) => {
            program.engine().call("aten.item.default", std::slice::from_ref(value))?.pop().unwrap_or(Value::None)
        }
        other => other.clone(),
    };
    Ok(number.float()? != 0.0)
}

/// How many rows the mapped tensors have.
fn length(mapped: &[Value]) -> Result<i64, Error> {
    let first = mapped.first().ok_or_else(|| Error::value("nothing to map over"))?.tensor()?;
    first.shape()?.first().copied().ok_or_else(|| Error::value("a tensor without dimensions to map over"))
}

/// One row of each.
fn slices(program: &Program<'_>, mapped: &[Value], row: i64) -> Result<Vec<Value>, Error> {
    let slice = |value: &Value| {
        let row = program.engine().tensor("aten.select.int", &[value.clone(), Value::Int(0), Value::Int(row)])?;
        Ok(Value::Tensor(row))
    };
    mapped.iter().map(slice).collect()
}

/// Rows put together again, result by result.
fn stacked(program: &Program<'_>, rows: Vec<Vec<Value>>) -> Result<Vec<Value>, Error> {
    let count =
        rows.first().map(Vec::len).ok_or_else(|| Error::value("a map over no rows, whose results have no shape"))?;
    let stack = |k: usize| {
        let parts = rows.iter().map(|row| row.get(k).cloned().unwrap_or(Value::None)).collect();
        let stacked: Tensor = program.engine().tensor("aten.stack.default", &[Value::List(parts), Value::Int(0)])?;
        Ok(Value::Tensor(stacked))
    };
    (0..count).map(stack).collect()
}
