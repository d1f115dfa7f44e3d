//! The `puna` program.
fn main() {}
