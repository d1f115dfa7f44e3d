//! Kernels as functions that need features of the CPU.

use super::panel::{Blocks, panel};
use super::{Activations, Panel};
use crate::kernels::simd::avx2::Avx2;
use crate::kernels::simd::avx512::Avx512;

/// # Safety
/// The CPU has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn avx2<W: Blocks>(p: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    // SAFETY: the caller vouches for the features.
    panel::<_, W>(unsafe { Avx2::assume() }, p, x, out);
}

/// # Safety
/// The CPU has AVX-512 F, BW, VL, DQ and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
pub(super) unsafe fn avx512<W: Blocks>(p: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    // SAFETY: the caller vouches for the features.
    panel::<_, W>(unsafe { Avx512::assume() }, p, x, out);
}
