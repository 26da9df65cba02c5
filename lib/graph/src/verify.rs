//! What must hold in every graph: names are defined once and before their use, nested graphs exist, groupings add up.

use crate::collect::Program;
use crate::graph::Graph;
use m2m_record::{Arg, Node, Return};
use m2m_tensor::Expr;
use std::collections::HashSet;

/// A graph that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("graph {graph:?}: {place}: {message}")]
pub struct Fault {
    /// The graph.
    pub graph: String,
    /// The node, input or `output`.
    pub place: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Checks a program's graphs.
pub fn verify(program: &Program) -> Result<(), Fault> {
    let mut ids = HashSet::new();
    let mut earlier = HashSet::new();
    for graph in program.nested.values().chain([&program.root]) {
        check_graph(graph, &mut ids, &earlier)?;
        earlier.insert(graph.id.as_str());
    }
    Ok(())
}

fn check_graph<'a>(graph: &'a Graph, ids: &mut HashSet<&'a str>, earlier: &HashSet<&str>) -> Result<(), Fault> {
    let fault = |place: &str, message: String| Fault { graph: graph.id.clone(), place: place.to_owned(), message };
    let mut defined: HashSet<&str> = HashSet::new();
    let symbols: HashSet<&str> = graph.symbols.iter().map(|s| s.name.as_str()).collect();
    for guard in &graph.guards {
        guard
            .expr
            .parse::<Expr>()
            .map_err(|e| fault("guard", e.to_string()))
            .map(drop)
            .or_else(|e| if guard.message.is_some() { Ok(()) } else { Err(e) })?;
    }
    for input in &graph.inputs {
        if !defined.insert(&input.value) {
            return Err(fault(&input.value, "this input's name is defined twice".into()));
        }
        check_type(&input.ty, &symbols).map_err(|m| fault(&input.value, m))?;
    }
    for node in &graph.nodes {
        let fault = |message: String| fault(&node.node, message);
        if node.graph != graph.id || node.stage != graph.stage {
            return Err(fault(format!("it is of graph {:?}, stage {:?}", node.graph, node.stage)));
        }
        if !ids.insert(&node.node) {
            return Err(fault("this node id is there twice".into()));
        }
        check_uses(node, &defined, earlier).map_err(fault)?;
        check_returns(node).map_err(fault)?;
        for result in &node.results {
            check_type(&result.ty, &symbols).map_err(fault)?;
            if let Some(value) = &result.value
                && !defined.insert(value)
            {
                return Err(fault(format!("value {value:?} is defined twice")));
            }
        }
    }
    for item in &graph.outputs {
        match (&item.value, &item.literal) {
            (Some(value), None) if defined.contains(value.as_str()) => {}
            (Some(value), None) => return Err(fault("output", format!("value {value:?} is not defined"))),
            (None, Some(_)) => {}
            _ => return Err(fault("output", "an output is either a value or a literal".into())),
        }
    }
    Ok(())
}

fn check_uses(node: &Node, defined: &HashSet<&str>, earlier: &HashSet<&str>) -> Result<(), String> {
    let mut undefined = None;
    for arg in node.args.iter().chain(node.kwargs.values()) {
        arg.for_each_value(&mut |name| {
            if !defined.contains(name) {
                undefined.get_or_insert(name);
            }
        });
        if let Arg::Graph(id) = arg
            && !earlier.contains(id.as_str())
        {
            return Err(format!("nested graph {id:?} is not defined before this node"));
        }
    }
    undefined.map_or(Ok(()), |name| Err(format!("value {name:?} is used before it is defined")))
}

fn check_returns(node: &Node) -> Result<(), String> {
    let expected = match &node.returns {
        None => 1,
        Some(returns) => returns.iter().copied().map(Return::len).sum(),
    };
    if node.results.len() != expected {
        return Err(format!("{} results, but its returns group {expected}", node.results.len()));
    }
    Ok(())
}

/// Checks that a type's expressions are ones, over symbols of the graph.
fn check_type(ty: &m2m_record::Type, symbols: &HashSet<&str>) -> Result<(), String> {
    let texts: Vec<&str> = match ty {
        m2m_record::Type::Tensor(t) => t.shape.iter().chain(t.strides.iter().flatten()).filter_map(dim_text).collect(),
        m2m_record::Type::Scalar { expr: Some(expr), .. } => vec![expr],
        m2m_record::Type::List(items) => return items.iter().try_for_each(|t| check_type(t, symbols)),
        _ => vec![],
    };
    for text in texts {
        if symbols.contains(text) {
            continue;
        }
        let expr: Expr = text.parse().map_err(|e: m2m_tensor::expr::ParseError| e.to_string())?;
        let mut unknown = None;
        expr.for_each_symbol(&mut |name| {
            if !symbols.contains(name) {
                unknown.get_or_insert_with(|| name.to_owned());
            }
        });
        if let Some(name) = unknown {
            return Err(format!("symbol {name} of {text:?} is not declared in this graph"));
        }
    }
    if let m2m_record::Type::Tensor(t) = ty
        && let Some(d) = t.shape.iter().filter_map(m2m_record::Dim::as_int).find(|d| *d < 0)
    {
        return Err(format!("negative dimension {d}"));
    }
    Ok(())
}

fn dim_text(dim: &m2m_record::Dim) -> Option<&str> {
    match dim {
        m2m_record::Dim::Int(_) => None,
        m2m_record::Dim::Expr(text) => Some(text),
    }
}
