//! `puna pull`: fetches a model into the cache folder.

use crate::{args::ModelArgs, models, output::Output};
use anyhow::Result;
use puna::hub::Freshness;
use serde_json::json;
use std::io::Write;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Ask the hub whether it has a newer file, even where one is in the cache
    #[arg(long, conflicts_with = "offline")]
    latest: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let path = if args.latest {
        models::find(&args.model.name()?, Some(Freshness::Latest))?
    } else {
        args.model.path()?
    };
    let mut output = Output::new();
    if args.json {
        let bytes = std::fs::metadata(&path)?.len();
        return output.json(&json!({ "path": path.to_string_lossy(), "bytes": bytes }));
    }
    writeln!(output, "{}", path.display())?;
    output.flush()?;
    Ok(())
}
