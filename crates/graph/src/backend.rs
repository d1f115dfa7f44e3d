//! What a backend offers: it compiles a graph once and runs it for every batch.

use crate::{Batch, CacheLayout, CacheMemory, Graph, Node, Op, Profile};

/// Options of a plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Most tokens of one run.
    pub max_tokens: usize,
}

impl PlanOptions {
    /// A plan for batches of up to `max_tokens` tokens.
    pub fn new(max_tokens: usize) -> Self {
        Self { max_tokens }
    }
}

/// Why a backend refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// An op that the backend lacks.
    #[error("{backend} has no {op} for {detail}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The op.
        op: &'static str,
        /// The operand that it cannot take.
        detail: String,
    },
    /// A batch that does not fit the plan or the cache.
    #[error("batch: {0}")]
    Batch(String),
    /// Memory could not be had.
    #[error("{what}: {bytes} bytes could not be allocated")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// How much.
        bytes: usize,
    },
    /// Threads that cannot be had.
    #[error("{count} threads: {reason}")]
    Threads {
        /// How many were asked for.
        count: usize,
        /// Why not, and what can.
        reason: String,
    },
    /// A run failed inside of the backend, which is a bug. The plan cannot be used any more.
    #[error("a run of the plan failed, compile it anew and report this bug: {message}")]
    Internal {
        /// What happened.
        message: String,
    },
}

/// Finds what `backend` cannot run before it is asked to compile.
///
/// # Errors
/// [`BackendError::Unsupported`] for the first such node, naming its matrix where it has one.
pub fn check_support(backend: &dyn Backend, graph: &Graph) -> Result<(), BackendError> {
    let Some(node) = graph.nodes().iter().find(|n| !backend.supports(graph, n)) else {
        return Ok(());
    };
    let matrix = match &node.op {
        Op::Linear(op) => Some(op.weight),
        Op::Embed(op) => Some(op.table),
        _ => None,
    };
    Err(BackendError::Unsupported {
        backend: backend.name(),
        op: node.op.name(),
        detail: match matrix.map(|id| graph.weight(id)) {
            Some(w) => format!("tensor `{}` of type {}", w.name(), w.element_type().name()),
            None => format!("{} features", node.shape.features),
        },
    })
}

/// Something that runs graphs.
pub trait Backend: Send + Sync {
    /// Name for messages.
    fn name(&self) -> &'static str;
    /// Whether it can run this node; see [`check_support`].
    fn supports(&self, graph: &Graph, node: &Node) -> bool;
    /// Chooses steps and memory for `graph`, whose cache is laid out as `cache`.
    fn compile(
        &self,
        graph: Graph,
        cache: &CacheLayout,
        options: &PlanOptions,
    ) -> Result<Box<dyn Plan>, BackendError>;
    /// Memory for `pages[g]` pages of each layer group. It is reserved at once and taken from the system page by page as it is used.
    fn cache(
        &self,
        layout: &CacheLayout,
        pages: &[usize],
    ) -> Result<Box<dyn CacheMemory>, BackendError>;
}

/// A compiled graph.
pub trait Plan: Send {
    /// Runs a batch; returns the graph's output for `batch.outputs`, row-major `[outputs, features]`, valid until the next run.
    fn run(
        &mut self,
        batch: &Batch<'_>,
        cache: &mut dyn CacheMemory,
    ) -> Result<&[f32], BackendError>;
    /// Bytes of scratch memory in use.
    fn scratch_bytes(&self) -> usize;
    /// Begins to take the time of each step. False where the backend cannot.
    fn start_profile(&mut self) -> bool {
        false
    }
    /// What the runs since [`Self::start_profile`] cost, and an end of taking time.
    fn take_profile(&mut self) -> Option<Profile> {
        None
    }
}
