//! The backend: kernels chosen for this machine, and a pool of threads.

use crate::{
    cache::CpuCache,
    kernels::{Kernels, Set, kv::KvLayout},
    plan::{CpuPlan, NAME, kv_type},
    pool::Pool,
};
use puna_graph::{
    Backend, BackendError, CacheLayout, CacheMemory, Graph, Node, Op, Plan, PlanOptions,
};
use std::sync::Arc;

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
    /// [`BackendError::Unsupported`] if the CPU cannot run `set`, [`BackendError::Memory`] if threads cannot be started.
    pub fn new(threads: usize, set: Option<Set>) -> Result<Self, BackendError> {
        let kernels = match set {
            None => Kernels::best(),
            Some(set) => Kernels::new(set).ok_or_else(|| BackendError::Unsupported {
                backend: NAME,
                op: "kernel set",
                detail: format!("{}: this CPU lacks its instructions", set.name()),
            })?,
        };
        let pool = Pool::new(threads).map_err(|_| BackendError::Memory {
            what: "threads",
            bytes: threads,
        })?;
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
        let (k, v) = (kv_type(layout.key_type)?, kv_type(layout.value_type)?);
        let layouts: Result<Vec<_>, _> = layout
            .layers
            .iter()
            .map(|l| KvLayout::new(k, v, l.kv_heads, l.key_dim, l.value_dim))
            .collect();
        let layouts = layouts.map_err(|e| BackendError::Unsupported {
            backend: NAME,
            op: "cache",
            detail: e.to_string(),
        })?;
        Ok(Box::new(CpuCache::new(layout, layouts, pages)?))
    }
}
