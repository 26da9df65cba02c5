//! A case while it is drawn: inputs and calls of operators, each executed by libtorch at once, which tells the types of
//! its results and whether the call is legal at all.

use crate::dice::{Dice, Range};
use m2m_aten::schema;
use m2m_graph::{Graph, Program};
use m2m_record::{
    Arg, DType, Dim, Input, InputRole, Kwargs, Node, OutputItem, OutputRole, Return, TensorType, Type, TypedValue,
};
use m2m_torch::{Engine, Given, Output, Session};

/// The stage of a case's graph, before it is prepared.
const STAGE: &str = "original";

/// Most elements of a tensor: cases are about shapes, not sizes.
const MAX_ELEMENTS: i64 = 8192;

/// A tensor of a case.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The name of its value.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<i64>,
}

impl Tensor {
    /// As an argument.
    pub fn arg(&self) -> Arg {
        Arg::value(self.name.clone())
    }

    /// Number of dimensions.
    pub fn rank(&self) -> i64 {
        self.shape.len() as i64
    }

    fn ty(&self) -> Type {
        TensorType::new(self.dtype, self.shape.iter().map(|d| Dim::Int(*d)).collect()).into()
    }
}

/// Why a case is not one: libtorch refuses a call.
#[derive(Debug)]
pub struct Illegal(pub String);

/// What a family gives.
pub type Drawn = Result<(), Illegal>;

/// A case.
pub struct Draw<'e> {
    /// Its numbers.
    pub dice: Dice,
    engine: &'e Engine,
    prefix: String,
    /// Whether an input cannot have as many elements that differ.
    is_impossible: bool,
    inputs: Vec<(Tensor, Vec<u8>)>,
    nodes: Vec<Node>,
    results: Vec<(Tensor, Vec<u8>)>,
}

/// A finished case.
pub struct Case {
    /// Tensors given to it, with their elements.
    pub inputs: Vec<(Tensor, Vec<u8>)>,
    /// Its calls.
    pub nodes: Vec<Node>,
    /// What libtorch gives for the last call, with elements.
    pub results: Vec<(Tensor, Vec<u8>)>,
    /// The same of results that are f32, computed in f64.
    pub exact: Vec<Option<Vec<u8>>>,
}

impl Case {
    /// Its inputs and calls in a line: `x0 f32 [2, 3]; aten.sum.dim_IntList(x0, [1], false)`.
    pub fn shown(&self) -> String {
        let inputs = self.inputs.iter().map(|(t, _)| format!("{} {} {:?}", t.name, t.dtype, t.shape));
        let call = |node: &Node| {
            let args = node.args.iter().map(shown);
            let kwargs = node.kwargs.iter().map(|(name, arg)| format!("{name}={}", shown(arg)));
            format!("{}({})", node.op, args.chain(kwargs).collect::<Vec<_>>().join(", "))
        };
        inputs.chain(self.nodes.iter().map(call)).collect::<Vec<_>>().join("; ")
    }
}

