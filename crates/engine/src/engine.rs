//! A loaded model with its cache: feeding tokens, getting logits.

use crate::{
    EngineError, EngineOptions,
    pages::PagePool,
    sequence::{SeqId, Sequence, check_room},
};
use puna_gguf::Gguf;
use puna_graph::{
    Backend, Batch, CacheLayout, CacheMemory, PAGE_POSITIONS, Plan, PlanOptions, Profile, Reach,
    Run,
};
use puna_model::{LoadOptions, Model};
use puna_tokenizer::{TokenId, Tokenizer, TokenizerError};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

/// Most rows of logits of one run, whose memory is their number times the vocabulary.
const MAX_OUTPUTS: usize = 32;

/// Tokens for one sequence, and which of their logits are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// The sequence.
    pub sequence: SeqId,
    /// Its next tokens.
    pub tokens: &'a [TokenId],
    /// Wanted logits.
    pub want: Want,
}

/// Which logits of a [`Feed`] are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// None: the tokens only go into the cache.
    None,
    /// Those of the last token.
    Last,
    /// Those of every token.
    All,
}

/// Bytes that a model needs beside its mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The cache, when all of it is in use.
    pub cache: usize,
    /// Scratch in use so far.
    pub scratch: usize,
}

/// A loaded model with its cache.
pub struct Engine {
    gguf: Arc<Gguf>,
    model: Model,
    tokenizer: Result<Arc<Tokenizer>, Arc<TokenizerError>>,
    plan: Box<dyn Plan>,
    memory: Box<dyn CacheMemory>,
    layout: CacheLayout,
    pools: Vec<PagePool>,
    reaches: Vec<Reach>,
    sequences: BTreeMap<SeqId, Sequence>,
    next: u32,
    context: usize,
    batch: usize,
}

impl Engine {
    /// Opens a file and prepares it for `backend`.
    ///
    /// # Errors
    /// [`EngineError`], naming what in the file or in the options is wrong. A vocabulary that cannot be used is no error before text
    /// is needed ([`Self::tokenizer`]).
    pub fn open(
        path: &Path,
        backend: &dyn Backend,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        Self::from_gguf(Arc::new(Gguf::open(path)?), backend, options)
    }

    /// As [`Self::open`], for a file that is open already.
    pub fn from_gguf(
        gguf: Arc<Gguf>,
        backend: &dyn Backend,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let positive = |option, value: Option<usize>| match value {
            Some(0) => Err(EngineError::Option {
                option,
                found: "0".to_owned(),
                expected: "at least 1".to_owned(),
            }),
            _ => Ok(()),
        };
        positive("batch size", Some(options.batch))?;
        positive("context", options.context)?;
        let mut load = LoadOptions::default();
        load.context = options.context;
        load.check_tensors = options.check_tensors;
        let mut model = Model::load(&gguf, &load)?;
        let context = options.context.unwrap_or(model.hyper.context_length);
        let batch = options.batch.min(context);
        let layout = CacheLayout::new(
            model.graph.cache_layers(),
            options.key_type,
            options.value_type,
        );
        // The plan keeps the graph and its weights.
        let graph = std::mem::take(&mut model.graph);
        let plan = backend.compile(graph, &layout, &PlanOptions::new(batch))?;
        // One page more, so that a sequence at the end of the context can still copy a shared page before it writes.
        let pages = vec![context.div_ceil(PAGE_POSITIONS) + 1; layout.groups.len()];
        let memory = backend.cache(&layout, &pages)?;
        let tokenizer = Tokenizer::from_gguf(gguf.metadata())
            .map(Arc::new)
            .map_err(Arc::new);
        Ok(Self {
            reaches: layout.groups.iter().map(|g| g.reach).collect(),
            pools: pages.into_iter().map(PagePool::new).collect(),
            gguf,
            model,
            tokenizer,
            plan,
            memory,
            layout,
            sequences: BTreeMap::new(),
            next: 0,
            context,
            batch,
        })
    }

    /// The file.
    pub fn gguf(&self) -> &Arc<Gguf> {
        &self.gguf
    }

    /// Architecture and hyper-parameters.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Tokens that the context holds.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Most tokens that are computed together.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Entries of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.model.hyper.vocabulary
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// Why the file's vocabulary cannot be used.
    pub fn tokenizer(&self) -> Result<&Arc<Tokenizer>, Arc<TokenizerError>> {
        self.tokenizer.as_ref().map_err(Arc::clone)
    }

    /// Memory beside the mapped file.
    pub fn memory(&self) -> MemoryNeed {
        let pages = self.memory.page_counts();
        let cache = pages
            .iter()
            .enumerate()
            .map(|(group, n)| n * self.memory.page_bytes(group));
        MemoryNeed {
            cache: cache.sum(),
            scratch: self.plan.scratch_bytes(),
        }
    }

