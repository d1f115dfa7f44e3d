//! How much memory a model needs, told before it is loaded and after by the same rule.

use crate::{EngineError, EngineOptions};
use puna_gguf::{Gguf, SourceFile};
use puna_graph::{Backend, CacheLayout, CacheMemory, PAGE_POSITIONS, Reach};
use puna_model::{HyperParameters, LoadOptions, Model};
use std::sync::Arc;

/// Longest context; positions are numbers of 32 bits, and one bit is left to sums of them.
const MAX_CONTEXT: usize = 1 << 31;

/// Bytes that a model needs to run, beside scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryNeed {
    /// The context that this is for, in tokens.
    pub context: usize,
    /// The context of the model's training.
    pub training: usize,
    /// The file, which is mapped: memory that other programs can share, and that the system can take back.
    pub file: u64,
    /// Pages of the cache that one sequence holds at most while it fills the context.
    pub cache: u64,
}

impl MemoryNeed {
    /// What `gguf` needs on `backend`. Of the tensors only the small vectors of the forward pass are read.
    ///
    /// # Errors
    /// [`EngineError`] where the model cannot be run, or not with these options.
    pub fn of(
        gguf: &Arc<Gguf>,
        backend: &dyn Backend,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let prepared = Prepared::new(gguf, options)?;
        let layout = &prepared.layout;
        // One page of each group tells the size of all.
        let memory = backend.cache(layout, &vec![1; layout.groups.len()])?;
        let hyper = &prepared.model.hyper;
        let (context, batch) = (prepared.context, prepared.batch);
        Self::new(gguf, hyper, layout, memory.as_ref(), context, batch)
    }

    pub(crate) fn new(
        gguf: &Gguf,
        hyper: &HyperParameters,
        layout: &CacheLayout,
        memory: &dyn CacheMemory,
        context: usize,
        batch: usize,
    ) -> Result<Self, EngineError> {
        let file: u64 = gguf.files().iter().map(SourceFile::byte_len).sum();
        let groups = layout.groups.iter().enumerate().map(|(i, group)| {
            let pages = pages_held(group.reach, context, batch) as u64;
            pages.checked_mul(memory.page_bytes(i) as u64)
        });
        let cache = groups.reduce(|a, b| a?.checked_add(b?)).unwrap_or(Some(0));
        // Their sum can be told too.
        let cache = cache.filter(|cache| cache.checked_add(file).is_some());
        let cache = cache.ok_or_else(|| EngineError::Option {
            option: "context",
            found: context.to_string(),
            expected: "one whose cache takes less than 2^64 bytes".to_owned(),
        })?;
        Ok(Self {
            context,
            training: hyper.context_length,
            file,
            cache,
        })
    }

    /// File and cache together.
    pub fn total(&self) -> u64 {
        self.file + self.cache
    }
}

/// A model with the options made definite, before anything is compiled.
pub(crate) struct Prepared {
    pub model: Model,
    pub layout: CacheLayout,
    pub context: usize,
    pub batch: usize,
}

impl Prepared {
    pub(crate) fn new(gguf: &Arc<Gguf>, options: &EngineOptions) -> Result<Self, EngineError> {
        check("batch size", options.batch, usize::MAX)?;
        if let Some(context) = options.context {
            check("context", context, MAX_CONTEXT)?;
        }
        let mut load = LoadOptions::default();
        load.context = options.context;
        load.check_tensors = options.check_tensors;
        let model = Model::load(gguf, &load)?;
        let context = options.context.unwrap_or(model.hyper.context_length);
        let layers = model.graph.cache_layers();
        Ok(Self {
            layout: CacheLayout::new(layers, options.key_type, options.value_type),
            batch: options.batch.min(context),
            model,
            context,
        })
    }
}

fn check(option: &'static str, found: usize, max: usize) -> Result<(), EngineError> {
    if (1..=max).contains(&found) {
        return Ok(());
    }
    Err(EngineError::Option {
        option,
        found: found.to_string(),
        expected: match max {
            usize::MAX => "at least 1".to_owned(),
            max => format!("1 to {max}"),
        },
    })
}

/// Most pages of a layer group that a sequence holds at any time while it fills the context in batches.
fn pages_held(reach: Reach, context: usize, batch: usize) -> usize {
    let all = context.div_ceil(PAGE_POSITIONS);
    match reach {
        Reach::Full => all,
        // In a run it holds the positions of the batch and what the first of them sees, wherever these begin in a page.
        Reach::Window(window) => {
            let positions = (window as usize).saturating_sub(1).saturating_add(batch);
            let spanned = positions.saturating_sub(1).div_ceil(PAGE_POSITIONS) + 1;
            all.min(spanned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pages::PagePool, sequence::Sequence};
    use puna_tokenizer::TokenId;

    /// Most pages that a sequence really holds.
    fn measured(reach: Reach, context: usize, batch: usize) -> usize {
        let mut pools = vec![PagePool::new(context.div_ceil(PAGE_POSITIONS))];
        let mut sequence = Sequence::new(1);
        let mut most = 0;
        while sequence.tokens.len() < context {
            let n = batch.min(context - sequence.tokens.len());
            sequence
                .prepare(sequence.tokens.len() + n, &mut pools)
                .unwrap();
            most = most.max(pools[0].used());
            sequence.tokens.extend(vec![TokenId(0); n]);
            sequence.release_passed(&[reach], &mut pools);
        }
        most
    }

    #[test]
    fn pages_are_counted_as_a_sequence_takes_them() {
        for (context, batch) in [(1, 1), (64, 64), (65, 7), (2000, 1), (2000, 67), (777, 777)] {
            for reach in [Reach::Full, Reach::Window(1), Reach::Window(100)] {
                let (found, expected) = (
                    pages_held(reach, context, batch),
                    measured(reach, context, batch),
                );
                assert_eq!(found, expected, "{reach:?}, {context}, {batch}");
            }
        }
        // Where batches never begin at the worst place, one page is counted too many.
        let reach = Reach::Window(64);
        assert_eq!(measured(reach, 2048, 64), 2);
        assert_eq!(pages_held(reach, 2048, 64), 3);
    }
}
