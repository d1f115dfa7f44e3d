//! A backend whose logits tell which tokens they were computed from.
//!
//! Its cache holds the tokens themselves, so that a page which is missing, stale or shared by mistake changes the logits, and
//! [`logits`] says what they have to be.

#![allow(dead_code, reason = "each test program uses a part")]

use puna_graph::{
    Backend, BackendError, Batch, CacheLayout, CacheMemory, Graph, Node, PAGE_POSITIONS, PageId,
    Plan, PlanOptions, Reach, Run,
};
use std::{
    any::Any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Stands in the cache for a position that was never written.
const UNWRITTEN: u32 = u32::MAX;

/// See the file's text. Clones share their switches.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    /// Runs until one fails, counted from one; none does at 0.
    pub(crate) fail_in: Arc<AtomicUsize>,
    /// Tokens of each sequence in each run, in order.
    pub(crate) runs: Arc<Mutex<Vec<Vec<usize>>>>,
    /// Whether these are not wanted.
    pub(crate) forgetful: Arc<AtomicBool>,
    /// An op that it says it lacks.
    pub(crate) lacks: Option<&'static str>,
    /// Whether it gives logits that are not numbers.
    pub(crate) broken: bool,
}

impl Fake {
    /// Lets the `n`-th run from now fail, after it has written into the cache.
    pub(crate) fn fail_in(&self, n: usize) {
        self.fail_in.store(n, Ordering::Relaxed);
    }

    /// Stops the list of runs, which takes memory.
    pub(crate) fn log_no_runs(&self) {
        self.forgetful.store(true, Ordering::Relaxed);
    }

    /// The runs so far, which are forgotten.
    pub(crate) fn take_runs(&self) -> Vec<Vec<usize>> {
        std::mem::take(&mut self.runs.lock().unwrap())
    }
}

/// The logits after `tokens`: noise below one that follows from all that is visible, and a peak at the next number.
pub(crate) fn logits(reaches: &[Reach], tokens: &[u32], vocabulary: usize) -> Vec<f32> {
    let mut row = Vec::new();
    let visible = |reach: &Reach| first_visible(*reach, tokens.len() - 1);
    let seen = reaches.iter().map(|r| hash(&tokens[visible(r)..]));
    let all = seen.fold(0, |a, b| a ^ b);
    fill(&mut row, all, tokens[tokens.len() - 1], vocabulary);
    row
}

fn fill(row: &mut Vec<f32>, seen: u64, last: u32, vocabulary: usize) {
    let peak = (last as usize + 1) % vocabulary;
    row.extend((0..vocabulary).map(|v| {
        let noise = (seen ^ (v as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        noise as f32 / (1u64 << 24) as f32 + if v == peak { 10.0 } else { 0.0 }
    }));
}

fn first_visible(reach: Reach, position: usize) -> usize {
    match reach {
        Reach::Full => 0,
        Reach::Window(n) => (position + 1).saturating_sub(n as usize),
    }
}

fn hash(tokens: &[u32]) -> u64 {
    tokens.iter().fold(tokens.len() as u64, |h, t| {
        (h ^ u64::from(*t)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        "the fake"
    }

    fn supports(&self, _: &Graph, node: &Node) -> bool {
        self.lacks != Some(node.op.name())
    }

    fn compile(
        &self,
        graph: Graph,
        cache: &CacheLayout,
        options: &PlanOptions,
    ) -> Result<Box<dyn Plan>, BackendError> {
        Ok(Box::new(FakePlan {
            fake: self.clone(),
            vocabulary: graph.node(graph.output().unwrap()).shape.features,
            reaches: cache.groups.iter().map(|g| g.reach).collect(),
            max_tokens: options.max_tokens,
            logits: Vec::new(),
            seen: Vec::new(),
        }))
    }

    fn cache(
        &self,
        _: &CacheLayout,
        pages: &[usize],
    ) -> Result<Box<dyn CacheMemory>, BackendError> {
        let empty = |n: &usize| vec![[UNWRITTEN; PAGE_POSITIONS]; *n];
        Ok(Box::new(FakeMemory(pages.iter().map(empty).collect())))
    }
}

struct FakeMemory(Vec<Vec<[u32; PAGE_POSITIONS]>>);

impl CacheMemory for FakeMemory {
    fn page_counts(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }
    fn page_bytes(&self, _: usize) -> usize {
        size_of::<[u32; PAGE_POSITIONS]>()
    }
    fn copy_page(&mut self, group: usize, from: PageId, to: PageId) {
        self.0[group][to.0 as usize] = self.0[group][from.0 as usize];
    }
    fn read_page(&self, _: usize, _: PageId, _: &mut Vec<u8>) {
        unreachable!("no state files here");
    }
    fn write_page(&mut self, _: usize, _: PageId, _: &[u8]) -> bool {
        unreachable!("no state files here");
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

struct FakePlan {
    fake: Fake,
    vocabulary: usize,
    reaches: Vec<Reach>,
    max_tokens: usize,
    logits: Vec<f32>,
    seen: Vec<u32>,
}

impl FakePlan {
    /// Hash of all that the token at `position` sees; the token itself is left as the last of `seen`.
    fn look(&mut self, memory: &FakeMemory, run: &Run<'_>, position: usize) -> u64 {
        let mut all = 0;
        for (group, reach) in self.reaches.iter().enumerate() {
            self.seen.clear();
            for p in first_visible(*reach, position)..=position {
                let page = run.pages[group][p / PAGE_POSITIONS];
                assert_ne!(page, PageId::NONE, "position {p} of group {group} is gone");
                let token = memory.0[group][page.0 as usize][p % PAGE_POSITIONS];
                assert_ne!(token, UNWRITTEN, "position {p} was never written");
                self.seen.push(token);
            }
            all ^= hash(&self.seen);
        }
        all
    }
}

impl Plan for FakePlan {
    fn run(
        &mut self,
        batch: &Batch<'_>,
        cache: &mut dyn CacheMemory,
    ) -> Result<&[f32], BackendError> {
        assert!((1..=self.max_tokens).contains(&batch.tokens.len()));
        let memory: &mut FakeMemory = cache.as_any_mut().downcast_mut().unwrap();
        for run in batch.runs {
            for (row, position) in run.rows.clone().zip(run.first_position as usize..) {
                for (group, pages) in run.pages.iter().enumerate() {
                    let page = pages[position / PAGE_POSITIONS];
                    memory.0[group][page.0 as usize][position % PAGE_POSITIONS] = batch.tokens[row];
                }
            }
        }
        let left = self.fake.fail_in.load(Ordering::Relaxed);
        self.fake
            .fail_in
            .store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 1 {
            return Err(BackendError::Memory {
                what: "scratch",
                bytes: 1,
            });
        }
        if !self.fake.forgetful.load(Ordering::Relaxed) {
            let lengths = batch.runs.iter().map(|r| r.rows.len()).collect();
            self.fake.runs.lock().unwrap().push(lengths);
        }
        self.logits.clear();
        for output in batch.outputs {
            let row = *output as usize;
            let run = batch.runs.iter().find(|r| r.rows.contains(&row)).unwrap();
            let position = run.first_position as usize + row - run.rows.start;
            let seen = self.look(memory, run, position);
            fill(&mut self.logits, seen, batch.tokens[row], self.vocabulary);
        }
        if self.fake.broken {
            self.logits.fill(f32::NAN);
        }
        Ok(&self.logits)
    }

    fn scratch_bytes(&self) -> usize {
        self.logits.capacity() * size_of::<f32>()
    }
}
