//! `cargo xtask test` and `cargo xtask ci`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{models, root};

/// Everything that is tested. Without the default model (no network) its tests are skipped, visibly.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    let folder = models::folder()?;
    if let Err(error) = models::fetch(models::DEFAULT, &folder) {
        eprintln!("note: tests with a real model will be skipped: {error:#}");
    }
    run_tests(arguments)
}

/// What a change must pass. Here the default model is no option.
pub(crate) fn ci() -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )?;
    cargo(
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    models::fetch(models::DEFAULT, &models::folder()?)?;
    run_tests(&[])
}

fn run_tests(arguments: &[String]) -> Result<()> {
    let folder = models::folder()?;
    let folder = folder
        .to_str()
        .context("the folder of the test models is not UTF-8")?;
    let environment = [("PUNA_TEST_MODELS", folder)];
    let arguments = arguments.iter().map(String::as_str);
    if has_nextest() {
        let words: Vec<&str> = ["nextest", "run", "--workspace"]
            .into_iter()
            .chain(arguments)
            .collect();
        cargo(&words, &environment)?;
        cargo(&["test", "--workspace", "--doc"], &environment)
    } else {
        // This runs the doc tests too.
        let words: Vec<&str> = ["test", "--workspace"]
            .into_iter()
            .chain(arguments)
            .collect();
        cargo(&words, &environment)
    }
}

fn has_nextest() -> bool {
    let mut command = Command::new(cargo_program());
    let asked = command
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("$ {line}");
    let mut command = Command::new(cargo_program());
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root()?);
    let status = command
        .status()
        .with_context(|| format!("`{line}` does not start"))?;
    if !status.success() {
        bail!("`{line}` failed");
    }
    Ok(())
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