    /// Begins to take the time of each step of the plan; false where the backend cannot.
    pub fn start_profile(&mut self) -> bool {
        self.plan.start_profile()
    }

    /// What the runs since [`Self::start_profile`] cost, and an end of taking time.
    pub fn take_profile(&mut self) -> Option<Profile> {
        self.plan.take_profile()
    }

    /// Layout of the cache.
    pub fn cache_layout(&self) -> &CacheLayout {
        &self.layout
    }

    /// A new, empty sequence.
    pub fn sequence(&mut self) -> SeqId {
        let id = SeqId(self.next);
        self.next += 1;
        self.sequences.insert(id, Sequence::new(self.pools.len()));
        id
    }

    /// Ends a sequence and gives its pages back.
    pub fn remove(&mut self, id: SeqId) {
        if let Some(mut sequence) = self.sequences.remove(&id) {
            sequence.clear(&mut self.pools);
        }
    }

    /// A new sequence that begins as this one does; they share their pages until they differ.
    pub fn fork(&mut self, id: SeqId) -> Result<SeqId, EngineError> {
        let sequence = self
            .sequences
            .get(&id)
            .ok_or(EngineError::UnknownSequence(id.0))?;
        let copy = sequence.fork(&mut self.pools);
        let new = SeqId(self.next);
        self.next += 1;
        self.sequences.insert(new, copy);
        Ok(new)
    }

    /// Tokens of a sequence that are in the cache.
    pub fn tokens(&self, id: SeqId) -> Result<&[TokenId], EngineError> {
        Ok(&self.get(id)?.tokens)
    }

    /// Forgets the tokens of a sequence from `len` on.
    ///
    /// # Errors
    /// [`EngineError::WindowPassed`] where a sliding window has given back what would be needed; the sequence is as it was.
    pub fn truncate(&mut self, id: SeqId, len: usize) -> Result<(), EngineError> {
        let sequence = self
            .sequences
            .get_mut(&id)
            .ok_or(EngineError::UnknownSequence(id.0))?;
        sequence.truncate(len, &self.reaches, &mut self.pools)
    }

    /// Makes the sequence hold a beginning of `tokens`, as long as the cache allows, and returns its length; at least the last token is
    /// left to compute.
    pub fn reuse(&mut self, id: SeqId, tokens: &[TokenId]) -> Result<usize, EngineError> {
        let held = self.tokens(id)?;
        let common = held.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let common = common.min(tokens.len().saturating_sub(1));
        match self.truncate(id, common) {
            Err(EngineError::WindowPassed { .. }) => {
                self.truncate(id, 0).map(|()| 0).or_else(|_| self.reset(id))
            }
            done => done.map(|()| common),
        }
    }

    fn reset(&mut self, id: SeqId) -> Result<usize, EngineError> {
        let sequence = self
            .sequences
            .get_mut(&id)
            .ok_or(EngineError::UnknownSequence(id.0))?;
        sequence.clear(&mut self.pools);
        Ok(0)
    }

    fn get(&self, id: SeqId) -> Result<&Sequence, EngineError> {
        self.sequences
            .get(&id)
            .ok_or(EngineError::UnknownSequence(id.0))
    }

