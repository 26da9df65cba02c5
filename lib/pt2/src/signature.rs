//! The root graph's signature: roles of inputs and outputs, where state lies, symbols with bounds, guards.

use std::collections::HashMap;

use m2m_record::{Arg, Guard, Input, InputRole, OutputItem, OutputRole, Severity, Symbol, Type};
use m2m_tensor::Expr;
use m2m_tensor::expr::{self as build, Cmp};

use crate::finder::Finder;
use crate::graph::{STAGE, Signature, fault, input_value, literal_type, output_item, types_by_name};
use crate::notes::Notes;
use crate::schema::{Argument, ExportedProgram, GraphModule, InputSpec, OutputSpec, TensorArgument, Text};
use crate::state::State;
use crate::types::{Exprs, Fault};
use crate::values::Values;
use crate::weights::DataOf;
use crate::{Error, args, expr};

/// The signature of a program whose state has been found.
pub(crate) struct RootSignature<'p> {
    pub program: &'p ExportedProgram<'p>,
    pub state: &'p State,
    pub exprs: &'p Exprs<'p>,
    pub data: &'p DataOf<'p>,
}

/// An input under way: what its spec says.
struct Spec<'s> {
    value: String,
    ty: Type,
    role: InputRole,
    target: Option<&'s Text<'s>>,
    literal: Option<Arg>,
    persistent: Option<bool>,
}

impl<'p> Signature<'p> for RootSignature<'p> {
    fn entry(&self) -> String {
        "forward".to_owned()
    }

    fn symbols(&self, graph: &str) -> Vec<Symbol> {
        let mut names: Vec<String> = Vec::new();
        let mut bounds = HashMap::new();
        for (name, range) in self.program.range_constraints.0.iter().filter(|(name, _)| is_symbol(name.as_ref())) {
            if bounds.insert(name.as_ref(), (range.min_val, range.max_val)).is_none() {
                names.push(name.into());
            }
        }
        names.extend(self.exprs.symbols().iter().filter(|name| !bounds.contains_key(name.as_str())).cloned());
        let symbol = |name: String| {
            let (min, max) = bounds.get(name.as_str()).copied().unwrap_or_default();
            let hint = self.exprs.hint(&name).cloned();
            Symbol { graph: graph.to_owned(), name, min, max, hint }
        };
        names.into_iter().map(symbol).collect()
    }

    fn guards(&self, inputs: &[Input], notes: &mut Notes) -> Vec<Guard> {
        let types = types_by_name(inputs);
        let resolve = |text: &str| resolve(text, &types);
        let mut guards = Vec::with_capacity(self.program.guards_code.len());
        for text in &self.program.guards_code {
            let message = Some(text.into());
            let expr = match expr::parse_with(text.as_ref(), &resolve) {
                Ok(found) => found.to_string(),
                Err(error) => {
                    let what = format!("a guard keeps its Python spelling, {:?}: {error}", text.as_ref());
                    notes.tell(Severity::Note, "opaque-guard", None, what);
                    text.into()
                }
            };
            guards.push(Guard { graph: STAGE.to_owned(), expr, message });
        }
        self.derived_bounds(&mut guards, notes);
        guards
    }

    fn inputs(&self, values: &mut Values<'p>, notes: &mut Notes) -> Result<Vec<Input>, Error> {
        let module = &self.program.graph_module;
        let specs = &module.signature.input_specs;
        let mut inputs = Vec::with_capacity(specs.len());
        let mut finder = Finder::new(self.state, self.data, notes);
        for (i, (spec, argument)) in specs.iter().zip(&module.graph.inputs).enumerate() {
            let place = |e| fault(STAGE, format!("input {i}"), e);
            let spec = read_spec(spec, i, values).map_err(place)?;
            check_name("input", &spec.value, argument).map_err(place)?;
            values.define(&spec.value).map_err(place)?;
            let target = spec.target.map(String::from);
            let is_weight = spec.role == InputRole::Parameter || spec.persistent == Some(true);
            let data = match &target {
                Some(name) => finder.find(name, &spec.value, &spec.ty, is_weight)?,
                None => None,
            };
            inputs.push(Input {
                graph: STAGE.to_owned(),
                value: spec.value,
                role: spec.role,
                target,
                ty: spec.ty,
                data,
                literal: spec.literal,
                persistent: spec.persistent,
                origins: Vec::new(),
            });
        }
        finder.finish();
        Ok(inputs)
    }

    fn outputs(&self, values: &Values<'p>) -> Result<Vec<OutputItem>, Error> {
        let module = &self.program.graph_module;
        let specs = &module.signature.output_specs;
        let mut outputs = Vec::with_capacity(specs.len());
        for (i, (spec, argument)) in specs.iter().zip(&module.graph.outputs).enumerate() {
            let place = |e| fault(STAGE, format!("output {i}"), e);
            let (role, target) = output_role(spec);
            let named = |arg: &TensorArgument<'_>| check_name("output", arg.name.as_ref(), argument);
            match spec {
                OutputSpec::UserOutput(spec) => Ok(check_user_output(&spec.arg, argument).map_err(place)?),
                OutputSpec::LossOutput(spec) | OutputSpec::Token(spec) => named(&spec.arg),
                OutputSpec::BufferMutation(spec) => named(&spec.arg),
                OutputSpec::ParameterMutation(spec) | OutputSpec::GradientToParameter(spec) => named(&spec.arg),
                OutputSpec::GradientToUserInput(spec) | OutputSpec::UserInputMutation(spec) => named(&spec.arg),
            }
            .map_err(place)?;
            outputs.push(output_item(values, argument, role, target).map_err(place)?);
        }
        Ok(outputs)
    }
}

