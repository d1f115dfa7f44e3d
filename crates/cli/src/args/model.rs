//! Which model.

use crate::{failure::usage_error, models};
use anyhow::{Result, anyhow};
use clap::Args;
use puna::hub::{Freshness, HubError};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Which model.
#[derive(Args)]
pub(crate) struct ModelArgs {
    /// A .gguf file, a folder with one, hf:OWNER/REPO[:QUANT] or a URL; without it the default model, which is small
    #[arg(value_name = "MODEL")]
    first: Option<OsString>,
    /// The model, as a flag
    #[arg(short, long, value_name = "MODEL", help_heading = "Model")]
    model: Option<OsString>,
    /// The same as -m hf:OWNER/REPO[:QUANT]; also -hf
    #[arg(
        long,
        value_name = "OWNER/REPO[:QUANT]",
        conflicts_with = "model",
        help_heading = "Model"
    )]
    hf_repo: Option<String>,
    /// The same as -m URL; also -mu
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "hf_repo"], help_heading = "Model")]
    model_url: Option<String>,
    /// Never use the network: only files and what was fetched before
    #[arg(long, help_heading = "Model")]
    offline: bool,
}

impl ModelArgs {
    /// The name as [`models::find`] takes it; empty for the default model. Nothing is looked up.
    pub(crate) fn name(&self) -> Result<OsString> {
        let repo = self.hf_repo.as_ref();
        let repo = repo.map(|repo| format!("hf:{}", repo.trim_start_matches("hf:")).into());
        let flag = self.model.clone().or(repo);
        let flag = flag.or_else(|| self.model_url.as_ref().map(Into::into));
        match (&self.first, flag) {
            (Some(first), Some(flag)) => Err(usage_error(format!(
                "the model is given twice, as `{}` and as `{}`; a prompt goes behind -p",
                first.display(),
                flag.display()
            ))),
            (Some(name), None) if is_sentence(name) => Err(usage_error(format!(
                "`{}` is no file: the first word names the model; a prompt follows it or goes behind -p",
                name.display()
            ))),
            (None, None) => Ok(OsString::new()),
            (first, flag) => match flag.or_else(|| first.clone()) {
                Some(name) if !name.is_empty() => Ok(name),
                _ => Err(usage_error("the name of the model is empty")),
            },
        }
    }

    /// The file, fetched if need be.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let found = models::find(&self.name()?, self.offline.then_some(Freshness::Offline));
        found.map_err(|error| match error.downcast_ref() {
            Some(HubError::NoFile(_)) if self.first.is_some() => {
                anyhow!("{error}; the first word names the model, and a prompt comes after it")
            }
            _ => error,
        })
    }
}

/// Whether this is rather a prompt than the name of a model.
fn is_sentence(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    text.trim().contains(char::is_whitespace)
        && !text.ends_with(".gguf")
        && !Path::new(name).exists()
}
