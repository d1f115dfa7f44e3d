//! puna-cpu
