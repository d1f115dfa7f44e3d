//! Parts that several architectures share.

mod attention;
mod feed_forward;
mod rope_factors;

pub use attention::SelfAttention;
pub use feed_forward::GatedFeedForward;
pub use rope_factors::rope_factors;
