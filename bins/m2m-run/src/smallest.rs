//! A stream of one node: what it reads becomes inputs with values, what it gives becomes outputs with references.
//!
//! State stays in the files that the stream names. Symbols that the shapes of the operands do not say become numbers.

use crate::args::Args;
use crate::error::Error;
use crate::golden::{self, Named, Run};
use crate::outputs::write_tensors;
use crate::trace::reached;
use m2m_cli::{Content, Failure, Output};
use m2m_graph::{Graph, Program};
use m2m_record::{Arg, Data, Dim, Input, InputRole, Node, OutputItem, OutputRole, Status, Tool, Type, Writer};
use m2m_tensor::Expr;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The stage of the stream's graph: nothing comes before it.
const STAGE: &str = "original";

/// Gives a value of the graph.
pub type Supply<'a> = dyn Fn(&str) -> Option<Named> + 'a;

/// What was written.
pub struct Written {
    /// The bytes of the stream.
    pub stream: Vec<u8>,
    /// The values of its inputs.
    pub inputs: Vec<Named>,
    /// What the reference has for its outputs.
    pub references: Vec<Named>,
    /// The file of both.
    pub tensors: PathBuf,
}

/// Writes the stream of `node` to `file` and its tensors beside it.
pub fn write(
    args: &Args,
    file: &Path,
    graphs: &Program,
    node: &Node,
    operand: &Supply<'_>,
    reference: &Supply<'_>,
) -> Result<Written, Failure> {
    let reduced = Reduced::of(graphs, node, operand)?;
    let mut references = Vec::new();
    for (at, value) in reduced.root.outputs.iter().filter_map(|item| item.value.as_deref()).enumerate() {
        references.extend(reference(value).map(|named| Named { key: format!("out_{at}"), ..named }));
    }
    let tensors = file.with_extension("safetensors");
    let mut read: Vec<&Path> = args.inputs.iter().map(PathBuf::as_path).chain(args.input.as_deref()).collect();
    let written = Output::open(Some(&tensors), Content::Binary, &read)?;
    let bytes = write_tensors(written, &reduced.made.iter().chain(&references).collect::<Vec<_>>())?;
    read.push(&tensors);
    let mut output = Output::open(Some(file), Content::Text, &read)?;
    let run = Run {
        engine: "reference",
        inputs: None,
        made: &reduced.made,
        seed: None,
        golden: (&tensors, bytes),
        files: &graphs.files.iter().map(|(id, file)| (id.clone(), file.clone())).collect(),
        tensors: &HashMap::new(),
    };
    let write = || -> io::Result<Vec<u8>> {
        let mut writer = Writer::begin(Vec::new())?;
        let (name, version) = ("m2m-run".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let options = [("bisect".to_owned(), Arg::Str(node.node.clone()))].into();
        writer.write(&Tool { name, version, options, inputs: Vec::new() })?;
        for id in &reduced.files {
            graphs.files.get(id).map_or(Ok(()), |file| writer.write(file))?;
        }
        for graph in reduced.nested.iter().chain([&reduced.root]) {
            graph.write(&mut writer)?;
        }
        golden::append_execution(&mut writer, &references, &run)?;
        writer.finish(Status::Ok)
    };
    let stream = write().map_err(|error| output.error(error))?;
    output.write_all(&stream).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(Written { stream, inputs: reduced.made, references, tensors })
}

/// A graph of one node with what it calls.
struct Reduced {
    root: Graph,
    nested: Vec<Graph>,
    made: Vec<Named>,
    files: Vec<String>,
}

impl Reduced {
    fn of(graphs: &Program, node: &Node, operand: &Supply<'_>) -> Result<Reduced, Error> {
        let old = &graphs.root;
        let mut names: Vec<&str> = Vec::new();
        let mut add = |name| {
            if !names.contains(&name) {
                names.push(name);
            }
        };
        node.args.iter().chain(node.kwargs.values()).for_each(|arg| arg.for_each_value(&mut add));
        let mut reduced = Reduced { root: Graph::default(), nested: Vec::new(), made: Vec::new(), files: Vec::new() };
        let types = old.types();
        for name in names {
            let ty = types.get(name).copied().cloned().unwrap_or(Type::None);
            reduced.add_input(old, name, ty, operand)?;
        }
        let numbers = numbers(old, operand);
        let bound = bound(&reduced.root);
        let fix = Fix { bound: &bound, numbers: &numbers, graph: &old.id };
        reduced.add_nested(graphs, &reached(graphs, node));
        let mut node = node.clone();
        node.args.iter_mut().chain(node.kwargs.values_mut()).for_each(|arg| fix.arg(arg));
        node.results.iter_mut().for_each(|result| fix.ty(&mut result.ty));
        reduced.root.inputs.iter_mut().for_each(|input| fix.ty(&mut input.ty));
        (node.graph, node.stage, node.node) = (STAGE.to_owned(), STAGE.to_owned(), format!("{STAGE}:0"));
        (node.origins, node.via) = (Vec::new(), None);
        let output = |value: &String| OutputItem {
            value: Some(value.clone()),
            literal: None,
            role: OutputRole::UserOutput,
            target: None,
        };
        reduced.root.outputs = node.results.iter().filter_map(|result| result.value.as_ref()).map(output).collect();
        reduced.root.nodes = vec![node];
        (reduced.root.id, reduced.root.stage) = (STAGE.to_owned(), STAGE.to_owned());
        reduced.root.entry = old.entry.clone();
        reduced.root.symbols = old.symbols.clone();
        reduced.root.symbols.iter_mut().for_each(|symbol| symbol.graph = STAGE.to_owned());
        Ok(reduced)
    }

    fn add_input(&mut self, old: &Graph, name: &str, ty: Type, operand: &Supply<'_>) -> Result<(), Error> {
        let known = old.inputs.iter().find(|input| input.value == name);
        if let Some(input) = known {
            let is_kept = input.literal.is_some() || input.data.as_ref().is_some_and(|data| *data != Data::Missing);
            if is_kept {
                if let Some(Data::Tensor { file, .. } | Data::Range { file, .. }) = &input.data
                    && !self.files.contains(file)
                {
                    self.files.push(file.clone());
                }
                self.root.inputs.push(Input { graph: STAGE.to_owned(), origins: Vec::new(), ..input.clone() });
                return Ok(());
            }
        }
        let is_leaf = |input: &&Input| matches!(input.role, InputRole::UserInput | InputRole::ConstantInput);
        let key = format!("in_{}", self.root.inputs.iter().filter(is_leaf).count());
        let value = operand(name).ok_or_else(|| Error::Argument {
            name: name.to_owned(),
            message: "the node that differs reads it, and neither execution has its value".to_owned(),
        })?;
        self.made.push(Named { key, ..value });
        // The file holds it row-major.
        let ty = match ty {
            Type::Tensor(tensor) => Type::Tensor(m2m_record::TensorType { strides: None, ..tensor }),
            other => other,
        };
        self.root.inputs.push(Input::new(STAGE, name, InputRole::UserInput, ty));
        Ok(())
    }

    /// Graphs that the node reaches, callees first as in the stream.
    fn add_nested(&mut self, graphs: &Program, wanted: &HashSet<String>) {
        for (id, graph) in graphs.nested.iter().filter(|(id, _)| wanted.contains(*id)) {
            let mut graph = graph.clone();
            let renamed = moved(id, &graphs.root.id);
            graph.parent = graph.parent.as_deref().map(|parent| moved(parent, &graphs.root.id));
            STAGE.clone_into(&mut graph.stage);
            graph.symbols.iter_mut().for_each(|symbol| symbol.graph.clone_from(&renamed));
            graph.guards.iter_mut().for_each(|guard| guard.graph.clone_from(&renamed));
            graph.inputs.iter_mut().for_each(|input| {
                input.graph.clone_from(&renamed);
                input.origins.clear();
            });
            for inner in &mut graph.nodes {
                inner.graph.clone_from(&renamed);
                STAGE.clone_into(&mut inner.stage);
                // The node itself is 0; the others keep their distances.
                let number = inner.node.rsplit(':').next().and_then(|number| number.parse::<u64>().ok());
                inner.node = format!("{STAGE}:{}", number.map_or(0, |number| number.saturating_add(1)));
                (inner.origins, inner.via) = (Vec::new(), None);
                inner.args.iter_mut().for_each(|arg| move_graphs(arg, &graphs.root.id));
            }
            graph.id = renamed;
            self.nested.push(graph);
        }
    }
}

/// The id of a graph of the old root under the new one.
fn moved(id: &str, root: &str) -> String {
    id.strip_prefix(root).map_or_else(|| id.to_owned(), |rest| format!("{STAGE}{rest}"))
}

fn move_graphs(arg: &mut Arg, root: &str) {
    match arg {
        Arg::Graph(id) => *id = moved(id, root),
        Arg::List(items) => items.iter_mut().for_each(|item| move_graphs(item, root)),
        _ => {}
    }
}

/// What symbols were, as far as a dimension or a number says one alone.
fn numbers(graph: &Graph, operand: &Supply<'_>) -> BTreeMap<String, i64> {
    let mut numbers = BTreeMap::new();
    for (name, ty) in graph.types() {
        let texts: Vec<Option<&str>> = match ty {
            Type::Tensor(tensor) => tensor
                .shape
                .iter()
                .map(|dim| if let Dim::Expr(text) = dim { Some(text.as_str()) } else { None })
                .collect(),
            Type::Scalar { expr: Some(text), .. } => vec![Some(text)],
            _ => continue,
        };
        let is_symbol = |text: &&str| graph.symbols.iter().any(|symbol| symbol.name == **text);
        if !texts.iter().flatten().any(|text| is_symbol(text) && !numbers.contains_key(*text)) {
            continue;
        }
        let Some(value) = operand(name) else { continue };
        let found = match ty {
            Type::Tensor(_) => value.dims,
            _ => crate::number::integers(value.dtype, &value.data)
                .and_then(|items| i64::try_from(*items.first()?).ok())
                .into_iter()
                .collect(),
        };
        for (text, number) in texts.into_iter().zip(found) {
            if let Some(text) = text.filter(is_symbol) {
                numbers.insert(text.to_owned(), number);
            }
        }
    }
    numbers
}

/// Symbols that the shapes of inputs say.
fn bound(graph: &Graph) -> HashSet<String> {
    let dims = graph.inputs.iter().filter_map(|input| input.ty.as_tensor()).flat_map(|tensor| &tensor.shape);
    let scalars = graph.inputs.iter().filter_map(|input| match &input.ty {
        Type::Scalar { expr: Some(text), .. } => Some(text.clone()),
        _ => None,
    });
    dims.filter_map(|dim| if let Dim::Expr(text) = dim { Some(text.clone()) } else { None }).chain(scalars).collect()
}

/// Puts numbers for expressions over symbols that nothing in the new graph says.
struct Fix<'a> {
    bound: &'a HashSet<String>,
    numbers: &'a BTreeMap<String, i64>,
    graph: &'a str,
}

impl Fix<'_> {
    fn number(&self, text: &str) -> Option<i64> {
        let expr: Expr = text.parse().ok()?;
        let mut is_said = true;
        expr.for_each_symbol(&mut |name| is_said &= self.bound.contains(name));
        if is_said {
            return None;
        }
        expr.eval_int(&|name| self.numbers.get(name).copied()).ok()
    }

    fn arg(&self, arg: &mut Arg) {
        match arg {
            Arg::Sym(text) => {
                if let Some(number) = self.number(text) {
                    *arg = Arg::Int(number);
                }
            }
            Arg::Graph(id) => *id = moved(id, self.graph),
            Arg::List(items) => items.iter_mut().for_each(|item| self.arg(item)),
            _ => {}
        }
    }

    fn ty(&self, ty: &mut Type) {
        if let Type::Tensor(tensor) = ty {
            for dim in tensor.shape.iter_mut().chain(tensor.strides.iter_mut().flatten()) {
                if let Dim::Expr(text) = dim
                    && let Some(number) = self.number(text)
                {
                    *dim = Dim::Int(number);
                }
            }
        }
    }
}
