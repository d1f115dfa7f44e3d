//! `puna bench`: the speed of prompts and of generation, in the terms of llama-bench.
//!
//! A prompt test computes so many tokens at once and wants the logits of the last; a generation test feeds one fixed token at a time.
//! Nothing is sampled, so that only the model is measured.

mod measure;
mod report;

use crate::{
    args::{BatchArgs, CacheArgs, ModelArgs, positive, threads},
    backend,
    failure::usage_error,
    output::Output,
};
use anyhow::Result;
use measure::{Bench, Test};
use report::Entry;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the prompt test, a list; 0 for none
    #[arg(short = 'p', long, value_name = "LIST", value_delimiter = ',', default_value = "512")]
    n_prompt: Vec<usize>,
    /// Tokens of the generation test, a list; 0 for none
    #[arg(short = 'n', long, value_name = "LIST", value_delimiter = ',', default_value = "128")]
    n_gen: Vec<usize>,
    /// Tokens that are in the cache before a test begins, a list
    #[arg(short = 'd', long, visible_alias = "depth", value_name = "LIST", value_delimiter = ',', default_value = "0")]
    n_depth: Vec<usize>,
    /// Threads, a list; all that the machine has by default, as for 0
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true, value_parser = threads)]
    threads: Vec<usize>,
    /// Sequences that generate at the same time; speeds are their sum; also -np
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = positive)]
    parallel: usize,
    /// How often each test is repeated
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = positive)]
    repetitions: usize,
    /// Do not run each test once before it is measured
    #[arg(long)]
    no_warmup: bool,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print a JSON list, with the names of llama-bench
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let tests = tests(args)?;
    let path = args.model.path()?;
    let mut threads = args.threads.clone();
    if threads.is_empty() {
        threads.push(backend::all_threads());
    }
    let mut output = Output::new();
    let mut entries = Vec::new();
    for threads in threads {
        let mut bench = Bench::open(args, &path, threads, &tests)?;
        for test in &tests {
            let samples = bench.run(test, args.repetitions, !args.no_warmup)?;
            let entry = Entry::new(args, &bench, test, &samples);
            if !args.json {
                if entries.is_empty() {
                    output.show(&entry.table_head())?;
                }
                output.show(&entry.table_row())?;
            }
            entries.push(entry);
        }
    }
    if args.json {
        let list = entries.iter().map(Entry::json).collect();
        output.json(&serde_json::Value::Array(list))?;
    }
    Ok(())
}

/// The tests in the order of llama-bench: all prompts, then all generations, for each depth.
fn tests(args: &Args) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for &depth in &args.n_depth {
        let prompts = args.n_prompt.iter().map(|&n| (n, 0));
        let generations = args.n_gen.iter().map(|&n| (0, n));
        let sizes = prompts.chain(generations).filter(|size| *size != (0, 0));
        tests.extend(sizes.map(|(prompt, generated)| Test {
            prompt,
            generated,
            depth,
            parallel: if generated > 0 { args.parallel } else { 1 },
        }));
    }
    if tests.is_empty() {
        return Err(usage_error("nothing to measure: -p and -n are both 0"));
    }
    Ok(tests)
}
