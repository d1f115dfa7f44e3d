//! `puna bench`: the speed of prompts and of generation, in the terms of llama-bench.
//!
//! A prompt test computes so many tokens at once and wants the logits of the last; a generation test feeds one fixed token at a time.
//! Nothing is sampled, so that only the model is measured. Beside each speed stands its share of what the machine can do, and
//! `--profile` says which steps take the time.

mod busy;
mod latency;
mod measure;
mod model_type;
mod plot;
mod profile;
mod report;
mod shares;

use crate::{
    args::{CacheArgs, ModelArgs, positive, threads},
    backend,
    failure::usage_error,
    machine::Ceilings,
    output::Output,
};
use anyhow::Result;
use measure::{Bench, Samples, Setup, Test};
use report::{Entry, Model};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the prompt test, a list; 0 for none
    #[arg(
        short = 'p',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "512"
    )]
    n_prompt: Vec<usize>,
    /// Tokens of the generation test, a list; 0 for none
    #[arg(
        short = 'n',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "128"
    )]
    n_gen: Vec<usize>,
    /// Tokens that are in the cache before a test begins, a list
    #[arg(
        short = 'd',
        long,
        visible_alias = "depth",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0"
    )]
    n_depth: Vec<usize>,
    /// Threads, a list; all that the machine has by default, as for 0
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true, value_parser = threads)]
    threads: Vec<usize>,
    /// Sequences that generate at the same time, a list; speeds are their sum; also -np
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = positive)]
    parallel: Vec<usize>,
    /// Most tokens that are computed together, a list; the smaller of this and -ub counts
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', default_value = "2048", value_parser = positive)]
    batch_size: Vec<usize>,
    /// Most tokens that are computed together, a list; also -ub
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "512", value_parser = positive)]
    ubatch_size: Vec<usize>,
    /// How often each test is repeated
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = positive)]
    repetitions: usize,
    /// Run each test also while so many threads keep cores busy, a list; one by default
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1, default_missing_value = "1", value_parser = busy::threads)]
    disturb: Vec<usize>,
    /// Do not run each test once before it is measured
    #[arg(long)]
    no_warmup: bool,
    /// Do not measure what the machine can do at best, nor what the steps do
    #[arg(long)]
    no_ceilings: bool,
    /// Show which steps of the model take the time
    #[arg(long, value_name = "DETAIL", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "layers")]
    profile: Option<profile::Detail>,
    /// Draw speeds over what varies (depth, sequences, batch, threads, tokens) into an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print a JSON list, with the names of llama-bench
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let tests = tests(args)?;
    let path = args.model.path()?;
    let mut output = Output::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut measured: Vec<Ceilings> = Vec::new();
    for setup in setups(args) {
        // Before the model is opened, whose pages would take part.
        let ceilings = ceilings(args, setup.threads, &mut measured)?;
        let mut bench = Bench::open(args, &path, setup, &tests)?;
        let model = Model::new(&bench);
        for test in &tests {
            let busy = std::iter::once(0).chain(args.disturb.iter().copied());
            let group: Vec<_> = busy.map(|busy| Test { busy, ..*test }).collect();
            let results = bench.run(&group, args.repetitions, !args.no_warmup)?;
            let first = entries.len();
            for (test, samples) in group.iter().zip(results) {
                let undisturbed = (test.busy > 0).then(|| &entries[first]);
                let entry = Entry::new(args, &bench, &model, *test, samples, ceilings, undisturbed);
                if !args.json {
                    if entries.is_empty() {
                        output.show(&entry.table_head())?;
                    }
                    output.show(&entry.table_row())?;
                }
                entries.push(entry);
            }
        }
    }
    if args.json {
        let list = entries
            .iter()
            .map(|e| e.json(args.profile.is_some()))
            .collect();
        output.json(&serde_json::Value::Array(list))?;
    } else {
        output.show(&report::notes(&measured, &entries, args.profile))?;
    }
    if let Some(path) = &args.plot {
        plot::write(path, &entries)?;
    }
    Ok(())
}

/// Every way to set up the engine, in the order of llama-bench.
fn setups(args: &Args) -> Vec<Setup> {
    let all = [backend::all_threads()];
    let threads = if args.threads.is_empty() {
        &all[..]
    } else {
        &args.threads
    };
    let mut setups = Vec::new();
    for &batch in &args.batch_size {
        for &ubatch in &args.ubatch_size {
            setups.extend(threads.iter().map(|&threads| Setup {
                threads,
                batch,
                ubatch,
            }));
        }
    }
    setups
}

/// The machine's best with that many threads, measured once.
fn ceilings(args: &Args, threads: usize, measured: &mut Vec<Ceilings>) -> Result<Option<Ceilings>> {
    if args.no_ceilings {
        return Ok(None);
    }
    if let Some(known) = measured.iter().find(|c| c.threads == threads) {
        return Ok(Some(*known));
    }
    let new = Ceilings::measure(threads)?;
    measured.push(new);
    Ok(Some(new))
}

/// The tests in the order of llama-bench: all prompts, then all generations, for each depth.
fn tests(args: &Args) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for &depth in &args.n_depth {
        let test = |prompt, generated, parallel| Test {
            prompt,
            generated,
            depth,
            parallel,
            busy: 0,
        };
        let prompts = args.n_prompt.iter().filter(|n| **n > 0);
        tests.extend(prompts.map(|&n| test(n, 0, 1)));
        for &n in args.n_gen.iter().filter(|n| **n > 0) {
            tests.extend(args.parallel.iter().map(|&parallel| test(0, n, parallel)));
        }
    }
    if tests.is_empty() {
        return Err(usage_error("nothing to measure: -p and -n are both 0"));
    }
    if args.plot.is_some() && !plot::varies(&tests, &setups(args)) {
        return Err(usage_error(
            "nothing to plot: one of -d, --parallel, -b, -ub, -t, -p and -n must be a list of several values",
        ));
    }
    Ok(tests)
}
