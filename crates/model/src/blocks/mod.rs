//! Parts that several architectures share.

mod attention;
mod feed_forward;
mod rope_factors;

pub use attention::SelfAttention;
pub use feed_forward::gated_feed_forward;
pub use rope_factors::rope_factors;
