//! One file per element type (or closely related family): its block layout, how it unpacks, its tests.

// The names are the format's own.
#![allow(non_camel_case_types)]

pub mod dense;
pub mod iq4;
pub mod mxfp4;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
pub mod q8_1;
pub mod q8_k;

pub use iq4::{IQ4_NL, IQ4_XS};
pub use mxfp4::MXFP4;
pub use q2_k::Q2_K;
pub use q3_k::Q3_K;
pub use q4_0::Q4_0;
pub use q4_1::Q4_1;
pub use q4_k::Q4_K;
pub use q5_0::Q5_0;
pub use q5_1::Q5_1;
pub use q5_k::Q5_K;
pub use q6_k::Q6_K;
pub use q8_0::Q8_0;
pub use q8_1::Q8_1;
pub use q8_k::Q8_K;
