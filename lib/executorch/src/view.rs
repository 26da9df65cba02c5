//! A profile as something to look at: tables, traces for viewers, a page, a comparison.
//!
//! Views aggregate what [`crate::capture`] keeps apart. Times are in the profile's target time scale, which every view states.

pub mod chrome;
pub mod compare;
pub mod explorer;
pub mod modules;
pub mod page;
pub mod pprof;
mod rank;
pub mod stats;
pub mod sweep;
pub mod table;
