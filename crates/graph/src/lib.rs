//! The small intermediate representation between a model and what runs it.
//!
//! A model's architecture builds a [`Graph`] once with the [`GraphBuilder`]; a [`Backend`] compiles it into a [`Plan`], which then runs
//! for every [`Batch`]. The graph is in static single assignment form: each op makes one value of shape `[rows, features]`, where rows
//! may be symbolic ([`Rows`]). Every op lives in one file under `ops`: its attributes, its shape rule and a slow `f64` reference
//! that defines what it means.

mod backend;
mod batch;
mod builder;
mod cache;
pub mod conformance;
mod error;
mod graph;
pub mod ops;
mod profile;
pub mod reference;
mod weight;

pub use backend::{Backend, BackendError, Plan, PlanOptions, check_support};
pub use batch::{Batch, PageId, Run};
pub use builder::GraphBuilder;
pub use cache::{
    CacheLayer, CacheLayout, CacheMemory, CacheType, LayerGroup, PAGE_POSITIONS, Reach,
};
pub use error::GraphError;
pub use graph::{Graph, LayerId, Node, Rows, Shape, ValueId};
pub use ops::Op;
pub use profile::{Profile, StepClass, StepProfile, Work};
pub use weight::{SharedBytes, Vector, Weight, WeightId};
