//! A loaded model with its cache: feeding tokens, getting logits.

use crate::{
    EngineError, EngineOptions, MemoryNeed,
    decode::Buffers,
    memory::Prepared,
    pages::PagePool,
    sequence::{SeqId, Sequence},
};
use puna_gguf::Gguf;
use puna_graph::{
    Backend, CacheLayout, CacheMemory, PAGE_POSITIONS, Plan, PlanOptions, Profile, Reach,
    check_support,
};
use puna_model::{HyperParameters, Model};
use puna_tokenizer::{TokenId, Tokenizer, TokenizerError};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// A loaded model with its cache.
pub struct Engine {
    gguf: Arc<Gguf>,
    architecture: &'static str,
    hyper: HyperParameters,
    tokenizer: Result<Arc<Tokenizer>, Arc<TokenizerError>>,
    pub(crate) plan: Box<dyn Plan>,
    pub(crate) memory: Box<dyn CacheMemory>,
    layout: CacheLayout,
    pub(crate) pools: Vec<PagePool>,
    pub(crate) reaches: Vec<Reach>,
    pub(crate) sequences: BTreeMap<SeqId, Sequence>,
    pub(crate) buffers: Buffers,
    next: u64,
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
        let Prepared {
            model,
            layout,
            context,
            batch,
        } = Prepared::new(&gguf, options)?;
        let Model {
            architecture,
            hyper,
            graph,
        } = model;
        check_support(backend, &graph)?;
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
            architecture,
            hyper,
            tokenizer,
            plan,
            memory,
            layout,
            sequences: BTreeMap::new(),
            buffers: Buffers::default(),
            next: 0,
            context,
            batch,
        })
    }

    /// The file.
    pub fn gguf(&self) -> &Arc<Gguf> {
        &self.gguf
    }

    /// The architecture's name in GGUF files.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Hyper-parameters.
    pub fn hyper(&self) -> &HyperParameters {
        &self.hyper
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
        self.hyper.vocabulary
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// Why the file's vocabulary cannot be used.
    pub fn tokenizer(&self) -> Result<&Arc<Tokenizer>, Arc<TokenizerError>> {
        self.tokenizer.as_ref().map_err(Arc::clone)
    }

    /// Memory that the model needs; the same as [`MemoryNeed::of`] tells without loading it.
    ///
    /// # Errors
    /// [`EngineError::Option`] where the context needs more than there can be.
    pub fn memory(&self) -> Result<MemoryNeed, EngineError> {
        let memory = self.memory.as_ref();
        MemoryNeed::new(
            &self.gguf,
            &self.hyper,
            &self.layout,
            memory,
            self.context,
            self.batch,
        )
    }

    /// Bytes of scratch in use so far.
    pub fn scratch_bytes(&self) -> usize {
        self.plan.scratch_bytes()
    }

    /// Pages of the cache that sequences hold, by layer group.
    pub fn pages_in_use(&self) -> Vec<usize> {
        self.pools.iter().map(PagePool::used).collect()
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
        let sequence = self
            .sequences
            .get_mut(&id)
            .ok_or(EngineError::UnknownSequence(id.0))?;
        match sequence.truncate(common, &self.reaches, &mut self.pools) {
            Err(EngineError::WindowPassed { .. }) => {
                sequence.clear(&mut self.pools);
                Ok(0)
            }
            done => done.map(|()| common),
        }
    }

    pub(crate) fn get(&self, id: SeqId) -> Result<&Sequence, EngineError> {
        self.sequences
            .get(&id)
            .ok_or(EngineError::UnknownSequence(id.0))
    }
}
