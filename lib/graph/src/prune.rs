//! Removes nodes that nothing depends on.
//!
//! A node stays when it has an effect, when a later node or an output uses a result of it, or when it is the one that
//! gives a symbol its value (`u0` of an `item`) and something that stays mentions the symbol.

use crate::graph::Graph;
use m2m_record::{Arg, Node, Type};
use m2m_tensor::Expr;
use std::collections::HashSet;

/// Removes them, and gives the origins of those that went.
pub(crate) fn remove_unused(graph: &mut Graph, has_effect: &dyn Fn(&Node) -> bool) -> HashSet<String> {
    let from_inputs: HashSet<String> = graph.inputs.iter().flat_map(|i| symbols_of_type(&i.ty)).collect();
    let defines = defined_symbols(graph, &from_inputs);
    let mut values: HashSet<String> = graph.outputs.iter().filter_map(|o| o.value.clone()).collect();
    let mut symbols = HashSet::new();
    for output in &graph.outputs {
        output.literal.iter().for_each(|a| symbols_of_arg(a, &mut symbols));
    }
    for guard in &graph.guards {
        symbols.extend(symbols_of_text(&guard.expr));
    }
    let mut stays = vec![false; graph.nodes.len()];
    for (k, node) in graph.nodes.iter().enumerate().rev() {
        let is_used = node.results.iter().any(|r| r.value.as_ref().is_some_and(|v| values.contains(v)));
        let defines = defines.get(k).is_some_and(|d| d.iter().any(|s| symbols.contains(s)));
        if !(is_used || defines || has_effect(node)) {
            continue;
        }
        if let Some(stay) = stays.get_mut(k) {
            *stay = true;
        }
        for arg in node.args.iter().chain(node.kwargs.values()) {
            arg.for_each_value(&mut |v| {
                values.insert(v.to_owned());
            });
            symbols_of_arg(arg, &mut symbols);
        }
        symbols.extend(node.results.iter().flat_map(|r| symbols_of_type(&r.ty)));
    }
    let mut removed = HashSet::new();
    let mut stays = stays.into_iter();
    graph.nodes.retain(|node| {
        let stay = stays.next().unwrap_or(true);
        if !stay {
            removed.extend(node.origins.iter().cloned());
        }
        stay
    });
    removed
}

/// For each node, the symbols that no input and no earlier node mentions.
fn defined_symbols(graph: &Graph, from_inputs: &HashSet<String>) -> Vec<Vec<String>> {
    let mut seen = from_inputs.clone();
    let new_of = |node: &Node| -> Vec<String> {
        let mentioned = node.results.iter().flat_map(|r| symbols_of_type(&r.ty));
        mentioned.filter(|s| seen.insert(s.clone())).collect()
    };
    graph.nodes.iter().map(new_of).collect()
}

fn symbols_of_text(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(expr) = text.parse::<Expr>() {
        expr.for_each_symbol(&mut |s| names.push(s.to_owned()));
    }
    names
}

fn symbols_of_type(ty: &Type) -> Vec<String> {
    match ty {
        Type::Tensor(t) => {
            t.shape.iter().filter(|d| d.as_int().is_none()).flat_map(|d| symbols_of_text(&d.to_string())).collect()
        }
        Type::Scalar { expr: Some(expr), .. } => symbols_of_text(expr),
        Type::List(items) => items.iter().flat_map(symbols_of_type).collect(),
        _ => Vec::new(),
    }
}

fn symbols_of_arg(arg: &Arg, out: &mut HashSet<String>) {
    match arg {
        Arg::Sym(text) => out.extend(symbols_of_text(text)),
        Arg::List(items) => items.iter().for_each(|a| symbols_of_arg(a, out)),
        Arg::Map(map) => map.values().for_each(|a| symbols_of_arg(a, out)),
        _ => {}
    }
}
