//! Parts that several architectures share.

mod attention;
mod feed_forward;
mod pre_norm_decoder;
mod rope_factors;

pub use attention::SelfAttention;
pub use feed_forward::GatedFeedForward;
pub use pre_norm_decoder::PreNormDecoder;
pub use rope_factors::rope_factors;
