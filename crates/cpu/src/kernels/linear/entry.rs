//! Kernels as functions that need features of the CPU.

use super::block32::Block32;
use super::block256::Block256;
use super::{Activations, Panel};
use crate::kernels::simd::avx2::Avx2;
use crate::kernels::simd::avx512::Avx512;

macro_rules! entries {
    ($name:ident, $weights:ident) => {
        pub(super) mod $name {
            use super::*;

            /// # Safety
            /// The CPU has AVX2, FMA and F16C.
            #[target_feature(enable = "avx2,fma,f16c")]
            pub(in super::super) unsafe fn avx2<W: $weights>(
                panel: &Panel<'_>,
                x: &Activations<'_>,
                out: &mut [f32],
            ) {
                // SAFETY: the caller vouches for the features.
                unsafe { super::super::$name::panel::<_, W>(Avx2::assume(), panel, x, out) }
            }

            /// # Safety
            /// The CPU has AVX-512 F, BW, VL, DQ and VNNI.
            #[target_feature(
                enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"
            )]
            pub(in super::super) unsafe fn avx512<W: $weights>(
                panel: &Panel<'_>,
                x: &Activations<'_>,
                out: &mut [f32],
            ) {
                // SAFETY: the caller vouches for the features.
                unsafe { super::super::$name::panel::<_, W>(Avx512::assume(), panel, x, out) }
            }
        }
    };
}
entries!(block32, Block32);
entries!(block256, Block256);
