//! What is read and has no place in records: counted here, told once at the end of the stream.
//!
//! Two kinds: fields that this reader does not know (a newer schema has them), and known ones that records do not carry.

use crate::notes::Notes;
use crate::schema::{
    Argument, ExportedProgram, Graph, GraphModule, InputSpec, Node, OptionalTensor, OutputSpec, SymBool, SymExpr,
    SymFloat, SymInt, TensorArgument, TensorMeta,
};

/// Fields of the program beside its graphs.
pub(crate) fn program(program: &ExportedProgram<'_>, notes: &mut Notes) {
    notes.unknown("ExportedProgram", &program.unknown);
    notes.unknown("SchemaVersion", &program.schema_version.unknown);
    for (_, range) in &program.range_constraints.0 {
        notes.unknown("RangeConstraint", &range.unknown);
    }
    module(&program.graph_module, notes);
    for (_, tuple) in &program.graph_module.treespec_namedtuple_fields.0 {
        notes.unknown("NamedTupleDef", &tuple.unknown);
    }
    for (key, _) in &program.graph_module.metadata.0 {
        notes.skip(format!("graph_module metadata {key}"));
    }
}

/// Fields of a graph and of the types of its values.
pub(crate) fn graph(graph: &Graph<'_>, notes: &mut Notes) {
    notes.unknown("Graph", &graph.unknown);
    if graph.is_single_tensor_return {
        notes.skip("is_single_tensor_return");
    }
    graph.inputs.iter().chain(&graph.outputs).for_each(|argument| self::argument(argument, notes));
    graph.tensor_values.0.iter().for_each(|(_, meta)| tensor(meta, notes));
    for (_, n) in &graph.sym_int_values.0 {
        sym_int(n, notes);
    }
    for (_, x) in &graph.sym_float_values.0 {
        if let SymFloat::Expr(e) = x {
            expr(e, notes);
        }
    }
    for (_, b) in &graph.sym_bool_values.0 {
        if let SymBool::Expr(e) = b {
            expr(e, notes);
        }
    }
    for (_, object) in &graph.custom_obj_values.0 {
        notes.unknown("CustomObjArgument", &object.unknown);
    }
}

/// Fields of a node and of its arguments.
pub(crate) fn node(node: &Node<'_>, notes: &mut Notes) {
    notes.unknown("Node", &node.unknown);
    for key in &node.metadata.skipped {
        notes.skip(format!("node metadata {key}"));
    }
    if node.is_hop_single_tensor_return.is_some() {
        notes.skip("is_hop_single_tensor_return");
    }
    if let Some(name) = &node.name
        && !node.outputs.iter().any(|output| matches!(output, Argument::Tensor(t) if t.name == *name))
    {
        notes.skip("node name");
    }
    for input in &node.inputs {
        notes.unknown("NamedArgument", &input.unknown);
        argument(&input.arg, notes);
    }
    node.outputs.iter().for_each(|output| argument(output, notes));
}

fn argument(argument: &Argument<'_>, notes: &mut Notes) {
    let tensor = |t: &TensorArgument<'_>, notes: &mut Notes| notes.unknown("TensorArgument", &t.unknown);
    match argument {
        Argument::Tensor(t) | Argument::OptionalTensor(OptionalTensor::Tensor(t)) => tensor(t, notes),
        Argument::Tensors(list) => list.iter().for_each(|t| tensor(t, notes)),
        Argument::NestedTensors(lists) => lists.iter().flatten().for_each(|t| tensor(t, notes)),
        Argument::OptionalTensors(list) => list.iter().for_each(|t| {
            if let OptionalTensor::Tensor(t) = t {
                tensor(t, notes);
            }
        }),
        Argument::Complex(c) => notes.unknown("ComplexValue", &c.unknown),
        Argument::Device(device) => notes.unknown("Device", &device.unknown),
        Argument::CustomObj(object) => notes.unknown("CustomObjArgument", &object.unknown),
        Argument::Map(pairs) => pairs.0.iter().for_each(|(_, argument)| self::argument(argument, notes)),
        _ => {}
    }
}

fn tensor(meta: &TensorMeta<'_>, notes: &mut Notes) {
    notes.unknown("TensorMeta", &meta.unknown);
    if let Some(device) = &meta.device {
        notes.unknown("Device", &device.unknown);
    }
    if meta.requires_grad {
        notes.skip("requires_grad");
    }
    if !matches!(meta.storage_offset, SymInt::Int(0)) {
        notes.skip("storage_offset of a graph's value");
    }
    meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]).for_each(|n| sym_int(n, notes));
}

fn sym_int(n: &SymInt<'_>, notes: &mut Notes) {
    if let SymInt::Expr(e) = n {
        expr(e, notes);
    }
}

fn expr(e: &SymExpr<'_>, notes: &mut Notes) {
    notes.unknown("SymExpr", &e.unknown);
}

/// Fields of the signature.
pub(crate) fn module(module: &GraphModule<'_>, notes: &mut Notes) {
    notes.unknown("GraphModule", &module.unknown);
    notes.unknown("GraphSignature", &module.signature.unknown);
    for spec in &module.signature.input_specs {
        match spec {
            InputSpec::UserInput(s) => notes.unknown("user_input", &s.unknown),
            InputSpec::Parameter(s) => notes.unknown("parameter", &s.unknown),
            InputSpec::Buffer(s) => notes.unknown("buffer", &s.unknown),
            InputSpec::TensorConstant(s) => notes.unknown("tensor_constant", &s.unknown),
            InputSpec::CustomObj(s) => notes.unknown("custom_obj", &s.unknown),
            InputSpec::Token(s) => notes.unknown("token", &s.unknown),
            InputSpec::ConstantInput(s) => notes.unknown("constant_input", &s.unknown),
        }
    }
    for spec in &module.signature.output_specs {
        match spec {
            OutputSpec::UserOutput(s) => notes.unknown("user_output", &s.unknown),
            OutputSpec::LossOutput(s) | OutputSpec::Token(s) => notes.unknown("output", &s.unknown),
            OutputSpec::BufferMutation(s) => notes.unknown("buffer_mutation", &s.unknown),
            OutputSpec::ParameterMutation(s) | OutputSpec::GradientToParameter(s) => {
                notes.unknown("output", &s.unknown)
            }
            OutputSpec::GradientToUserInput(s) | OutputSpec::UserInputMutation(s) => {
                notes.unknown("output", &s.unknown)
            }
        }
    }
}
