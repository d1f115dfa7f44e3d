//! puna-engine
