//! What the workspace's own tests share: the counter-based weights of the demonstration models, the writer that puts
//! a `.pt2` archive together from a program and those weights, and the harness that finds and runs the tools. Nothing
//! here is used by the tools themselves.

pub mod archive;
pub mod case;
pub mod check;
pub mod corrupt;
pub mod etdump;
pub mod model;
pub mod pte;
pub mod repeat;
pub mod scene;
pub mod tensors;
pub mod tools;
pub mod weights;
