//! Where nodes come from in the source, when their graph is no longer at hand.
//!
//! Only nodes of `original` state their scope and location; those of later stages have origins in the stage before. As
//! one stage follows another, an index of the one before is enough: each node takes what the first of its origins has
//! that has any.

use m2m_record::{Node, NodePlace};
use std::collections::HashMap;
use std::rc::Rc;

/// A scope and a location.
type Place = (Option<Rc<str>>, Option<Rc<str>>);

/// Scope and location by node id.
#[derive(Clone, Debug, Default)]
pub struct Places {
    by_node: HashMap<String, Place>,
}

impl Places {
    /// The scope and location of a node, by its id.
    pub fn get(&self, node: &str) -> (Option<&str>, Option<&str>) {
        self.by_node.get(node).map_or((None, None), |(scope, loc)| (scope.as_deref(), loc.as_deref()))
    }

    /// The scope and location that a node states or that its origins have.
    pub fn of_node<'a>(&'a self, node: &'a Node) -> (Option<&'a str>, Option<&'a str>) {
        self.of(node.scope.as_deref(), node.loc.as_deref(), &node.origins)
    }

    /// The scope and location of what comes from `origins` and states its own, or not.
    pub fn of<'a>(
        &'a self,
        scope: Option<&'a str>,
        loc: Option<&'a str>,
        origins: &[String],
    ) -> (Option<&'a str>, Option<&'a str>) {
        let found = || origins.iter().map(|origin| self.get(origin));
        let scope = scope.or_else(|| found().find_map(|(scope, _)| scope));
        (scope, loc.or_else(|| found().find_map(|(_, loc)| loc)))
    }

    /// Adds a node whose origins are in `before`.
    pub(crate) fn add(&mut self, node: &NodePlace, before: &Places) {
        let (scope, loc) = before.of(node.scope.as_deref(), node.loc.as_deref(), &node.origins);
        if scope.is_some() || loc.is_some() {
            self.by_node.insert(node.node.clone(), (scope.map(Rc::from), loc.map(Rc::from)));
        }
    }

    /// The same, with nodes whose origins are among those known.
    pub(crate) fn with_nodes<'n>(self, nodes: impl Iterator<Item = &'n Node>) -> Places {
        let mut all = Places::default();
        for node in nodes {
            let (scope, loc) = self.of_node(node);
            if scope.is_some() || loc.is_some() {
                all.by_node.insert(node.node.clone(), (scope.map(Rc::from), loc.map(Rc::from)));
            }
        }
        all.by_node.extend(self.by_node);
        all
    }
}
