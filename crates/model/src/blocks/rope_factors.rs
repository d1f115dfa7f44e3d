//! Per-dimension frequency factors.

use crate::{Loader, ModelError};
use puna_graph::Vector;

/// `rope_freqs` (Llama 3), or the long or short factors of Long-RoPE by the context in use.
pub fn rope_factors(model: &Loader<'_>) -> Result<Option<Vector>, ModelError> {
    if let Some(factors) = model.optional_vector("rope_freqs.weight")? {
        return Ok(Some(factors));
    }
    let trained = model
        .keys()
        .size("rope.scaling.original_context_length")?
        .unwrap_or(model.hyper().context_length);
    let name = if model.context() > trained {
        "rope_factors_long.weight"
    } else {
        "rope_factors_short.weight"
    };
    model.optional_vector(name)
}
