//! Developer tasks behind `cargo xtask`: run the whole test suite, run what CI runs, check the laws of the repository's
//! layout, fetch real models for tests. The README beside this crate lists the commands.

mod models;
mod source;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo xtask COMMAND

  test [ARGS]          the whole test suite; ARGS go to the test runner
  ci                   formatting, clippy, docs, then the suite
  tidy [FOLDER]        the laws of the repository's layout
  models [NAME...]     fetch real models for tests; `all` for every one, none for the list";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        bail!("{USAGE}")
    };
    match (command.as_str(), rest) {
        ("test", rest) => suite::test(rest),
        ("ci", []) => suite::ci(),
        ("tidy", []) => check_layout(&root()?),
        ("tidy", [folder]) => check_layout(Path::new(folder)),
        ("models", names) => models::run(names),
        _ => bail!("{USAGE}"),
    }
}

fn check_layout(root: &Path) -> Result<()> {
    let broken = tidy::check(root)?;
    for violation in &broken {
        eprintln!("{violation}");
    }
    if !broken.is_empty() {
        bail!("{} broken laws", broken.len());
    }
    println!("{} laws hold", tidy::LAWS.len());
    Ok(())
}

/// The repository's top folder.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here
        .parent()
        .context("xtask has no parent folder")?
        .to_owned())
}
