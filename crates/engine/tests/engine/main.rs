//! The engine over a backend that shows what each logit was computed from: no model, no kernels, every page accounted for.

mod decode;
mod fake;
mod generation;
mod memory;
mod tiny;
