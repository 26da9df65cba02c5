//! A graph made ready for execution: operators found, values numbered, arguments in the order of schemas, and for each
//! step the values that nothing reads after it.

use crate::defined::{self, Definition};
use crate::engine::{Engine, Operator};
use crate::error::Error;
use crate::functional::Functional;
use crate::region::Region;
use crate::symbolic;
use crate::tensor::code;
use crate::value::Value;
use m2m_graph::Graph;
use m2m_record::{Arg, Node, OutputItem, Type};
use m2m_tensor::Expr;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An argument, as far as it is known before execution.
pub enum Template {
    /// Not given: the schema's default.
    Absent,
    /// A constant.
    Constant(Value),
    /// A value of the graph, by its number.
    Slot(usize),
    /// An expression over symbols.
    Symbolic(Expr),
    /// A list of any of them.
    List(Vec<Template>),
}

/// What a step does.
pub enum Action {
    /// Calls an operator of the dispatcher.
    Call(Rc<Operator>, Vec<Template>),
    /// Calculates with symbols.
    Symbolic(String, Vec<Template>),
    /// Computes an operator that the C++ library lacks, by its definition.
    Defined(&'static Definition, Vec<Template>),
    /// Executes nested graphs.
    Region(Region, Vec<Template>),
    /// Calls an operator that writes on copies of what it writes to.
    Functional(Functional),
    /// Does something after the effects before it; its results follow a token.
    Effect { action: Box<Action>, is_void: bool },
    /// Takes an inner tensor of a tensor subclass, by its name among the stream's tensors.
    Inner(String),
}

/// One node, ready.
pub struct Step {
    /// The node's place in its graph.
    pub node: usize,
    /// What it does.
    pub action: Action,
    /// Numbers of its results; none for those that are absent.
    pub results: Vec<Option<usize>>,
    /// Results whose types bind symbols.
    pub binds: Vec<usize>,
    /// Values that are not needed after it.
    pub frees: Vec<usize>,
}

/// Where an output comes from.
pub enum Source {
    /// A value.
    Slot(usize),
    /// A literal.
    Literal(Value),
}

/// A graph, ready.
pub struct Body<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// How many values it has.
    pub slots: usize,
    /// In order.
    pub steps: Vec<Step>,
    /// In the order of the graph's outputs.
    pub outputs: Vec<Source>,
}

impl<'g> Body<'g> {
    /// Makes a graph ready, or says of every node what stands in the way.
    pub fn new(engine: &Engine, graph: &'g Graph) -> Result<Body<'g>, Vec<Error>> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for input in &graph.inputs {
            numbers.insert(&input.value, numbers.len());
        }
        let mut known: HashSet<&str> = HashSet::new();
        graph.inputs.iter().for_each(|input| mention(&input.ty, &graph.symbols, &mut known));
        let (mut steps, mut errors) = (Vec::new(), Vec::new());
        for (at, node) in graph.nodes.iter().enumerate() {
            let action = action(engine, graph, node, &numbers);
            let binds = (0..node.results.len()).filter(|k| {
                let before = known.len();
                mention(&node.results[*k].ty, &graph.symbols, &mut known);
                known.len() > before
            });
            let binds = binds.collect();
            let mut results = Vec::with_capacity(node.results.len());
            for result in &node.results {
                results.push(result.value.as_deref().map(|name| {
                    let number = numbers.len();
                    *numbers.entry(name).or_insert(number)
                }));
            }
            match action {
                Ok(action) => steps.push(Step { node: at, action, results, binds, frees: Vec::new() }),
                Err(error) => errors.push(placed(node, error)),
            }
        }
        let outputs: Result<Vec<Source>, Error> = graph.outputs.iter().map(|item| source(item, &numbers)).collect();
        match outputs {
            Ok(outputs) if errors.is_empty() => {
                let mut body = Body { graph, slots: numbers.len(), steps, outputs };
                body.find_last_uses();
                Ok(body)
            }
            Ok(_) => Err(errors),
            Err(error) => Err(errors.into_iter().chain([error]).collect()),
        }
    }

    /// Notes at every step which values nothing reads after it.
    fn find_last_uses(&mut self) {
        let mut is_live = vec![false; self.slots];
        for output in &self.outputs {
            if let Source::Slot(slot) = output {
                is_live[*slot] = true;
            }
        }
        for step in self.steps.iter_mut().rev() {
            let mut last = |slot: usize| {
                if !std::mem::replace(&mut is_live[slot], true) {
                    step.frees.push(slot);
                }
            };
            step.results.iter().flatten().for_each(|slot| last(*slot));
            step.action.for_each_slot(&mut last);
        }
    }
}

