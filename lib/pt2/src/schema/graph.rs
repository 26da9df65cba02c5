//! Programs, graphs and nodes.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::argument::{Argument, CustomObjArgument};
use super::signature::{GraphSignature, ModuleCallEntry};
use super::tensor::{SymBool, SymFloat, SymInt, TensorMeta};
use super::{Pairs, Text};

object! {
    /// The whole program.
    ExportedProgram {
        /// Graph, signature and module calls.
        need graph_module: GraphModule<'a>,
        /// Operator set versions.
        may opset_version: Pairs<'a, i64>,
        /// Bounds of symbols.
        may range_constraints: Pairs<'a, RangeConstraint<'a>>,
        /// Version of the schema.
        need schema_version: SchemaVersion<'a>,
        /// IR dialects that it was checked as.
        may verifiers: Vec<Text<'a>>,
        /// The one dialect, in torch 2.4.
        may dialect: Option<Text<'a>>,
        /// Who wrote it.
        may torch_version: Option<Text<'a>>,
        /// Python conditions on inputs.
        may guards_code: Vec<Text<'a>>,
    }
}

object! {
    /// Major and minor.
    SchemaVersion {
        /// Incompatible changes.
        need major: i64,
        /// Compatible ones.
        need minor: i64,
    }
}

object! {
    /// Bounds of a symbol, both included; null is unbounded.
    RangeConstraint {
        /// Smallest value.
        may min_val: Option<i64>,
        /// Largest value.
        may max_val: Option<i64>,
    }
}

object! {
    /// A graph with what it needs to be called.
    GraphModule {
        /// The graph.
        need graph: Graph<'a>,
        /// Roles of inputs and outputs.
        need signature: GraphSignature<'a>,
        /// Modules and their preserved signatures.
        may module_call_graph: Vec<ModuleCallEntry<'a>>,
        /// Free text by key.
        may metadata: Pairs<'a, Text<'a>>,
        /// Fields of registered named tuples.
        may treespec_namedtuple_fields: Pairs<'a, NamedTuple<'a>>,
    }
}

object! {
    /// A named tuple type of the pytrees.
    NamedTuple {
        /// In order.
        may field_names: Vec<Text<'a>>,
    }
}

object! {
    /// Nodes in order, and the type of every value.
    Graph {
        /// Inputs.
        need inputs: Vec<Argument<'a>>,
        /// Outputs.
        need outputs: Vec<Argument<'a>>,
        /// Nodes, definitions before uses.
        need nodes: Vec<Node<'a>>,
        /// Types of tensors by name.
        may tensor_values: Pairs<'a, TensorMeta<'a>>,
        /// Ints by name.
        may sym_int_values: Pairs<'a, SymInt<'a>>,
        /// Bools by name.
        may sym_bool_values: Pairs<'a, SymBool<'a>>,
        /// Floats by name.
        may sym_float_values: Pairs<'a, SymFloat<'a>>,
        /// Objects by name.
        may custom_obj_values: Pairs<'a, CustomObjArgument<'a>>,
        /// Whether the single output is no tuple.
        may is_single_tensor_return: bool,
    }
}

object! {
    /// One call.
    Node {
        /// `torch.ops.aten.relu.default`.
        need target: Text<'a>,
        /// Arguments that were given.
        need inputs: Vec<NamedArgument<'a>>,
        /// One for each return of the operator's schema.
        need outputs: Vec<Argument<'a>>,
        /// Source positions and the like.
        may metadata: Metadata<'a>,
        /// Whether a higher-order op returns one tensor, not a tuple.
        may is_hop_single_tensor_return: Option<bool>,
        /// FX name.
        may name: Option<Text<'a>>,
    }
}

object! {
    /// An argument with the name that the schema gives it.
    NamedArgument {
        /// Empty for higher-order ops.
        may name: Text<'a>,
        /// The value.
        need arg: Argument<'a>,
        /// 1 positional, 2 keyword; absent before torch 2.7.
        may kind: Option<i64>,
    }
}

/// What is kept of a node's metadata, which is most of the file: two texts, and the names of the other keys.
#[derive(Debug, Default)]
pub struct Metadata<'a> {
    /// Python frames, outermost first.
    pub stack_trace: Option<Text<'a>>,
    /// `key,path,type` of each enclosing module, outermost first.
    pub nn_module_stack: Option<Text<'a>>,
    /// Keys whose values were skipped.
    pub skipped: Vec<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Metadata<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of metadata")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut metadata = Metadata::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match key.as_ref() {
                        "stack_trace" => metadata.stack_trace = map.next_value()?,
                        "nn_module_stack" => metadata.nn_module_stack = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            metadata.skipped.push(key);
                        }
                    }
                }
                Ok(metadata)
            }
        }
        deserializer.deserialize_map(V)
    }
}
