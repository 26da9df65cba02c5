//! Operator schemas, shape and dtype rules, decompositions.
//!
//! `schema` is PyTorch's registry as a table; `bind` gives a node's arguments by name; `promote` is PyTorch's type
//! promotion. Nothing here knows a target: what a target lowers itself is told by whoever asks.

pub mod bind;
pub mod error;
pub mod promote;
pub mod schema;

pub use bind::{Bound, Operand, bind};
pub use error::Error;
pub use schema::Schema;