    /// Computes tokens of any number of sequences, each at most once, and calls `sink(feed, token, logits)` for every row of logits that
    /// is wanted, `feed` and `token` being indices; rows of a feed come in order.
    ///
    /// # Errors
    /// Nothing was computed, `sink` was not called, and no sequence has changed, where the context or the cache is too small, a token or
    /// a sequence is unknown, or a sequence is given twice. After an error of the backend ([`EngineError::Backend`]) the sequences hold
    /// the tokens whose computation was complete.
    pub fn decode(
        &mut self,
        feeds: &[Feed<'_>],
        sink: &mut dyn FnMut(usize, usize, &[f32]),
    ) -> Result<(), EngineError> {
        self.check(feeds)?;
        let mut done = vec![0; feeds.len()];
        loop {
            let batch = self.compose(feeds, &done);
            if batch.is_empty() {
                return Ok(());
            }
            self.run(feeds, &batch, sink)?;
            for part in batch {
                done[part.feed] = part.tokens.end;
            }
        }
    }

    fn check(&self, feeds: &[Feed<'_>]) -> Result<(), EngineError> {
        if feeds.iter().all(|f| f.tokens.is_empty()) {
            return Err(EngineError::Empty);
        }
        let mut growths = Vec::with_capacity(feeds.len());
        let mut seen = BTreeSet::new();
        for feed in feeds {
            if !seen.insert(feed.sequence) {
                return Err(EngineError::DuplicateSequence(feed.sequence.0));
            }
            let sequence = self.get(feed.sequence)?;
            let tokens = sequence.tokens.len() + feed.tokens.len();
            if tokens > self.context {
                return Err(EngineError::ContextExceeded {
                    tokens,
                    context: self.context,
                });
            }
            let vocabulary = self.vocabulary();
            if let Some(token) = feed.tokens.iter().find(|t| t.0 as usize >= vocabulary) {
                return Err(EngineError::UnknownToken {
                    token: token.0,
                    vocabulary,
                });
            }
            if !feed.tokens.is_empty() {
                growths.push((sequence, tokens));
            }
        }
        check_room(&growths, &self.pools)
    }

    /// The next run: tokens of the feeds in order, as many as fit.
    fn compose(&self, feeds: &[Feed<'_>], done: &[usize]) -> Vec<Part> {
        let (mut tokens, mut outputs) = (self.batch, MAX_OUTPUTS.min(self.batch));
        let mut parts = Vec::new();
        for (i, feed) in feeds.iter().enumerate() {
            let left = feed.tokens.len() - done[i];
            let take = match feed.want {
                Want::All => left.min(tokens).min(outputs),
                Want::Last if outputs == 0 => 0,
                Want::Last | Want::None => left.min(tokens),
            };
            if take == 0 {
                continue;
            }
            let part = Part {
                feed: i,
                tokens: done[i]..done[i] + take,
            };
            tokens -= take;
            outputs -= part.outputs(feed).len();
            parts.push(part);
        }
        parts
    }

    /// One run, after whose failure its sequences are as they were.
    fn run(
        &mut self,
        feeds: &[Feed<'_>],
        parts: &[Part],
        sink: &mut dyn FnMut(usize, usize, &[f32]),
    ) -> Result<(), EngineError> {
        let result = self.try_run(feeds, parts, sink);
        if result.is_err() {
            for part in parts {
                if let Some(sequence) = self.sequences.get_mut(&feeds[part.feed].sequence) {
                    sequence.trim(&mut self.pools);
                }
            }
        }
        result
    }

    fn try_run(
        &mut self,
        feeds: &[Feed<'_>],
        parts: &[Part],
        sink: &mut dyn FnMut(usize, usize, &[f32]),
    ) -> Result<(), EngineError> {
        let (mut tokens, mut outputs, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let feed = &feeds[part.feed];
            let id = feed.sequence;
            let sequence = self
                .sequences
                .get_mut(&id)
                .ok_or(EngineError::UnknownSequence(id.0))?;
            let end = sequence.tokens.len() + part.tokens.len();
            for copy in sequence.prepare(end, &mut self.pools)? {
                self.memory.copy_page(copy.group, copy.from, copy.to);
            }
            for token in part.outputs(feed) {
                outputs.push((tokens.len() + token - part.tokens.start) as u32);
                wanted.push((part.feed, token));
            }
            tokens.extend(feed.tokens[part.tokens.clone()].iter().map(|t| t.0));
        }
        let mut runs = Vec::with_capacity(parts.len());
        let mut row = 0;
        for part in parts {
            let sequence = &self.sequences[&feeds[part.feed].sequence];
            runs.push(Run {
                rows: row..row + part.tokens.len(),
                first_position: sequence.tokens.len() as u32,
                pages: &sequence.tables,
            });
            row += part.tokens.len();
        }
        let batch = Batch {
            tokens: &tokens,
            runs: &runs,
            outputs: &outputs,
        };
        let logits = self.plan.run(&batch, self.memory.as_mut())?;
        let width = logits.len().checked_div(outputs.len()).unwrap_or(0);
        for ((feed, token), row) in wanted.into_iter().zip(logits.chunks_exact(width.max(1))) {
            sink(feed, token, row);
        }
        for part in parts {
            let feed = &feeds[part.feed];
            if let Some(sequence) = self.sequences.get_mut(&feed.sequence) {
                sequence
                    .tokens
                    .extend_from_slice(&feed.tokens[part.tokens.clone()]);
                sequence.release_passed(&self.reaches, &mut self.pools);
            }
        }
        Ok(())
    }
}

/// Tokens of a feed that are computed in one run.
struct Part {
    feed: usize,
    tokens: std::ops::Range<usize>,
}

impl Part {
    /// Tokens of the feed whose logits are wanted.
    fn outputs(&self, feed: &Feed<'_>) -> std::ops::Range<usize> {
        match feed.want {
            Want::All => self.tokens.clone(),
            Want::Last if self.tokens.end == feed.tokens.len() => {
                self.tokens.end - 1..self.tokens.end
            }
            _ => self.tokens.end..self.tokens.end,
        }
    }
}
