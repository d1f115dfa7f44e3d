//! Kernels: one file per job, generic over the instruction set; see [`simd`].

pub mod attention;
pub mod dense;
pub mod kv;
pub mod linear;
pub mod math;
pub mod simd;

/// A set of kernels. All give the same bits; they differ in speed and in what the CPU must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Set {
    /// Plain Rust on any CPU: the specification.
    Portable,
    /// The same plain Rust, compiled for AVX2, FMA and F16C, so that a fused multiply-add is one instruction.
    PortableFma,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
}
