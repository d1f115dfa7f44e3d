//! puna
