//! The entry function: its signature, what its arguments mean, and the conditions that it checks first.

use super::cx::{Cx, Tensor, Val};
use super::emit::WeightBinding;
use super::random::Source;
use crate::error::{Error, Result};
use m2m_graph::Graph;
use m2m_mlir::{Builder, CmpI, Type, Value, attr};
use m2m_record::{
    Argument, Data, Dim, Input, InputRole, ModuleResult, OutputItem, OutputRole, ScalarKind, Type as RecordType,
};
use m2m_tensor::Expr;
use m2m_tensor::expr::Cmp;
use std::collections::HashSet;

/// Whether an input is a tensor that comes with the model.
pub fn is_state(role: InputRole) -> bool {
    matches!(role, InputRole::Parameter | InputRole::Buffer | InputRole::TensorConstant)
}

/// The name by which a runtime binds a weight: its own, or that of the first weight with the same bytes, as tied weights
/// are stored once.
fn global_name(graph: &Graph, input: &Input) -> String {
    let is_same = |other: &&Input| is_state(other.role) && other.data == input.data && other.ty == input.ty;
    let first = input.data.as_ref().filter(|d| **d != Data::Missing).and_then(|_| graph.inputs.iter().find(is_same));
    let named = first.unwrap_or(input);
    named.target.clone().unwrap_or_else(|| named.value.clone())
}

/// The last argument of a program with random operators.
fn seed(graph: &Graph) -> Argument {
    let names = || (1..).map(|n| if n == 1 { "seed".to_owned() } else { format!("seed.{n}") });
    let types = graph.types();
    let value = names().find(|name| !types.contains_key(name.as_str())).unwrap_or_default();
    let ty = RecordType::Scalar { kind: ScalarKind::Int, expr: None };
    Argument { value, role: InputRole::Seed, target: None, ty, data: None, global: None }
}

/// What the record says of the entry function.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its arguments, in signature order.
    pub arguments: Vec<Argument>,
    /// Its results.
    pub results: Vec<ModuleResult>,
}

impl Entry {
    /// The entry of a graph.
    pub fn of(graph: &Graph, binding: WeightBinding, is_random: bool) -> Entry {
        let name = graph.entry.clone().unwrap_or_else(|| "forward".into());
        Entry { name, arguments: arguments(graph, binding, is_random), results: results(graph) }
    }
}

/// What the record says of each argument, in signature order. Literals are not arguments.
fn arguments(graph: &Graph, binding: WeightBinding, is_random: bool) -> Vec<Argument> {
    let inputs = graph.inputs.iter().filter(|i| is_argument(i));
    let inputs = inputs.map(|i| Argument {
        value: i.value.clone(),
        role: i.role,
        target: i.target.clone(),
        ty: i.ty.clone(),
        data: i.data.clone(),
        global: (binding == WeightBinding::Iree && is_state(i.role)).then(|| global_name(graph, i)),
    });
    inputs.chain(is_random.then(|| seed(graph))).collect()
}

fn is_argument(input: &Input) -> bool {
    !matches!(input.role, InputRole::ConstantInput | InputRole::Token)
        && matches!(input.ty, RecordType::Tensor(_) | RecordType::Scalar { .. })
        && input.literal.is_none()
}

/// The outputs that are values for the caller: tokens order effects, which the function's operations do.
pub fn outputs(graph: &Graph) -> impl Iterator<Item = &OutputItem> {
    graph.outputs.iter().filter(|output| output.role != OutputRole::Token)
}

/// What the record says of each output.
pub fn results(graph: &Graph) -> Vec<ModuleResult> {
    let types = graph.types();
    outputs(graph)
        .map(|o| ModuleResult {
            value: o.value.clone(),
            literal: o.literal.clone(),
            role: o.role,
            target: o.target.clone(),
            ty: o.value.as_deref().and_then(|v| types.get(v)).map(|t| (*t).clone()),
        })
        .collect()
}

/// The MLIR type of a function argument or result: tensors as they are, Python numbers as i64, f64, i1.
pub fn signature_type<'c>(cx: &Cx<'c>, ty: &RecordType) -> Result<Type<'c>> {
    match ty {
        RecordType::Tensor(t) => cx.tensor_type(t.dtype, &t.shape),
        RecordType::Scalar { kind: ScalarKind::Int, .. } => Ok(cx.b.elem("i64")?),
        RecordType::Scalar { kind: ScalarKind::Float, .. } => Ok(cx.b.elem("f64")?),
        RecordType::Scalar { kind: ScalarKind::Bool, .. } => Ok(cx.b.elem("bool")?),
        other => Err(Error::unsupported(format!("{other:?} as an argument or result"))),
    }
}

/// Declares a global for each weight that IREE is to bind by name.
pub fn globals(cx: &Cx<'_>, arguments: &[Argument]) -> Result<()> {
    let mut declared = HashSet::new();
    for argument in arguments {
        let Some(name) = argument.global.as_ref().filter(|name| declared.insert(name.as_str())) else { continue };
        global(&cx.b, name, signature_type(cx, &argument.ty)?)?;
    }
    Ok(())
}

