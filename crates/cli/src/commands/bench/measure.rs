//! Running the tests.

use super::Args;
use crate::backend;
use anyhow::{Context, Result};
use puna::{CpuBackend, Engine, EngineOptions, Feed, SeqId, TokenId, Want, graph::PAGE_POSITIONS};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// One thing to measure: a prompt or a generation.
pub(super) struct Test {
    /// Tokens of the prompt; 0 for a generation.
    pub(super) prompt: usize,
    /// Tokens to generate in each sequence; 0 for a prompt.
    pub(super) generated: usize,
    /// Tokens in each sequence before it begins.
    pub(super) depth: usize,
    /// Sequences.
    pub(super) parallel: usize,
}

impl Test {
    /// Tokens that are computed while time is taken.
    pub(super) fn tokens(&self) -> usize {
        (self.prompt + self.generated) * self.parallel
    }

    /// Positions of the cache that all sequences need together.
    fn positions(&self) -> usize {
        let each = self.depth + self.prompt + self.generated;
        each.next_multiple_of(PAGE_POSITIONS) * self.parallel
    }
}

/// A model opened for measurements.
pub(super) struct Bench {
    pub(super) engine: Engine,
    pub(super) backend: CpuBackend,
    pub(super) path: PathBuf,
}

impl Bench {
    pub(super) fn open(args: &Args, path: &Path, threads: usize, tests: &[Test]) -> Result<Self> {
        let mut options = EngineOptions::default();
        options.context = tests.iter().map(Test::positions).max();
        options.batch = args.batch.tokens();
        options.key_type = args.cache.keys();
        options.value_type = args.cache.values();
        let backend = backend::open(Some(threads))?;
        Ok(Self {
            engine: Engine::open(path, &backend, &options)?,
            backend,
            path: path.to_owned(),
        })
    }

    /// Time of each repetition.
    pub(super) fn run(&mut self, test: &Test, repetitions: usize, warmup: bool) -> Result<Vec<Duration>> {
        if warmup {
            // A few steps are enough to touch the weights and the memory.
            let short = Test {
                generated: test.generated.min(4),
                ..*test
            };
            self.measure(&short)?;
        }
        (0..repetitions).map(|_| self.measure(test)).collect()
    }

    fn measure(&mut self, test: &Test) -> Result<Duration> {
        let sequences: Vec<_> = (0..test.parallel).map(|_| self.engine.sequence()).collect();
        for (number, sequence) in sequences.iter().enumerate() {
            let tokens: Vec<_> = (0..test.depth).map(|i| self.token(i + number)).collect();
            if !tokens.is_empty() {
                self.feed(&[(*sequence, &tokens)], Want::None)?;
            }
        }
        let start = Instant::now();
        if test.prompt > 0 {
            let tokens: Vec<_> = (0..test.prompt).map(|i| self.token(test.depth + i)).collect();
            let sequence = *sequences.first().context("a test has a sequence")?;
            self.feed(&[(sequence, &tokens)], Want::Last)?;
        }
        for i in 0..test.generated {
            let tokens: Vec<_> = (0..test.parallel).map(|s| [self.token(test.depth + i + s)]).collect();
            let feeds: Vec<_> = sequences.iter().zip(&tokens).map(|(s, t)| (*s, &t[..])).collect();
            self.feed(&feeds, Want::Last)?;
        }
        let time = start.elapsed();
        for sequence in sequences {
            self.engine.remove(sequence);
        }
        Ok(time)
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
