//! A compiled graph and how it runs.

mod arena;
mod compile;
mod pages;
mod profile;
mod step;

#[cfg(test)]
mod tests;

use crate::{
    cache::CpuCache,
    kernels::{Kernels, kv::KvLayout},
    memory::Block,
    pool::{Job, Pool},
};
use arena::{Arena, Buffer};
use profile::{Clock, Recorder};
use puna_graph::{
    BackendError, Batch, CacheLayout, CacheMemory, Graph, Op, PAGE_POSITIONS, PageId, Plan,
    PlanOptions, Profile, Reach,
};
use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};
use step::{RunState, Schedule, Step};

/// Name of the backend in messages.
pub(crate) const NAME: &str = "the CPU backend";

pub(crate) use compile::kv_layouts;

/// See the file's text.
pub(crate) struct CpuPlan {
    graph: Graph,
    pool: Arc<Pool>,
    kernels: Kernels,
    steps: Vec<Step>,
    buffers: Vec<Buffer>,
    output: usize,
    layouts: Vec<KvLayout>,
    reaches: Vec<Reach>,
    vocabulary: usize,
    max_tokens: usize,
    arena: Arena,
    scratch: Vec<Block>,
    partials: Block,
    /// A run has panicked: what it left is unknown.
    poisoned: bool,
    /// Times of the steps, where somebody wants them.
    recorder: Option<Recorder>,
}

impl CpuPlan {
    pub(crate) fn new(
        graph: Graph,
        cache: &CacheLayout,
        options: &PlanOptions,
        pool: Arc<Pool>,
        kernels: Kernels,
    ) -> Result<Self, BackendError> {
        let compiled = compile::compile(&graph, cache, kernels)?;
        let tables = graph.nodes().iter().filter_map(|n| match &n.op {
            Op::Embed(op) => Some(graph.weight(op.table).rows()),
            _ => None,
        });
        Ok(Self {
            vocabulary: tables.min().unwrap_or(usize::MAX),
            scratch: (0..pool.threads()).map(|_| Block::empty()).collect(),
            graph,
            pool,
            kernels,
            steps: compiled.steps,
            buffers: compiled.buffers,
            output: compiled.output,
            layouts: compiled.layouts,
            reaches: cache.groups.iter().map(|g| g.reach).collect(),
            max_tokens: options.max_tokens,
            arena: Arena::new(compiled.bytes_per_row),
            partials: Block::empty(),
            poisoned: false,
            recorder: None,
        })
    }

    /// Refuses what would read or write outside of anything.
    fn check(&self, batch: &Batch<'_>, cache: &CpuCache) -> Result<(), BackendError> {
        let fail = |message: String| Err(BackendError::Batch(message));
        if batch.tokens.is_empty() || batch.tokens.len() > self.max_tokens {
            return fail(format!(
                "{} tokens, expected 1 to {}",
                batch.tokens.len(),
                self.max_tokens
            ));
        }
        if let Some(token) = batch
            .tokens
            .iter()
            .find(|t| **t as usize >= self.vocabulary)
        {
            return fail(format!(
                "token {token}, expected less than {}",
                self.vocabulary
            ));
        }
        let ascending = batch.outputs.windows(2).all(|w| w[0] < w[1]);
        if !ascending
            || batch
                .outputs
                .last()
                .is_some_and(|o| *o as usize >= batch.tokens.len())
        {
            return fail("outputs are not ascending rows of the batch".to_owned());
        }
        if !cache.has_layouts(&self.layouts) {
            return fail("the cache was made for another model".to_owned());
        }
        let counts = cache.page_counts();
        let mut next = 0;
        for run in batch.runs {
            if run.rows.start != next || run.rows.end <= next || run.pages.len() != cache.groups() {
                return fail("runs do not cover the rows in order".to_owned());
            }
            next = run.rows.end;
            let first = run.first_position as usize;
            let end = first + run.rows.len();
            for (group, table) in run.pages.iter().enumerate() {
                let seen = match self.reaches[group] {
                    Reach::Full => 0,
                    Reach::Window(n) => (first + 1).saturating_sub(n as usize),
                };
                let tiles = seen / PAGE_POSITIONS..end.div_ceil(PAGE_POSITIONS);
                let inside = |p: &PageId| (p.0 as usize) < counts[group];
                if !table.get(tiles).is_some_and(|t| t.iter().all(inside)) {
                    return fail(format!("pages for positions {seen} to {end} are missing"));
                }
            }
        }
        if next != batch.tokens.len() {
            return fail("runs do not cover the rows in order".to_owned());
        }
        match (0..cache.groups()).find_map(|group| pages::written_twice(batch.runs, group)) {
            Some(page) => fail(format!("page {} would be written twice", page.0)),
            None => Ok(()),
        }
    }

