//! How an engine is set up.

use puna_graph::CacheType;

/// Options of an engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Context in tokens, shared by all sequences; that of the model's training where unset.
    pub context: Option<usize>,
    /// Most tokens that are computed together.
    pub batch: usize,
    /// Element type of cached keys.
    pub key_type: CacheType,
    /// Element type of cached values.
    pub value_type: CacheType,
    /// Whether to look for infinite block scales in every tensor, which reads the whole file.
    pub check_tensors: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            context: None,
            batch: 512,
            key_type: CacheType::F16,
            value_type: CacheType::F16,
            check_tensors: false,
        }
    }
}
