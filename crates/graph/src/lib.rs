//! puna-graph