/// Declares the global of one weight.
pub fn global<'c>(b: &Builder<'c>, name: &str, ty: Type<'c>) -> Result<()> {
    let context = b.context();
    let quoted = |s: &str| format!("\"{}\"", s.replace('\\', "\\5C").replace('"', "\\22"));
    let value = format!("#flow.parameter.named<\"model\"::{}> : {ty}", quoted(name));
    b.op(
        "ml_program.global",
        &[],
        &[],
        &[
            ("sym_name", attr::string(context, name)),
            ("sym_visibility", attr::string(context, "private")),
            ("type", attr::r#type(ty)),
            ("value", attr::parse(context, &value)?),
        ],
    )?;
    Ok(())
}

/// Defines every input of the graph: function arguments, loaded globals, literals.
pub fn define_inputs<'c>(cx: &mut Cx<'c>, graph: &Graph, arguments: &[Argument], values: &[Value<'c>]) -> Result<()> {
    let mut values = values.iter().copied();
    for argument in arguments {
        let value = match &argument.global {
            Some(name) => {
                let ty = signature_type(cx, &argument.ty)?;
                let symbol = attr::symbol(cx.b.context(), name);
                cx.b.op1("ml_program.global_load_const", &[], ty, &[("global", symbol)])?
            }
            None => values.next().ok_or_else(|| Error::Graph("more inputs than arguments".into()))?,
        };
        if argument.role == InputRole::Seed {
            cx.random = Some(Source { seed: value, taken: 0 });
            continue;
        }
        let defined = match &argument.ty {
            RecordType::Tensor(t) => Val::Tensor(Tensor { value, dtype: t.dtype, shape: t.shape.clone() }),
            RecordType::Scalar { kind: ScalarKind::Int, expr } => {
                let value = cx.b.index_cast(value, cx.b.index_type())?;
                if let Some(expr) = expr.as_ref().and_then(|e| e.parse::<Expr>().ok()) {
                    cx.symbols.bind_from(&cx.b, &expr, value)?;
                }
                Val::Scalar(ScalarKind::Int, value)
            }
            RecordType::Scalar { kind, .. } => Val::Scalar(*kind, value),
            _ => Val::None,
        };
        cx.define(&argument.value, defined)?;
    }
    for input in graph.inputs.iter().filter(|i| !is_argument(i)) {
        cx.define(&input.value, Val::None)?;
    }
    Ok(())
}

/// What must hold of the inputs.
pub enum Check {
    /// Of an input's axis, that it has a size.
    Size { input: String, axis: usize, size: Expr },
    /// A condition over symbols.
    Condition(Expr),
}

/// What the program was exported for, each with what to say where it does not hold: dimensions that must agree with one
/// another, ranges of symbols, and guards.
pub fn checks(graph: &Graph) -> Result<Vec<(Check, String)>> {
    let mut checks = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for input in graph.inputs.iter().filter(|i| i.role == InputRole::UserInput) {
        let Some(t) = input.ty.as_tensor() else { continue };
        for (axis, dim) in t.shape.iter().enumerate() {
            let Dim::Expr(text) = dim else { continue };
            let size: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
            // Where a symbol stands first, it is that size.
            if matches!(&size, Expr::Sym(name) if seen.insert(name.clone())) {
                continue;
            }
            let message = format!("{}: dimension {axis} must be {text}", input.value);
            checks.push((Check::Size { input: input.value.clone(), axis, size }, message));
        }
    }
    for symbol in &graph.symbols {
        let name = &symbol.name;
        let limit = |op, n| Check::Condition(Expr::Cmp(op, Box::new(Expr::sym(name)), Box::new(Expr::Int(n))));
        // As PyTorch's own entry check: a lower bound of 2 only says that 0 and 1 were not specialized on.
        if let Some(min) = symbol.min.filter(|min| *min > 2) {
            checks.push((limit(Cmp::Ge, min), format!("{name} must be at least {min}")));
        }
        if let Some(max) = symbol.max {
            checks.push((limit(Cmp::Le, max), format!("{name} must be at most {max}")));
        }
    }
    for guard in &graph.guards {
        // What is not an expression over the graph's symbols cannot be checked here, and capture has said so.
        let Ok(expr) = guard.expr.parse::<Expr>() else { continue };
        if !matches!(&expr, Expr::Cmp(Cmp::Eq, a, b) if a == b) {
            checks.push((Check::Condition(expr), guard.message.clone().unwrap_or_else(|| guard.expr.clone())));
        }
    }
    Ok(checks)
}

/// Checks what must hold of the inputs, as far as its symbols have values.
pub fn assertions(cx: &mut Cx<'_>, graph: &Graph) -> Result<()> {
    for (check, message) in checks(graph)? {
        let holds = match check {
            Check::Size { input, axis, size } if cx.symbols.knows(&size) => {
                let actual = cx.tensor(&input)?.value;
                let actual = cx.b.dim(actual, axis)?;
                let expected = cx.symbols.value(&cx.b, &size)?;
                cx.b.cmpi(CmpI::Eq, actual, expected)?
            }
            Check::Condition(expr) if cx.symbols.knows(&expr) => cx.symbols.condition(&cx.b, &expr)?,
            _ => continue,
        };
        cx.b.assert(holds, &message)?;
    }
    Ok(())
}
