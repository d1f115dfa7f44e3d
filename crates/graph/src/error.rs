//! What can be wrong with a graph.

/// A graph that does not fit together; names the op and the tensor.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// An operand has another number of features than the op needs.
    #[error("{op} {tensor}: input has {found} features, expected {expected}")]
    Features {
        /// Name of the op.
        op: &'static str,
        /// The weight or operand in question.
        tensor: String,
        /// Features of the operand.
        found: usize,
        /// Features that the op needs.
        expected: usize,
    },
    /// Two operands have different symbolic row counts.
    #[error("{op}: operands have {left:?} and {right:?} rows")]
    Rows {
        /// Name of the op.
        op: &'static str,
        /// Rows of the first operand.
        left: crate::Rows,
        /// Rows of the second operand.
        right: crate::Rows,
    },
    /// An attribute is outside of what the op allows.
    #[error("{op}: {reason}")]
    Attribute {
        /// Name of the op.
        op: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The bytes of a weight do not match its shape.
    #[error("tensor `{tensor}`: {found} bytes, expected {expected} for [{rows}, {cols}]")]
    Bytes {
        /// Name of the weight.
        tensor: String,
        /// Bytes given.
        found: usize,
        /// Bytes that the shape needs.
        expected: usize,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
}
