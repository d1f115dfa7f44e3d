//! puna-tokenizer
