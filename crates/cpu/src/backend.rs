//! The backend: kernels chosen for this machine, and a pool of threads.

use crate::{
    cache::CpuCache,
    kernels::{Kernels, Set},
    plan::{CpuPlan, NAME, kv_layouts},
    pool::Pool,
};
use puna_graph::{
    Backend, BackendError, CacheLayout, CacheMemory, Graph, Node, Op, Plan, PlanOptions,
};
use std::sync::Arc;

/// Most threads of a backend: more than any machine in sight has, so that a larger number is a mistake.
pub const MAX_THREADS: usize = 1024;

/// Runs graphs on the processor.
#[derive(Clone, Debug)]
pub struct CpuBackend {
    pool: Arc<Pool>,
    kernels: Kernels,
}

impl CpuBackend {
    /// A backend of `threads` threads, the caller's included, with the given kernels or the best that the CPU can run.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] if the CPU cannot run `set`, [`BackendError::Threads`] if there are not 1 to 1024 threads, or the
    /// system refuses them.
    pub fn new(threads: usize, set: Option<Set>) -> Result<Self, BackendError> {
        let refuse = |reason| BackendError::Threads {
            count: threads,
            reason,
        };
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(refuse(format!("expected 1 to {MAX_THREADS}")));
        }
        let kernels = match set {
            None => Kernels::best(),
            Some(set) => Kernels::new(set).ok_or_else(|| BackendError::Unsupported {
                backend: NAME,
                op: "kernel set",
                detail: format!("{}: this CPU lacks its instructions", set.name()),
            })?,
        };
        let pool = Pool::new(threads).map_err(|e| refuse(format!("not started: {e}")))?;
        Ok(Self {
            pool: Arc::new(pool),
            kernels,
        })
    }

    /// The kernels in use.
    pub fn kernel_set(&self) -> Set {
        self.kernels.set()
    }

    /// Threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, graph: &Graph, node: &Node) -> bool {
        match &node.op {
            Op::Linear(op) => self
                .kernels
                .panel(graph.weight(op.weight).element_type())
                .is_some(),
            Op::Embed(op) => graph.weight(op.table).element_type().codec().is_some(),
            _ => true,
        }
    }

    fn compile(
        &self,
        graph: Graph,
        cache: &CacheLayout,
        options: &PlanOptions,
    ) -> Result<Box<dyn Plan>, BackendError> {
        let plan = CpuPlan::new(graph, cache, options, Arc::clone(&self.pool), self.kernels)?;
        Ok(Box::new(plan))
    }

    fn cache(
        &self,
        layout: &CacheLayout,
        pages: &[usize],
    ) -> Result<Box<dyn CacheMemory>, BackendError> {
        let layouts = kv_layouts(layout, &layout.layers)?;
        Ok(Box::new(CpuCache::new(layout, layouts, pages)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_that_make_no_sense_are_refused_by_number() {
        for threads in [0, MAX_THREADS + 1, usize::MAX] {
            let error = CpuBackend::new(threads, None).unwrap_err();
            assert!(matches!(error, BackendError::Threads { count, .. } if count == threads));
        }
    }
}