impl RootSignature<'_> {
    /// Bounds of expressions, which some files have beside those of symbols, are conditions like any other.
    fn derived_bounds(&self, guards: &mut Vec<Guard>, notes: &mut Notes) {
        for (text, range) in self.program.range_constraints.0.iter().filter(|(name, _)| !is_symbol(name.as_ref())) {
            let read = match expr::parse(text.as_ref()) {
                Ok(read) => read,
                Err(error) => {
                    let what = format!("the bounds of {:?} are left out: {error}", text.as_ref());
                    notes.tell(Severity::Warning, "opaque-guard", None, what);
                    continue;
                }
            };
            let at_least = range.min_val.map(|min| build::cmp(Cmp::Ge, read.clone(), Expr::Int(min)));
            let at_most = range.max_val.map(|max| build::cmp(Cmp::Le, read.clone(), Expr::Int(max)));
            let expr = build::and(at_least.into_iter().chain(at_most)).to_string();
            guards.push(Guard { graph: STAGE.to_owned(), expr, message: None });
        }
    }
}

/// Whether text is the name of a symbol, not an expression.
fn is_symbol(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn read_spec<'s>(spec: &'s InputSpec<'s>, i: usize, values: &mut Values<'_>) -> Result<Spec<'s>, Fault> {
    let state = |arg: &TensorArgument<'_>, role, target, persistent, values: &Values<'_>| {
        let value = arg.name.to_string();
        Ok(Spec { ty: values.tensor(&value)?, value, role, target: Some(target), literal: None, persistent })
    };
    match spec {
        InputSpec::Parameter(s) => state(&s.arg, InputRole::Parameter, &s.parameter_name, None, values),
        InputSpec::Buffer(s) => state(&s.arg, InputRole::Buffer, &s.buffer_name, Some(s.persistent), values),
        InputSpec::TensorConstant(s) => state(&s.arg, InputRole::TensorConstant, &s.tensor_constant_name, None, values),
        InputSpec::CustomObj(s) => Ok(Spec {
            value: s.arg.name.to_string(),
            ty: Type::Object((&s.arg.class_fqn).into()),
            role: InputRole::CustomObj,
            target: Some(&s.custom_obj_name),
            literal: None,
            persistent: None,
        }),
        InputSpec::Token(s) => {
            let value = s.arg.name.to_string();
            Ok(Spec { value, ty: Type::Token, role: InputRole::Token, target: None, literal: None, persistent: None })
        }
        InputSpec::UserInput(s) => {
            let (value, ty, literal) = input_value(values, &s.arg, &format!("constant_{i}"))?;
            let role = if literal.is_some() { InputRole::ConstantInput } else { InputRole::UserInput };
            Ok(Spec { value, ty, role, target: None, literal, persistent: None })
        }
        InputSpec::ConstantInput(s) => {
            let literal = args::constant(&s.value);
            Ok(Spec {
                value: s.name.to_string(),
                ty: literal_type(&literal)?,
                role: InputRole::ConstantInput,
                target: None,
                literal: Some(literal),
                persistent: None,
            })
        }
    }
}

