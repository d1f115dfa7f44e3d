//! Which model.

use crate::{failure::usage_error, models};
use anyhow::Result;
use clap::Args;
use puna::hub::Freshness;
use std::{ffi::OsString, path::PathBuf};

/// Which model.
#[derive(Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// A .gguf file, hf:owner/repo[:quant] or a URL; without it the default model
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<OsString>,
    /// The same as -m hf:owner/repo[:quant]; also -hf
    #[arg(long, value_name = "OWNER/REPO[:QUANT]", conflicts_with = "model")]
    hf_repo: Option<String>,
    /// The same as -m URL; also -mu
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "hf_repo"])]
    model_url: Option<String>,
    /// Never use the network
    #[arg(long)]
    offline: bool,
}

impl ModelArgs {
    /// The file, fetched if need be.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let name = match (&self.model, &self.hf_repo, &self.model_url) {
            (Some(name), _, _) if name.is_empty() => {
                return Err(usage_error("-m: the name of the model is empty"));
            }
            (Some(name), _, _) => name.clone(),
            (None, Some(repo), _) => format!("hf:{}", repo.trim_start_matches("hf:")).into(),
            (None, None, Some(url)) => url.into(),
            (None, None, None) => OsString::new(),
        };
        models::find(&name, self.offline.then_some(Freshness::Offline))
    }
}
