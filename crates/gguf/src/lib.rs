//! puna-gguf
