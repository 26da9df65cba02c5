//! Operator schemas, shape and dtype rules, decompositions.
//!
//! `schema` is PyTorch's registry as a table; `bind` gives a node's arguments by name; `promote` is PyTorch's type
//! promotion. `prepare` turns a captured graph into one without writes and with a target's operators only, by the
//! rules in `decompose`, which write through `expand`. Nothing here knows a target: what it lowers itself is told by
//! whoever asks.

mod autocast;
pub mod bind;
pub mod decompose;
pub mod error;
pub mod expand;
mod functional;
pub mod infer;
mod inline;
mod packing;
pub mod prepare;
pub mod promote;
pub mod schema;
pub mod series;
mod subclass;
pub mod value;

pub use bind::{Bound, Operand, bind};
pub use error::Error;
pub use packing::{PACKED_ALIKE, PackedFor};
pub use prepare::{Prepared, Unsupported, prepare};
pub use schema::Schema;
