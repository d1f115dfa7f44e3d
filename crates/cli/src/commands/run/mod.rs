//! `puna run`: one answer, or a conversation.

mod input;
mod interactive;
mod once;
mod session;

use crate::{
    args::{EngineArgs, ModelArgs, PromptArgs, SamplingArgs},
    output::Output,
};
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Without a prompt, a terminal gets a conversation, and piped text is the prompt; with one, piped text follows it after an empty line.
Flags of llama.cpp that change nothing here are taken with a note.";

#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    chat: ChatArgs,
    /// Print one JSON object with ids, text and timings
    #[arg(long)]
    json: bool,
    /// Tell times and speeds on the standard error
    #[arg(short, long)]
    verbose: bool,
    /// Print the prompt before the text
    #[arg(long)]
    display_prompt: bool,
    /// Color what --display-prompt shows; also -co
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value = "auto", value_enum)]
    color: Color,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// How the prompt becomes what the model sees.
#[derive(clap::Args)]
struct ChatArgs {
    /// Answer by the model's chat template, the default where it has one; an error where it has none
    #[arg(long, conflicts_with = "raw", help_heading = "Prompt")]
    chat: bool,
    /// Continue the prompt as it is, without a template
    #[arg(long, help_heading = "Prompt")]
    raw: bool,
    /// Jinja source of the chat template, or the name of one in the model file
    #[arg(
        long,
        value_name = "TEMPLATE",
        conflicts_with = "raw",
        help_heading = "Prompt"
    )]
    chat_template: Option<String>,
    /// Read the chat template from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "chat_template"], help_heading = "Prompt")]
    chat_template_file: Option<PathBuf>,
    /// The system's message; also -sys
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "raw",
        help_heading = "Prompt"
    )]
    system_prompt: Option<String>,
    /// Read the system's message from a file; also -sysf
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "system_prompt"], help_heading = "Prompt")]
    system_prompt_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    On,
    Off,
    Auto,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.model.name()?;
    args.sampling.check(&args.prompt)?;
    match input::prompt(args)? {
        Some(prompt) => once::run(args, &prompt),
        None => interactive::run(args),
    }
}

/// What the user wrote, colored where that is wanted.
fn user_text(args: &Args, text: &str) -> String {
    let colored = match args.color {
        Color::On => true,
        Color::Off => false,
        Color::Auto => Output::is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    if colored {
        format!("\x1b[1;32m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
