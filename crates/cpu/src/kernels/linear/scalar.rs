//! Panels by the specification itself: one dot product of `puna_quant` after another.

use super::{Activations, PANEL_ROWS, Panel};
use puna_quant::{ActivationRow, Codec, Q8Row, types};

/// A codec that needs no value.
pub(super) trait Spec: Codec {
    /// The codec.
    const CODEC: Self;
}

macro_rules! spec {
    ($($ty:ident)*) => { $(impl Spec for types::$ty { const CODEC: Self = types::$ty; })* };
}
spec!(Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ4_NL IQ4_XS MXFP4);

impl<'a> Activations<'a> {
    /// Number of rows.
    pub fn tokens(&self) -> usize {
        match *self {
            Self::F32 { tokens, .. } | Self::Q8 { tokens, .. } => tokens,
        }
    }

    /// Row `t`.
    #[inline(always)]
    fn row(&self, t: usize) -> ActivationRow<'a> {
        match *self {
            Self::F32 { x, cols, .. } => ActivationRow::F32(&x[t * cols..][..cols]),
            Self::Q8 { parts, cols, .. } => {
                let n = cols / 32;
                ActivationRow::Q8(Q8Row {
                    quants: &parts.quants[t * cols..][..cols],
                    scales: &parts.scales[t * n..][..n],
                    sums: &parts.sums[t * n..][..n],
                    offsets: &parts.offsets[t * n..][..n],
                    halves: &parts.halves[t * 2 * n..][..2 * n],
                })
            }
        }
    }
}

#[inline(always)]
fn panel<C: Spec>(panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    let ty = C::CODEC.element_type();
    if let Activations::Q8 { cols, .. } = *x {
        panel.check(cols, ty.block_len(), ty.block_bytes());
    }
    let tokens = x.tokens();
    for t in 0..tokens {
        let x = x.row(t);
        for r in 0..panel.rows {
            let row = &panel.bytes[r * panel.row_bytes..][..panel.row_bytes];
            match C::CODEC.dot(row, x) {
                Ok(sum) => {
                    let panel = r / PANEL_ROWS * tokens;
                    out[(panel + t) * PANEL_ROWS + r % PANEL_ROWS] = sum;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Any CPU.
///
/// # Safety
/// None is needed.
pub(super) unsafe fn portable<C: Spec>(p: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    panel::<C>(p, x, out);
}

/// The same, compiled for AVX2.
///
/// # Safety
/// The CPU has AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn portable_fma<C: Spec>(p: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    panel::<C>(p, x, out);
}
