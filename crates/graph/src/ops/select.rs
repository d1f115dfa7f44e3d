//! Rows whose output is wanted.

/// `[tokens, features]` to `[outputs, features]`.
#[derive(Clone, Copy, Debug)]
pub struct SelectOutputs;