impl Action {
    /// Calls `f` with every value that it reads.
    fn for_each_slot(&self, f: &mut impl FnMut(usize)) {
        match self {
            Action::Call(_, args) | Action::Symbolic(_, args) | Action::Defined(_, args) | Action::Region(_, args) => {
                args.iter().for_each(|arg| arg.for_each_slot(f))
            }
            Action::Functional(call) => call.templates().for_each(|arg| arg.for_each_slot(f)),
            Action::Effect { action, .. } => action.for_each_slot(f),
            Action::Inner(_) => {}
        }
    }
}

impl Template {
    /// Calls `f` with every value in it.
    fn for_each_slot(&self, f: &mut impl FnMut(usize)) {
        match self {
            Template::Slot(slot) => f(*slot),
            Template::List(items) => items.iter().for_each(|item| item.for_each_slot(f)),
            Template::Absent | Template::Constant(_) | Template::Symbolic(_) => {}
        }
    }
}

/// An error with the node that it is about.
pub fn placed(node: &Node, error: Error) -> Error {
    match error {
        Error::Node { .. } => error,
        other => Error::Node { node: node.node.clone(), op: node.op.clone(), message: other.to_string() },
    }
}

/// Adds the symbols that a type mentions.
fn mention<'g>(ty: &'g Type, symbols: &'g [m2m_record::Symbol], known: &mut HashSet<&'g str>) {
    let mut texts: Vec<&str> = Vec::new();
    match ty {
        Type::Tensor(t) => texts.extend(t.shape.iter().filter_map(|d| match d {
            m2m_record::Dim::Expr(text) => Some(text.as_str()),
            m2m_record::Dim::Int(_) => None,
        })),
        Type::Scalar { expr: Some(text), .. } => texts.push(text),
        _ => {}
    }
    for expr in texts.iter().filter_map(|text| text.parse::<Expr>().ok()) {
        expr.for_each_symbol(&mut |name| {
            known.extend(symbols.iter().find(|s| s.name == name).map(|s| s.name.as_str()))
        });
    }
}

fn source(item: &OutputItem, numbers: &HashMap<&str, usize>) -> Result<Source, Error> {
    match (&item.value, &item.literal) {
        (Some(name), _) => number(numbers, name).map(Source::Slot),
        (None, Some(literal)) => constant(literal).map(Source::Literal),
        (None, None) => Ok(Source::Literal(Value::None)),
    }
}

fn number(numbers: &HashMap<&str, usize>, name: &str) -> Result<usize, Error> {
    numbers.get(name).copied().ok_or_else(|| Error::value(format!("value {name:?} is not defined before it is used")))
}

fn action(engine: &Engine, graph: &Graph, node: &Node, numbers: &HashMap<&str, usize>) -> Result<Action, Error> {
    let op = node.op.as_str();
    if op == "higher_order.with_effects" {
        let [_, Arg::Op(inner), args @ ..] = node.args.as_slice() else {
            return Err(Error::value("expected a token and an operator"));
        };
        let inner = Node { op: inner.clone(), args: args.to_vec(), ..node.clone() };
        // Where the operator returns nothing, `None` may stand behind the token.
        let is_void = node.results.get(1).is_some_and(|result| result.ty == Type::None);
        return Ok(Action::Effect { action: Box::new(action(engine, graph, &inner, numbers)?), is_void });
    }
    if op == "higher_order.auto_functionalized" || op == "higher_order.auto_functionalized_v2" {
        return Functional::new(engine, node, &|arg| template(arg, numbers)).map(Action::Functional);
    }
    if let Some(name) = op.strip_prefix("higher_order.") {
        let (region, operands) = Region::new(name, &node.args)?;
        return Ok(Action::Region(region, templates(&operands, numbers)?));
    }
    if symbolic::is_known(op) {
        return Ok(Action::Symbolic(op.to_owned(), templates(&node.args, numbers)?));
    }
    if op == "export.access_subclass_inner_tensor.default" {
        return inner(graph, node);
    }
    if let Some(definition) = defined::find(op) {
        return Ok(Action::Defined(definition, ordered(node, definition.parameters, numbers)?));
    }
    let op = if is_of_values(graph) && VIEWS.contains(&op) { "aten.reshape.default" } else { op };
    let operator = engine.operator(op).or_else(|| engine.operator(&defined::same(op)?)).ok_or_else(|| missing(op))?;
    let names: Vec<&str> = operator.arguments().iter().map(String::as_str).collect();
    let args = ordered(node, &names, numbers)?;
    Ok(Action::Call(operator, args))
}

/// Views of which a graph of values means only the shape.
const VIEWS: [&str; 2] = ["aten.view.default", "aten._unsafe_view.default"];

/// Whether a graph has no strides and no writes: there a view may be of elements that lie apart.
fn is_of_values(graph: &Graph) -> bool {
    graph.stage.split('.').next() == Some("prepared")
}