fn shown(arg: &Arg) -> String {
    match arg {
        Arg::Value(name) => name.clone(),
        Arg::Int(n) => n.to_string(),
        Arg::Float(x) => format!("{:?}", x.0),
        Arg::Bool(x) => x.to_string(),
        Arg::Null => "None".to_owned(),
        Arg::DType(dtype) => dtype.to_string(),
        Arg::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

impl<'e> Draw<'e> {
    /// A case whose values begin with a prefix.
    pub fn new(engine: &'e Engine, dice: Dice, prefix: String) -> Self {
        Draw { dice, engine, prefix, is_impossible: false, inputs: Vec::new(), nodes: Vec::new(), results: Vec::new() }
    }

    /// The case, if it calls something.
    pub fn finish(self) -> Option<Case> {
        let expected: Vec<Tensor> = self.results.iter().map(|(tensor, _)| tensor.clone()).collect();
        let exact = crate::exact::results(self.engine, &self.inputs, &self.nodes, &expected);
        let case = Case { inputs: self.inputs, nodes: self.nodes, results: self.results, exact };
        (!case.nodes.is_empty()).then_some(case)
    }

    /// An input.
    pub fn input(&mut self, dtype: DType, shape: &[i64], range: Range) -> Tensor {
        let name = format!("{}x{}", self.prefix, self.inputs.len());
        let tensor = Tensor { name, dtype, shape: shape.to_vec() };
        let elements = shape.iter().product::<i64>();
        let count = elements.min(MAX_ELEMENTS) as usize;
        self.is_impossible |= elements > MAX_ELEMENTS;
        self.is_impossible |= range == Range::Distinct && count > crate::dice::distinct(dtype);
        let bytes = self.dice.elements(dtype, count, range);
        self.inputs.push((tensor.clone(), bytes));
        tensor
    }

    /// An input of these integers.
    pub fn given(&mut self, shape: &[i64], numbers: &[i64]) -> Tensor {
        let tensor = self.input(DType::I64, shape, Range::Plain);
        if let Some((_, bytes)) = self.inputs.last_mut() {
            *bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        }
        tensor
    }

    /// A shape of a rank; a size is 1 once in seven times and 0 once in fifteen.
    pub fn shape(&mut self, rank: i64) -> Vec<i64> {
        (0..rank).map(|_| self.size()).collect()
    }

    /// A shape of a rank without 0.
    pub fn filled_shape(&mut self, rank: i64) -> Vec<i64> {
        (0..rank).map(|_| self.size().max(1)).collect()
    }

    fn size(&mut self) -> i64 {
        match self.dice.between(0, 105) {
            0..7 => 0,
            7..22 => 1,
            _ => self.dice.between(2, 6),
        }
    }

    /// Calls an operator with arguments in the order of its schema; its only result.
    pub fn call(&mut self, op: &str, args: Vec<Arg>) -> Result<Tensor, Illegal> {
        let count = schema::find(op).map_or(1, |schema| schema.returns.len());
        let mut results = self.call_many(op, args, vec![Return::One; count])?;
        Ok(results.swap_remove(0))
    }

    /// Calls an operator whose returns are lists of so many, or one each.
    pub fn call_many(&mut self, op: &str, args: Vec<Arg>, returns: Vec<Return>) -> Result<Vec<Tensor>, Illegal> {
        if self.is_impossible {
            return Err(Illegal("more elements than the dtype has numbers, or than a case may have".into()));
        }
        let node = self.node(op, args, returns);
        self.nodes.push(node);
        let outputs = executed(self.engine, &self.inputs, &self.nodes).map_err(Illegal)?;
        let at = self.nodes.len() - 1;
        let mut results = Vec::new();
        for (output, result) in outputs.into_iter().zip(&mut self.nodes[at].results) {
            let name = result.value.clone().unwrap_or_default();
            let tensor = Tensor { name, dtype: output.dtype, shape: output.shape };
            if tensor.shape.iter().product::<i64>() > MAX_ELEMENTS {
                return Err(Illegal("too many elements".into()));
            }
            result.ty = tensor.ty();
            results.push((tensor, output.bytes));
        }
        self.results = results;
        Ok(self.results.iter().map(|(tensor, _)| tensor.clone()).collect())
    }

    fn node(&self, op: &str, args: Vec<Arg>, returns: Vec<Return>) -> Node {
        let at = self.nodes.len();
        let (mut positional, mut kwargs) = (Vec::new(), Kwargs::new());
        let schema = schema::find(op).unwrap_or_else(|| panic!("{op} is not in PyTorch's registry"));
        for (parameter, arg) in schema.args.iter().zip(args) {
            if parameter.is_kwarg_only {
                kwargs.insert(parameter.name.to_owned(), arg);
            } else {
                positional.push(arg);
            }
        }
        let count: usize = returns.iter().map(|r| r.len()).sum();
        let unknown = Type::from(TensorType::new(DType::F32, Vec::new()));
        let result = |k| TypedValue { value: Some(format!("{}y{at}_{k}", self.prefix)), ty: unknown.clone() };
        Node {
            graph: STAGE.into(),
            stage: STAGE.into(),
            node: format!("{STAGE}:{}n{at}", self.prefix),
            op: op.into(),
            args: positional,
            kwargs,
            results: (0..count).map(result).collect(),
            returns: (returns != [Return::One]).then_some(returns),
            ..Node::default()
        }
    }
}

/// What libtorch gives for the results of the last call.
pub fn executed(engine: &Engine, inputs: &[(Tensor, Vec<u8>)], nodes: &[Node]) -> Result<Vec<Output>, String> {
    let last = nodes.last().into_iter().flat_map(|node| &node.results).filter_map(|r| r.value.clone());
    let tensors: Vec<&Tensor> = inputs.iter().map(|(tensor, _)| tensor).collect();
    let program = Program { root: graph(&tensors, nodes, last), ..Program::default() };
    let tensor = |name: &str| {
        let found = inputs.iter().find(|(tensor, _)| tensor.name == name);
        found.map(|(tensor, bytes)| engine.copied(tensor.dtype, &tensor.shape, bytes)).transpose()
    };
    let given = Given { tensor: &tensor, scalar: &|_| None };
    let session = Session { graphs: &program, tensors: &[], root: None, key: &|_| None, given: &given };
    let outcome = m2m_torch::run(engine, &session, &mut |_, _, _| Ok(()));
    let outcome = outcome.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    Ok(outcome.outputs)
}

/// A graph of calls.
pub fn graph(inputs: &[&Tensor], nodes: &[Node], outputs: impl Iterator<Item = String>) -> Graph {
    let input = |tensor: &&Tensor| Input {
        graph: STAGE.into(),
        value: tensor.name.clone(),
        role: InputRole::UserInput,
        target: None,
        ty: tensor.ty(),
        data: None,
        literal: None,
        persistent: None,
        origins: Vec::new(),
    };
    let output = |name| OutputItem { value: Some(name), literal: None, role: OutputRole::UserOutput, target: None };
    Graph {
        id: STAGE.into(),
        stage: STAGE.into(),
        inputs: inputs.iter().map(input).collect(),
        nodes: nodes.to_vec(),
        outputs: outputs.map(output).collect(),
        ..Graph::default()
    }
}
