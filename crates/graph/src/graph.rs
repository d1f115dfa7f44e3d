//! The graph itself: values, nodes, weights.

use crate::{CacheLayer, Op, Weight, WeightId};

/// Index of a value; value `i` is made by node `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index into [`Graph::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a layer that keeps state in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId(pub u32);

/// How many rows a value has: known only when a batch is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rows {
    /// One per token of the batch.
    Tokens,
    /// One per token whose output is wanted.
    Outputs,
}

/// Shape of a value: row-major `[rows, features]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Symbolic number of rows.
    pub rows: Rows,
    /// Elements of a row.
    pub features: usize,
}

/// One op with the values that it reads.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does, with its attributes.
    pub op: Op,
    /// What it reads.
    pub inputs: Vec<ValueId>,
    /// Shape of what it makes.
    pub shape: Shape,
}

/// A whole forward pass; made by [`crate::GraphBuilder`].
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) weights: Vec<Weight>,
    pub(crate) cache_layers: Vec<CacheLayer>,
    pub(crate) output: Option<ValueId>,
}

impl Graph {
    /// Nodes in an order in which they can run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// The node that makes `value`.
    pub fn node(&self, value: ValueId) -> &Node {
        &self.nodes[value.index()]
    }
    /// Matrices.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }
    /// One matrix.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.0 as usize]
    }
    /// What each layer keeps in the cache, by [`LayerId`].
    pub fn cache_layers(&self) -> &[CacheLayer] {
        &self.cache_layers
    }
    /// The result: `[outputs, vocabulary]` for a language model.
    pub fn output(&self) -> Option<ValueId> {
        self.output
    }
    /// How often each value is read, the result counting once.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut uses = vec![0; self.nodes.len()];
        for input in self
            .nodes
            .iter()
            .flat_map(|n| &n.inputs)
            .chain(&self.output)
        {
            uses[input.index()] += 1;
        }
        uses
    }
}