    fn schedules(&self, batch: &Batch<'_>) -> Vec<Schedule> {
        let mut schedules = vec![Schedule::default(); self.reaches.len()];
        for step in &self.steps {
            if let Step::Attend(step) = step {
                step.plan(&mut schedules, batch, self.pool.threads());
            }
        }
        schedules
    }

    fn reserve(&mut self, batch: &Batch<'_>, schedules: &[Schedule]) -> Result<(), BackendError> {
        let (tokens, outputs) = (batch.tokens.len(), batch.outputs.len());
        self.arena.reserve(tokens, outputs)?;
        let grow = |block: &mut Block, floats: usize| {
            let bytes = floats * size_of::<f32>();
            if bytes > block.len() {
                *block = Block::zeroed("scratch", bytes)?;
            }
            Ok::<_, BackendError>(())
        };
        let of = |f: fn(&Schedule) -> usize| schedules.iter().map(f).max().unwrap_or(0);
        let floats = step::linear_scratch_floats(tokens).max(of(|s| s.scratch_floats));
        for block in &mut self.scratch {
            grow(block, floats)?;
        }
        grow(&mut self.partials, of(|s| s.partial_floats))
    }
}

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// One run, as the pool sees it.
struct RunJob<'a> {
    steps: &'a [Step],
    state: RunState<'a>,
    clock: Option<&'a Clock>,
}

impl RunJob<'_> {
    /// The attention whose parts step `step` merges.
    fn attend_before(&self, step: usize) -> Option<&step::AttendStep> {
        match self.steps.get(step.checked_sub(1)?)? {
            Step::Attend(attend) => Some(attend),
            _ => None,
        }
    }
}

impl Job for RunJob<'_> {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn chunks(&self, step: usize) -> usize {
        // Asked once per step, by the worker that finished the one before.
        if let Some(clock) = self.clock {
            clock.begins(step);
        }
        match &self.steps[step] {
            Step::Rows(s) => s.chunks(&self.state),
            Step::Linear(s) => s.chunks(&self.state),
            Step::Attend(s) => s.chunks(&self.state),
            Step::Merge => self
                .attend_before(step)
                .map_or(0, |s| s.merge_chunks(&self.state)),
        }
    }

    fn execute(&self, step: usize, chunk: usize, worker: usize) {
        match &self.steps[step] {
            Step::Rows(s) => s.execute(&self.state, chunk),
            Step::Linear(s) => s.execute(&self.state, chunk, worker),
            Step::Attend(s) => s.execute(&self.state, chunk, worker),
            Step::Merge => {
                if let Some(s) = self.attend_before(step) {
                    s.merge(&self.state, chunk);
                }
            }
        }
    }
}

impl Plan for CpuPlan {
    fn run(
        &mut self,
        batch: &Batch<'_>,
        cache: &mut dyn CacheMemory,
    ) -> Result<&[f32], BackendError> {
        let cache: &CpuCache = cache
            .as_any_mut()
            .downcast_mut()
            .ok_or_else(|| BackendError::Batch("the cache is of another backend".to_owned()))?;
        if self.poisoned {
            let message = "an earlier run has failed".to_owned();
            return Err(BackendError::Internal { message });
        }
        self.check(batch, cache)?;
        let schedules = self.schedules(batch);
        self.reserve(batch, &schedules)?;
        let positions: Vec<u32> = batch
            .runs
            .iter()
            .flat_map(|r| (r.first_position..).take(r.rows.len()))
            .collect();
        if let Some(recorder) = &mut self.recorder {
            recorder.start();
        }
        let job = RunJob {
            clock: self.recorder.as_ref().map(Recorder::clock),
            steps: &self.steps,
            state: RunState {
                graph: &self.graph,
                buffers: &self.buffers,
                arena: &self.arena,
                kernels: self.kernels,
                batch,
                cache,
                positions: &positions,
                schedules: &schedules,
                scratch: &self.scratch,
                partials: &self.partials,
                workers: self.pool.threads(),
            },
        };
        // Nothing that the run may have left half done is read again: the plan is not run any more.
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| self.pool.run(&job))) {
            self.poisoned = true;
            let message = message(payload.as_ref());
            return Err(BackendError::Internal { message });
        }
        if job.clock.is_some() {
            let work: Vec<_> = self.steps.iter().map(|s| s.work(&job.state)).collect();
            if let Some(recorder) = &mut self.recorder {
                recorder.finish(&work);
            }
        }
        // SAFETY: the run is over, and the next one needs `&mut self`.
        Ok(unsafe {
            self.arena
                .rows(&self.buffers[self.output], 0..batch.outputs.len())
        })
    }

    fn scratch_bytes(&self) -> usize {
        let workers: usize = self.scratch.iter().map(Block::len).sum();
        self.arena.bytes() + workers + self.partials.len()
    }

    fn start_profile(&mut self) -> bool {
        self.recorder = Some(Recorder::new(&self.steps, &self.graph));
        true
    }

    fn take_profile(&mut self) -> Option<Profile> {
        self.recorder.take().map(Recorder::into_profile)
    }
}
