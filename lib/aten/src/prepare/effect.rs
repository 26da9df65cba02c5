//! Operators whose effects come in an order: `higher_order.with_effects(token, op, …)` gives a token and what `op` gives.
//!
//! Nodes of a prepared graph have their effects in the order in which they stand, so that the operator stands for itself
//! and its token is the one before it. Whether it may go when nothing uses it is a matter of the operator.

use super::Preparer;
use crate::error::Error;
use crate::schema;
use m2m_record::{Arg, Node};

impl Preparer<'_> {
    /// Handles the operator that a node calls for its effect, if it is such a node.
    pub(super) fn effect(&mut self, node: &Node, mark: usize) -> Option<Result<(), Error>> {
        if node.op != "higher_order.with_effects" {
            return None;
        }
        let ([token, Arg::Op(op), args @ ..], [first, results @ ..]) = (node.args.as_slice(), node.results.as_slice())
        else {
            return Some(Err(Error::unsupported(
                "with_effects takes a token and an operator, and gives a token first",
            )));
        };
        if let Some(name) = &first.value {
            let token = self.state.rewriter.map(token);
            self.state.rewriter.bind(name, token);
        }
        // Where the operator returns nothing, `None` stands behind the token.
        let returns_nothing = schema::find(op).is_some_and(|schema| schema.returns.is_empty());
        let results = if returns_nothing { &[] } else { results };
        let inner = Node {
            op: op.clone(),
            args: args.to_vec(),
            results: results.to_vec(),
            returns: node.returns.as_ref().and_then(|returns| returns.get(1..)).map(<[_]>::to_vec),
            ..node.clone()
        };
        Some(self.node(&inner, mark))
    }
}
