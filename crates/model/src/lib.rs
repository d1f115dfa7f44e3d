//! puna-model
