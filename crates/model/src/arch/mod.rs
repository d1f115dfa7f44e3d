//! The architectures, one file each.

use crate::{Loader, ModelError, TensorSpec};
use puna_graph::Graph;

mod gemma3;
mod llama;
mod qwen2;
mod qwen3;

/// All of them.
pub const ARCHITECTURES: &[Architecture] = &[
    gemma3::ARCHITECTURE,
    llama::ARCHITECTURE,
    qwen2::ARCHITECTURE,
    qwen3::ARCHITECTURE,
];

/// What an architecture's file says of it.
pub struct Architecture {
    /// Name in GGUF files.
    pub name: &'static str,
    /// Class names in the `config.json` of Hugging Face folders.
    pub hugging_face: &'static [&'static str],
    /// Every tensor that a file of this architecture may have.
    pub tensors: &'static [TensorSpec],
    /// Builds the forward pass.
    pub build: fn(&mut Loader<'_>) -> Result<Graph, ModelError>,
}

/// The architecture of that GGUF name.
pub(crate) fn find(name: &str) -> Result<&'static Architecture, ModelError> {
    ARCHITECTURES
        .iter()
        .find(|a| a.name == name)
        .ok_or_else(|| ModelError::UnknownArchitecture {
            found: name.to_owned(),
            supported: ARCHITECTURES
                .iter()
                .map(|a| a.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

/// Factor on attention scores: `attention.scale` if set, else one over the root of the key's length.
fn attention_scale(model: &Loader<'_>) -> Result<f32, ModelError> {
    const KEY: &str = "attention.scale";
    let given = model
        .keys()
        .positive(KEY, |x| x <= 1000.0, "a positive number, at most 1000")?;
    Ok(given.unwrap_or_else(|| 1.0 / (model.hyper().key_length as f32).sqrt()))
}

/// `attention.layer_norm_rms_epsilon`, which must be there.
pub(crate) fn rms_eps(model: &Loader<'_>) -> Result<f32, ModelError> {
    const KEY: &str = "attention.layer_norm_rms_epsilon";
    let key = model.keys().full(KEY);
    match model.keys().float(KEY)? {
        None => Err(ModelError::MissingKey { key }),
        Some(eps) if eps > 0.0 && eps <= 1.0 => Ok(eps),
        Some(eps) => Err(ModelError::InvalidKey {
            key,
            found: eps.to_string(),
            expected: "a positive number, at most 1".to_owned(),
        }),
    }
}
