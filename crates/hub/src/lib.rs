//! puna-hub
