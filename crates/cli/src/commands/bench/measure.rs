//! Running the tests.

use super::{Args, busy::Busy};
use crate::backend;
use anyhow::{Context, Result};
use puna::{
    CpuBackend, Engine, EngineOptions, Feed, SeqId, TokenId, Want,
    graph::{PAGE_POSITIONS, Profile},
};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// One thing to measure: a prompt or a generation.
#[derive(Clone, Copy)]
pub(super) struct Test {
    /// Tokens of the prompt; 0 for a generation.
    pub(super) prompt: usize,
    /// Tokens to generate in each sequence; 0 for a prompt.
    pub(super) generated: usize,
    /// Tokens in each sequence before it begins.
    pub(super) depth: usize,
    /// Sequences.
    pub(super) parallel: usize,
    /// Threads that keep cores busy meanwhile.
    pub(super) busy: usize,
}

impl Test {
    /// Tokens that are computed while time is taken.
    pub(super) fn tokens(&self) -> usize {
        self.prompt
            .saturating_add(self.generated)
            .saturating_mul(self.parallel)
    }

    /// Positions of the cache that all sequences need together.
    fn positions(&self) -> usize {
        let each = self
            .depth
            .saturating_add(self.prompt)
            .saturating_add(self.generated);
        let pages = each.div_ceil(PAGE_POSITIONS);
        pages
            .saturating_mul(PAGE_POSITIONS)
            .saturating_mul(self.parallel)
    }
}

/// What a test gave.
#[derive(Default)]
pub(super) struct Samples {
    /// Time of each repetition.
    pub(super) times: Vec<Duration>,
    /// Time of each step of each generation.
    pub(super) steps: Vec<Duration>,
    /// Where the time went, over all repetitions.
    pub(super) profile: Option<Profile>,
}

/// How the engine is set up.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) threads: usize,
    pub(super) batch: usize,
    pub(super) ubatch: usize,
}

/// A model opened for measurements.
pub(super) struct Bench {
    pub(super) engine: Engine,
    pub(super) backend: CpuBackend,
    pub(super) path: PathBuf,
    pub(super) setup: Setup,
    /// Whether the time of each step of the plan is taken.
    profiled: bool,
}

impl Bench {
    pub(super) fn open(args: &Args, path: &Path, setup: Setup, tests: &[Test]) -> Result<Self> {
        let mut options = EngineOptions::default();
        options.context = tests.iter().map(Test::positions).max();
        options.batch = setup.batch.min(setup.ubatch);
        options.key_type = args.cache.keys();
        options.value_type = args.cache.values();
        let backend = backend::open(Some(setup.threads))?;
        Ok(Self {
            engine: Engine::open(path, &backend, &options)?,
            backend,
            path: path.to_owned(),
            setup,
            profiled: args.profile.is_some() || !args.no_ceilings,
        })
    }

    /// Runs tests that differ in what disturbs them, in turn, so that the machine's moods meet them alike.
    pub(super) fn run(
        &mut self,
        tests: &[Test],
        repetitions: usize,
        warmup: bool,
    ) -> Result<Vec<Samples>> {
        if let Some(test) = tests.first().filter(|_| warmup) {
            // A few steps are enough to touch the weights and the memory.
            let short = Test {
                generated: test.generated.min(4),
                busy: 0,
                ..*test
            };
            self.measure(&short, &mut Samples::default())?;
        }
        let mut samples: Vec<_> = tests.iter().map(|_| Samples::default()).collect();
        for _ in 0..repetitions {
            for (test, samples) in tests.iter().zip(&mut samples) {
                self.measure(test, samples)?;
            }
        }
        Ok(samples)
    }

    fn measure(&mut self, test: &Test, samples: &mut Samples) -> Result<()> {
        let sequences: Vec<_> = (0..test.parallel).map(|_| self.engine.sequence()).collect();
        for (number, sequence) in sequences.iter().enumerate() {
            let tokens: Vec<_> = (0..test.depth).map(|i| self.token(i + number)).collect();
            if !tokens.is_empty() {
                self.feed(&[(*sequence, &tokens)], Want::None)?;
            }
        }
        let busy = Busy::start(test.busy);
        if self.profiled {
            self.engine.start_profile();
        }
        let start = Instant::now();
        if test.prompt > 0 {
            let tokens: Vec<_> = (0..test.prompt)
                .map(|i| self.token(test.depth + i))
                .collect();
            let sequence = *sequences.first().context("a test has a sequence")?;
            self.feed(&[(sequence, &tokens)], Want::Last)?;
        }
        let mut last = Instant::now();
        for i in 0..test.generated {
            let tokens: Vec<_> = (0..test.parallel)
                .map(|s| [self.token(test.depth + i + s)])
                .collect();
            let feeds: Vec<_> = sequences
                .iter()
                .zip(&tokens)
                .map(|(s, t)| (*s, &t[..]))
                .collect();
            self.feed(&feeds, Want::Last)?;
            let now = Instant::now();
            samples.steps.push(now - last);
            last = now;
        }
        samples.times.push(start.elapsed());
        drop(busy);
        if let Some(profile) = self.engine.take_profile() {
            samples.profile.get_or_insert_default().add(&profile);
        }
        for sequence in sequences {
            self.engine.remove(sequence);
        }
        Ok(())
    }

    fn feed(&mut self, tokens: &[(SeqId, &[TokenId])], want: Want) -> Result<()> {
        let feeds: Vec<_> = tokens
            .iter()
            .map(|&(sequence, tokens)| Feed {
                sequence,
                tokens,
                want,
            })
            .collect();
        Ok(self.engine.decode(&feeds, &mut |_, _, _| {})?)
    }

    /// Some token, another one at each place.
    fn token(&self, place: usize) -> TokenId {
        TokenId((place.wrapping_mul(7919) % self.engine.vocabulary()) as u32)
    }
}
