//! What can be wrong with a model file.

use puna_gguf::GgufError;
use puna_graph::GraphError;

/// Why a model could not be built; names the key or the tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A key has the wrong type, or the file is damaged.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The graph does not fit together.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The architecture is not one of ours.
    #[error("architecture `{found}` is not supported by Puna {version}; supported: {supported}", version = env!("CARGO_PKG_VERSION"))]
    UnknownArchitecture {
        /// Name in the file.
        found: String,
        /// All names that are known.
        supported: String,
    },
    /// A key that every model needs is missing.
    #[error("key `{key}` is missing; it is needed to load the model")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A key has a value that makes no sense.
    #[error("key `{key}`: found {found}, expected {expected}")]
    InvalidKey {
        /// The key.
        key: String,
        /// Value in the file.
        found: String,
        /// What would be allowed.
        expected: String,
    },
    /// Tensors are missing, or there are some that the architecture does not know.
    #[error("{}", tensor_list(missing, unknown))]
    Tensors {
        /// Needed and not in the file.
        missing: Vec<String>,
        /// In the file and not known to the architecture.
        unknown: Vec<String>,
    },
    /// A tensor has another shape than the hyper-parameters give.
    #[error("tensor `{tensor}`: shape {found:?}, expected {expected:?} from {source_keys}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// Shape in the file, row-major.
        found: Vec<u64>,
        /// Expected shape, row-major.
        expected: Vec<u64>,
        /// The hyper-parameters that give the expected shape.
        source_keys: String,
    },
    /// The element type is known to GGUF but has no codec.
    #[error("tensor `{tensor}`: type {element_type} is not supported yet")]
    UnsupportedType {
        /// The tensor.
        tensor: String,
        /// Name of the type.
        element_type: &'static str,
    },
    /// A block scale is infinite or not a number.
    #[error(
        "tensor `{tensor}`: block {block} has an infinite scale or one that is not a number; the file is damaged or badly quantized"
    )]
    NonFinite {
        /// The tensor.
        tensor: String,
        /// Index of the first bad block.
        block: usize,
    },
    /// Something that the file asks for and that is not there yet.
    #[error("{what} is not supported yet")]
    Unsupported {
        /// What the file asks for.
        what: String,
    },
}

fn tensor_list(missing: &[String], unknown: &[String]) -> String {
    let list = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| {
            let shown: Vec<_> = names.iter().take(20).map(|n| format!("`{n}`")).collect();
            let more = names.len().saturating_sub(20);
            let tail = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            format!("{} {what}: {}{tail}", names.len(), shown.join(", "))
        })
    };
    let parts: Vec<_> = [
        list("tensors missing", missing),
        list("tensors unknown to the architecture", unknown),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join("; ")
}
