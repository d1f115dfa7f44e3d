//! puna-sampling