fn output_role(spec: &OutputSpec<'_>) -> (OutputRole, Option<String>) {
    match spec {
        OutputSpec::UserOutput(_) => (OutputRole::UserOutput, None),
        OutputSpec::LossOutput(_) => (OutputRole::LossOutput, None),
        OutputSpec::Token(_) => (OutputRole::Token, None),
        OutputSpec::BufferMutation(s) => (OutputRole::BufferMutation, Some((&s.buffer_name).into())),
        OutputSpec::ParameterMutation(s) => (OutputRole::ParameterMutation, Some((&s.parameter_name).into())),
        OutputSpec::GradientToParameter(s) => (OutputRole::GradientToParameter, Some((&s.parameter_name).into())),
        OutputSpec::GradientToUserInput(s) => (OutputRole::GradientToUserInput, Some((&s.user_input_name).into())),
        OutputSpec::UserInputMutation(s) => (OutputRole::UserInputMutation, Some((&s.user_input_name).into())),
    }
}

/// Every input and output of the graph must have a spec.
pub(crate) fn check_counts(module: &GraphModule<'_>) -> Result<(), Error> {
    let (signature, graph) = (&module.signature, &module.graph);
    check_count("input", signature.input_specs.len(), graph.inputs.len())?;
    check_count("output", signature.output_specs.len(), graph.outputs.len())
}

fn check_count(what: &str, specs: usize, arguments: usize) -> Result<(), Error> {
    if specs == arguments {
        return Ok(());
    }
    let detail = format!("{specs} {what} specs for {arguments} {what}s; one each is right");
    Err(Error::Graph { graph: STAGE.to_owned(), place: format!("{what}s"), detail })
}

/// The spec and the graph must speak of the same value. Constants have no name in the graph.
fn check_name(what: &str, name: &str, argument: &Argument<'_>) -> Result<(), Fault> {
    let arg = args::convert(argument, &mut std::iter::empty()).map_err(Fault::Other)?;
    match arg {
        Arg::Value(found) | Arg::Object { name: found, .. } if found != name => {
            Err(Fault::Other(format!("its spec names {name:?}, the graph's {what} is {found:?}")))
        }
        _ => Ok(()),
    }
}

fn check_user_output(spec: &Argument<'_>, argument: &Argument<'_>) -> Result<(), Fault> {
    match args::convert(spec, &mut std::iter::empty()).map_err(Fault::Other)? {
        Arg::Value(name) => check_name("output", &name, argument),
        _ => Ok(()),
    }
}

/// What a guard's `L['x'][0].size()[1]` stands for: inputs are named after the path to them.
fn resolve(text: &str, types: &HashMap<&str, &Type>) -> Option<Expr> {
    let (path, query) = match text.find(".size()").or_else(|| text.find(".stride()")) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let parts: Vec<&str> = path
        .strip_prefix('L')?
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|part| !part.is_empty())
        .collect();
    let joined = parts.join("_");
    let ty = types.get(joined.as_str()).or_else(|| types.get(joined.to_lowercase().as_str()))?;
    match (ty, query) {
        (Type::Scalar { expr: Some(expr), .. }, "") => expr.parse().ok(),
        (Type::Tensor(ty), query) => {
            let axis: usize = query.strip_prefix(".size()[")?.strip_suffix(']')?.parse().ok()?;
            Expr::try_from(ty.shape.get(axis)?).ok()
        }
        _ => None,
    }
}
