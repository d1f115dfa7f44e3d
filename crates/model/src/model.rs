//! A model that is ready to be compiled.

use crate::{HyperParameters, Loader, ModelError, arch};
use puna_gguf::Gguf;
use puna_graph::Graph;
use std::sync::Arc;

/// How to load.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Context to prepare for, in tokens; that of the training where unset.
    pub context: Option<usize>,
    /// Whether to look for infinite block scales in every tensor, which reads the whole file.
    pub check_tensors: bool,
}

/// Hyper-parameters and graph of one file.
#[derive(Clone, Debug)]
pub struct Model {
    /// Name of the architecture in GGUF files.
    pub architecture: &'static str,
    /// Hyper-parameters.
    pub hyper: HyperParameters,
    /// The forward pass, holding the weights, which stay in the mapped file.
    pub graph: Graph,
}

impl Model {
    /// Builds the graph of an opened file.
    ///
    /// # Errors
    /// [`ModelError`], naming the key or the tensor that is wrong.
    pub fn load(gguf: &Arc<Gguf>, options: &LoadOptions) -> Result<Self, ModelError> {
        const KEY: &str = "general.architecture";
        let name = gguf
            .metadata()
            .str(KEY)?
            .ok_or_else(|| ModelError::MissingKey { key: KEY.into() })?;
        let architecture = arch::find(name)?;
        let mut loader = Loader::new(gguf, architecture, options)?;
        let graph = (architecture.build)(&mut loader)?;
        Ok(Self {
            architecture: architecture.name,
            hyper: loader.hyper().clone(),
            graph,
        })
    }
}