fn missing(op: &str) -> Error {
    let namespace = op.split('.').next().unwrap_or(op);
    Error::value(match namespace {
        "aten" | "prims" | "sym" | "quantized_decomposed" | "torchao" | "quantized" => {
            "this operator is neither in libtorch nor among those that are computed by their definition".to_owned()
        }
        other => format!("a custom operator of namespace {other:?}, which libtorch does not have"),
    })
}

fn inner(graph: &Graph, node: &Node) -> Result<Action, Error> {
    let (Some(Arg::Value(value)), Some(Arg::Str(attribute))) = (node.args.first(), node.args.get(1)) else {
        return Err(Error::value("expected a parameter and the name of one of its tensors"));
    };
    let input = graph.inputs.iter().find(|input| input.value == *value);
    let target = input.and_then(|input| input.target.as_deref());
    let target = target.ok_or_else(|| Error::value(format!("{value} is not a parameter or buffer")))?;
    Ok(Action::Inner(format!("{target}.{attribute}")))
}

/// The arguments of a call in the order of its parameters.
fn ordered(node: &Node, names: &[&str], numbers: &HashMap<&str, usize>) -> Result<Vec<Template>, Error> {
    if node.args.len() > names.len() {
        return Err(Error::value(format!("{} positional arguments; its schema has {}", node.args.len(), names.len())));
    }
    let mut given = templates(&node.args, numbers)?;
    for (name, arg) in &node.kwargs {
        let at = names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| {
            Error::value(format!("no argument is named {name:?}; its schema has {}", names.join(", ")))
        })?;
        while given.len() <= at {
            given.push(Template::Absent);
        }
        let slot = &mut given[at];
        if !matches!(slot, Template::Absent) {
            return Err(Error::value(format!("argument {name:?} is given twice")));
        }
        *slot = template(arg, numbers).map_err(|error| Error::value(format!("argument {name}: {error}")))?;
    }
    Ok(given)
}

fn templates(args: &[Arg], numbers: &HashMap<&str, usize>) -> Result<Vec<Template>, Error> {
    args.iter().map(|arg| template(arg, numbers)).collect()
}

fn template(arg: &Arg, numbers: &HashMap<&str, usize>) -> Result<Template, Error> {
    match arg {
        Arg::Value(name) => number(numbers, name).map(Template::Slot),
        Arg::Sym(text) => {
            text.parse().map(Template::Symbolic).map_err(|e: m2m_tensor::expr::ParseError| Error::value(e.to_string()))
        }
        Arg::List(items) => {
            let items = templates(items, numbers)?;
            if items.iter().all(|item| matches!(item, Template::Constant(_))) {
                let values =
                    items.into_iter().map(|item| if let Template::Constant(v) = item { v } else { Value::None });
                return Ok(Template::Constant(Value::List(values.collect())));
            }
            Ok(Template::List(items))
        }
        other => constant(other).map(Template::Constant),
    }
}

/// A constant argument. Enumerations become PyTorch's numbers; every device but `meta` is the CPU here.
pub fn constant(arg: &Arg) -> Result<Value, Error> {
    Ok(match arg {
        Arg::Null => Value::None,
        Arg::Bool(b) => Value::Bool(*b),
        Arg::Int(n) => Value::Int(*n),
        Arg::Float(x) => Value::Float(x.0),
        Arg::Complex(re, im) => Value::Complex(re.0, im.0),
        Arg::Str(s) => Value::Str(s.clone()),
        Arg::List(items) => Value::List(items.iter().map(constant).collect::<Result<_, _>>()?),
        Arg::DType(dtype) => Value::Int(code(*dtype)?.into()),
        Arg::Device(device) => Value::Str(if device.starts_with("meta") { "meta" } else { "cpu" }.to_owned()),
        Arg::Layout(name) => Value::Int(named("layout", name, LAYOUTS)?),
        Arg::MemoryFormat(name) => Value::Int(named("memory format", name, MEMORY_FORMATS)?),
        other => {
            return Err(Error::value(format!("an argument of this kind cannot be given to an operator: {other:?}")));
        }
    })
}

const LAYOUTS: &[(&str, i64)] = &[
    ("strided", 0),
    ("sparse", 1),
    ("sparse_coo", 1),
    ("sparse_csr", 2),
    ("mkldnn", 3),
    ("sparse_csc", 4),
    ("sparse_bsr", 5),
    ("sparse_bsc", 6),
];

const MEMORY_FORMATS: &[(&str, i64)] =
    &[("contiguous", 0), ("preserve", 1), ("channels_last", 2), ("channels_last_3d", 3)];

fn named(what: &str, name: &str, known: &[(&str, i64)]) -> Result<i64, Error> {
    let name = name.strip_suffix("_format").unwrap_or(name);
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, code)| *code).ok_or_else(|| Error::value(format!("unknown {what} {name:?}")))
}
