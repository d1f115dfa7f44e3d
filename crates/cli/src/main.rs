//! The `puna` program: runs, inspects and measures language models. Each subcommand is one file in `commands/`, flags that several of
//! them share are groups in `args/`. All logic of models is in the library crates; what is here reads flags, prints and chooses exit codes.

mod args;
mod argv;
mod backend;
mod commands;
mod failure;
mod machine;
mod models;
mod output;
mod shown;

use clap::Parser;
use commands::Command;
use std::{panic, process::ExitCode};

/// Runs GGUF language models on the CPU.
#[derive(Parser)]
#[command(
    name = "puna",
    version,
    arg_required_else_help = true,
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    panic::set_hook(Box::new(failure::report_panic));
    let arguments = argv::with_long_flags(std::env::args_os());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    match panic::catch_unwind(|| cli.command.run()) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => failure::report(&error),
        Err(_) => ExitCode::FAILURE,
    }
}
