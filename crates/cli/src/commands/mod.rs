//! The subcommands, one file or folder each.

mod bench;
mod doctor;
mod eval;
mod inspect;
mod list;
mod pull;
mod run;
mod tokenize;

use anyhow::Result;
use clap::Subcommand;

macro_rules! commands {
    ($($(#[$doc:meta])* $module:ident $name:ident),* $(,)?) => {
        /// A subcommand with its arguments.
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $($(#[$doc])* $name($module::Args)),*
        }

        impl Command {
            /// Does it.
            pub(crate) fn run(self) -> Result<()> {
                match self {
                    $(Self::$name(args) => $module::run(&args)),*
                }
            }
        }
    };
}

commands! {
    /// Answer a prompt, or talk with the model
    run Run,
    /// Show what a model file holds and how much memory it needs
    inspect Inspect,
    /// Turn text into token ids, or ids into text
    tokenize Tokenize,
    /// Print or save the logits of given tokens
    eval Eval,
    /// Measure the speed of prompts and generation
    bench Bench,
    /// Tell what this machine offers: CPU, kernels, memory, cache folder
    doctor Doctor,
    /// Fetch a model into the cache folder
    pull Pull,
    /// List the models in the cache folder
    list List,
}
