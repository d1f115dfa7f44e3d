//! Feeding tokens to sequences: they are put into batches for the plan, and logits come out.

use crate::{Engine, EngineError, SeqId, sequence::check_room};
use puna_graph::{Batch, Run};
use puna_tokenizer::TokenId;
use std::{mem, ops::Range};

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

/// Takes a row of logits: indices of the feed and of its token, and the row.
type Sink<'a> = dyn FnMut(usize, usize, &[f32]) + 'a;

/// Memory that is kept from one call to the next, so that decoding a token allocates next to nothing.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Sequences that are fed.
    fed: Vec<SeqId>,
    /// Tokens of each feed that are computed.
    done: Vec<usize>,
    /// What one run computes.
    parts: Vec<Part>,
    /// Tokens of the run.
    tokens: Vec<u32>,
    /// Rows of the run whose logits are wanted.
    outputs: Vec<u32>,
    /// Feed and token of each of these rows.
    wanted: Vec<(usize, usize)>,
}

/// Tokens of a feed that are computed in one run.
struct Part {
    feed: usize,
    tokens: Range<usize>,
}

impl Part {
    /// Tokens of the feed whose logits are wanted.
    fn outputs(&self, feed: &Feed<'_>) -> Range<usize> {
        let Range { start, end } = self.tokens;
        match feed.want {
            Want::All => start..end,
            Want::Last if end == feed.tokens.len() => end - 1..end,
            _ => end..end,
        }
    }
}

impl Engine {
    /// Computes tokens of any number of sequences, each at most once, and calls `sink(feed, token, logits)` for every row of logits that
    /// is wanted, `feed` and `token` being indices; rows of a feed come in order.
    ///
    /// # Errors
    /// Nothing was computed, `sink` was not called, and no sequence has changed, where the context or the cache is too small, a token or
    /// a sequence is unknown, or a sequence is given twice. After an error of the backend ([`EngineError::Backend`]) the sequences hold
    /// the tokens whose computation was complete, and the rest can be fed again.
    pub fn decode(
        &mut self,
        feeds: &[Feed<'_>],
        sink: &mut dyn FnMut(usize, usize, &[f32]),
    ) -> Result<(), EngineError> {
        let mut buffers = mem::take(&mut self.buffers);
        let result = self.check(feeds, &mut buffers.fed).and_then(|()| {
            buffers.done.clear();
            buffers.done.resize(feeds.len(), 0);
            self.run_all(feeds, &mut buffers, sink)
        });
        self.buffers = buffers;
        result
    }

    fn check(&self, feeds: &[Feed<'_>], fed: &mut Vec<SeqId>) -> Result<(), EngineError> {
        if feeds.iter().all(|f| f.tokens.is_empty()) {
            return Err(EngineError::Empty);
        }
        fed.clear();
        fed.extend(feeds.iter().map(|f| f.sequence));
        fed.sort_unstable();
        if let Some(pair) = fed.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(EngineError::DuplicateSequence(pair[0].0));
        }
        let (vocabulary, context) = (self.vocabulary(), self.context());
        for feed in feeds {
            let tokens = self.get(feed.sequence)?.tokens.len() + feed.tokens.len();
            if tokens > context {
                return Err(EngineError::ContextExceeded { tokens, context });
            }
            if let Some(token) = feed.tokens.iter().find(|t| t.0 as usize >= vocabulary) {
                return Err(EngineError::UnknownToken {
                    token: token.0,
                    vocabulary,
                });
            }
        }
        let growths = feeds
            .iter()
            .filter(|f| !f.tokens.is_empty())
            .filter_map(|f| {
                let sequence = self.sequences.get(&f.sequence)?;
                Some((sequence, sequence.tokens.len() + f.tokens.len()))
            });
        check_room(&growths, &self.pools)
    }

    fn run_all(
        &mut self,
        feeds: &[Feed<'_>],
        buffers: &mut Buffers,
        sink: &mut Sink<'_>,
    ) -> Result<(), EngineError> {
        loop {
            self.compose(feeds, buffers);
            if buffers.parts.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.run(feeds, buffers, sink) {
                for part in &buffers.parts {
                    if let Some(sequence) = self.sequences.get_mut(&feeds[part.feed].sequence) {
                        sequence.trim(&mut self.pools);
                    }
                }
                return Err(error);
            }
            for part in &buffers.parts {
                buffers.done[part.feed] = part.tokens.end;
            }
        }
    }

    /// The next run: tokens of the feeds in order, as many as fit.
    fn compose(&self, feeds: &[Feed<'_>], buffers: &mut Buffers) {
        let (mut tokens, mut outputs) = (self.batch(), MAX_OUTPUTS.min(self.batch()));
        buffers.parts.clear();
        for (i, (feed, done)) in feeds.iter().zip(&buffers.done).enumerate() {
            let left = feed.tokens.len() - done;
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
                tokens: *done..done + take,
            };
            tokens -= take;
            outputs -= part.outputs(feed).len();
            buffers.parts.push(part);
        }
    }

    /// One run, after whose failure its sequences may have pages that they do not need.
    fn run(
        &mut self,
        feeds: &[Feed<'_>],
        buffers: &mut Buffers,
        sink: &mut Sink<'_>,
    ) -> Result<(), EngineError> {
        self.prepare(feeds, buffers)?;
        let mut runs = Vec::with_capacity(buffers.parts.len());
        let mut row = 0;
        for part in &buffers.parts {
            let id = feeds[part.feed].sequence;
            let sequence = self
                .sequences
                .get(&id)
                .ok_or(EngineError::UnknownSequence(id.0))?;
            runs.push(Run {
                rows: row..row + part.tokens.len(),
                first_position: sequence.tokens.len() as u32,
                pages: &sequence.tables,
            });
            row += part.tokens.len();
        }
        let batch = Batch {
            tokens: &buffers.tokens,
            runs: &runs,
            outputs: &buffers.outputs,
        };
        let logits = self.plan.run(&batch, self.memory.as_mut())?;
        let width = logits.len().checked_div(buffers.outputs.len()).unwrap_or(0);
        let rows = logits.chunks_exact(width.max(1));
        for (&(feed, token), row) in buffers.wanted.iter().zip(rows) {
            sink(feed, token, row);
        }
        for part in &buffers.parts {
            let feed = &feeds[part.feed];
            if let Some(sequence) = self.sequences.get_mut(&feed.sequence) {
                let tokens = &feed.tokens[part.tokens.clone()];
                sequence.tokens.extend_from_slice(tokens);
                sequence.release_passed(&self.reaches, &mut self.pools);
            }
        }
        Ok(())
    }

    /// Pages for all parts, and the tokens and outputs of the batch.
    fn prepare(&mut self, feeds: &[Feed<'_>], buffers: &mut Buffers) -> Result<(), EngineError> {
        let Buffers {
            parts,
            tokens,
            outputs,
            wanted,
            ..
        } = buffers;
        tokens.clear();
        outputs.clear();
        wanted.clear();
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
        Ok(())
    }
}
