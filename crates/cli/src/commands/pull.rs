//! `puna pull`: fetches a model into the cache folder.

use crate::{failure::usage_error, models, output::Output};
use anyhow::Result;
use puna::hub::Freshness;
use serde_json::json;
use std::{ffi::OsString, io::Write};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// hf:owner/repo[:quant] or a URL; without it the default model
    #[arg(value_name = "MODEL")]
    model: Option<OsString>,
    /// Ask the hub whether it has a newer file, even where one is in the cache
    #[arg(long)]
    latest: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.model.as_ref().is_some_and(|name| name.is_empty()) {
        return Err(usage_error("the name of the model is empty"));
    }
    let name = args.model.clone().unwrap_or_default();
    let path = models::find(&name, args.latest.then_some(Freshness::Latest))?;
    let mut output = Output::new();
    if args.json {
        let bytes = std::fs::metadata(&path)?.len();
        return output.json(&json!({ "path": path.to_string_lossy(), "bytes": bytes }));
    }
    writeln!(output, "{}", path.display())?;
    output.flush()?;
    Ok(())
}
