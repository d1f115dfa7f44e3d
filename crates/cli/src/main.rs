//! The `puna` program: runs, inspects and measures language models. Each subcommand is one file in `commands/`, flags that several of
//! them share are groups in `args/`. All logic of models is in the library crates; what is here reads flags, prints and chooses exit codes.

/// A line on the standard error. Where that is closed or full nothing can be told, which is no reason to stop.
macro_rules! tell {
    ($($text:tt)*) => { crate::output::tell(format_args!("{}\n", format_args!($($text)*))) };
}
/// The same without the line's end.
macro_rules! tell_part {
    ($($text:tt)*) => { crate::output::tell(format_args!($($text)*)) };
}

mod args;
mod argv;
mod backend;
mod commands;
mod elsewhere;
mod failure;
mod files;
mod machine;
mod models;
mod output;
mod piped;
mod shown;

use clap::{CommandFactory, Parser};
use commands::Command;
use std::{panic, process::ExitCode};

const AFTER_HELP: &str = "\
Begin with `puna run`, which fetches a small model the first time. With a model of your own:
  puna run model.gguf            a conversation
  puna run model.gguf \"Hello\"    one answer
  puna COMMAND --help            the flags of a command

Exit codes: 0 it is done, 1 it failed, 2 the arguments are wrong. What went wrong is one line on the standard error.";

/// Runs GGUF language models on the CPU.
#[derive(Parser)]
#[command(
    name = "puna",
    version,
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    panic::set_hook(Box::new(failure::report_panic));
    let mut program = Cli::command();
    program.build();
    let prepared = match argv::prepare(std::env::args_os(), &program) {
        Ok(prepared) => prepared,
        Err(problem) => return failure::refused(&problem),
    };
    let cli = match Cli::try_parse_from(prepared.arguments) {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    for note in prepared.notes {
        tell!("note: {note}");
    }
    match panic::catch_unwind(|| cli.command.run()) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => failure::report(&error),
        Err(_) => ExitCode::FAILURE,
    }
}
