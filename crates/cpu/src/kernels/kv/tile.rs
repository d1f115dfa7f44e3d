//! Reading keys and values of a page as lanes.
//!
//! Plain floats can be used where they lie ([`Element`]); [`load_keys`] and [`load_values`] turn any type into an `f32` tile for the case that
//! many rows use it.

use super::{BLOCK, KvLayout, KvType, PAGE};
use crate::kernels::simd::{LANES, Simd};

/// An element that widens to `f32` while it is loaded.
pub(crate) trait Element: Copy {
    /// Sixteen of them as lanes.
    fn load<S: Simd>(s: S, src: &[Self; LANES]) -> S::F;
}

impl Element for f32 {
    #[inline(always)]
    fn load<S: Simd>(s: S, src: &[Self; LANES]) -> S::F {
        s.load(src)
    }
}

/// Bits of a half float.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(u16);

impl Element for F16 {
    #[inline(always)]
    fn load<S: Simd>(s: S, src: &[Self; LANES]) -> S::F {
        // SAFETY: transparent over `u16`.
        s.load_f16(unsafe { &*std::ptr::from_ref(src).cast() })
    }
}

/// Bits of a bfloat16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bf16(u16);

impl Element for Bf16 {
    #[inline(always)]
    fn load<S: Simd>(s: S, src: &[Self; LANES]) -> S::F {
        // SAFETY: transparent over `u16`.
        s.load_bf16(unsafe { &*std::ptr::from_ref(src).cast() })
    }
}

/// Fetches memory into the second-level cache, a line at a time between other work.
#[derive(Clone, Copy)]
pub(crate) struct Prefetch {
    at: *const u8,
    end: *const u8,
}

impl Prefetch {
    /// Nothing to fetch.
    pub(crate) const NONE: Self = Self {
        at: std::ptr::null(),
        end: std::ptr::null(),
    };

    /// Fetches `bytes` from `at` on.
    #[inline(always)]
    pub(crate) fn new(at: *const u8, bytes: usize) -> Self {
        let end = at.wrapping_add(bytes);
        Self { at, end }
    }

    /// Fetches the next lines.
    #[inline(always)]
    pub(crate) fn step(&mut self, lines: usize) {
        if self.at < self.end {
            for _ in 0..lines {
                prefetch(self.at);
                self.at = self.at.wrapping_add(64);
            }
        }
    }

    /// Fetches all that is left.
    #[inline(always)]
    pub(crate) fn rest(&mut self) {
        while self.at < self.end {
            self.step(1);
        }
    }
}

/// Asks for a line in the second-level cache; any address will do.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of the base instruction set; a hint never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Sixteen quants of four bits: the low or the high halves of sixteen bytes, less 8.
#[inline(always)]
fn nibbles<S: Simd>(s: S, bytes: &[u8; LANES], high: bool) -> S::F {
    let mut q = [0i8; LANES];
    for (q, &b) in q.iter_mut().zip(bytes) {
        *q = if high { b >> 4 } else { b & 15 } as i8 - 8;
    }
    s.load_i8(&q)
}

/// Keys of one head as `[4][k_dim][16]`.
///
/// # Safety
/// `keys` points to the head's keys of a page, `out` to `PAGE * k_dim` floats.
#[inline(always)]
pub(crate) unsafe fn load_keys<S: Simd>(
    s: S,
    layout: &KvLayout,
    keys: *const u8,
    out: *mut f32,
    fetch: &mut Prefetch,
) {
    let dim = layout.k_dim;
    // SAFETY: every vector lies inside the head's keys, and the same number of floats inside `out`.
    unsafe {
        match layout.k_type {
            KvType::F32 => widen::<S, f32>(s, keys, out, 4 * dim, fetch),
            KvType::F16 => widen::<S, F16>(s, keys, out, 4 * dim, fetch),
            KvType::Bf16 => widen::<S, Bf16>(s, keys, out, 4 * dim, fetch),
            KvType::Q8_0 | KvType::Q4_0 => {
                let four = layout.k_type == KvType::Q4_0;
                let bytes = layout.k_type.block_bytes() * LANES;
                for block in 0..PAGE / LANES * (dim / BLOCK) {
                    let at = keys.add(block * bytes);
                    let out = out.add(block * BLOCK * LANES).cast::<[f32; LANES]>();
                    let scales = s.load_f16(&at.cast::<[u16; LANES]>().read_unaligned());
                    let quants = at.add(2 * LANES).cast::<[u8; LANES]>();
                    for i in 0..BLOCK {
                        let q = if four {
                            nibbles(s, &*quants.add(i % 16), i >= 16)
                        } else {
                            s.load_i8(&*quants.add(i).cast())
                        };
                        s.store(s.mul(scales, q), &mut *out.add(i));
                    }
                    fetch.step(bytes / 64);
                }
            }
        }
    }
}

/// Sixteen elements after another.
///
/// # Safety
/// `vectors` times sixteen elements lie at `src` (aligned for `E`), as many floats at `out`.
#[inline(always)]
unsafe fn widen<S: Simd, E: Element>(
    s: S,
    src: *const u8,
    out: *mut f32,
    vectors: usize,
    fetch: &mut Prefetch,
) {
    let (src, out) = (src.cast::<[E; LANES]>(), out.cast::<[f32; LANES]>());
    debug_assert_eq!(vectors % 4, 0, "tiles are whole groups");
    for i in (0..vectors).step_by(4) {
        for i in i..i + 4 {
            // SAFETY: the caller's.
            unsafe { s.store(E::load(s, &*src.add(i)), &mut *out.add(i)) };
        }
        fetch.step(size_of::<E>());
    }
}

/// Values of one head as `[64][v_stride]`, `v_stride` being `v_dim` rounded up to whole vectors; what lies beyond `v_dim` is zero.
///
/// # Safety
/// `values` points to the head's values of a page, `out` to `PAGE * v_stride` floats.
#[inline(always)]
pub(crate) unsafe fn load_values<S: Simd>(
    s: S,
    layout: &KvLayout,
    values: *const u8,
    out: *mut f32,
    fetch: &mut Prefetch,
) {
    let dim = layout.v_dim;
    // SAFETY: every vector lies inside the head's values, and the same number of floats inside `out`.
    unsafe {
        match layout.v_type {
            KvType::F32 => widen_rows::<S, f32>(s, values, out, dim, fetch),
            KvType::F16 => widen_rows::<S, F16>(s, values, out, dim, fetch),
            KvType::Bf16 => widen_rows::<S, Bf16>(s, values, out, dim, fetch),
            KvType::Q8_0 | KvType::Q4_0 => {
                let four = layout.v_type == KvType::Q4_0;
                let bytes = layout.v_type.block_bytes();
                for block in 0..PAGE * (dim / BLOCK) {
                    let at = values.add(block * bytes);
                    let out = out.add(block * BLOCK).cast::<[f32; LANES]>();
                    let scale = half::f16::from_le_bytes(at.cast::<[u8; 2]>().read());
                    let scale = s.splat(f16_to_f32(s, scale.to_bits()));
                    let quants = at.add(2).cast::<[u8; LANES]>();
                    for i in 0..2 {
                        let q = if four {
                            nibbles(s, &*quants, i == 1)
                        } else {
                            s.load_i8(&*quants.add(i).cast())
                        };
                        s.store(s.mul(scale, q), &mut *out.add(i));
                    }
                    fetch.step(1);
                }
            }
        }
    }
}

/// One half float through the set's own conversion: much faster than in plain code.
#[inline(always)]
fn f16_to_f32<S: Simd>(s: S, bits: u16) -> f32 {
    let mut out = [0.0; LANES];
    s.store(s.load_f16(&[bits; LANES]), &mut out);
    out[0]
}

/// Rows of `dim` elements to rows of whole vectors.
///
/// # Safety
/// `PAGE * dim` elements lie at `src` (aligned for `E`), room for PAGE rows of whole vectors at `out`.
#[inline(always)]
unsafe fn widen_rows<S: Simd, E: Element>(
    s: S,
    src: *const u8,
    out: *mut f32,
    dim: usize,
    fetch: &mut Prefetch,
) {
    let (whole, rest) = (dim / LANES, dim % LANES);
    // SAFETY: the caller's; the last vector of a row is copied element by element, since it would leave the page at its end.
    unsafe {
        if rest == 0 {
            return widen::<S, E>(s, src, out, PAGE * whole, fetch);
        }
        let stride = (whole + 1) * LANES;
        for position in 0..PAGE {
            let src = src.cast::<E>().add(position * dim);
            let out = out.add(position * stride);
            for i in 0..whole {
                let x = E::load(s, &*src.add(i * LANES).cast());
                s.store(x, &mut *out.add(i * LANES).cast());
                fetch.step(1);
            }
            let mut last: [E; LANES] = std::mem::zeroed();
            std::ptr::copy_nonoverlapping(src.add(whole * LANES), last.as_mut_ptr(), rest);
            s.store(E::load(s, &last), &mut *out.add(whole * LANES).cast());
            fetch.step(1);
        }
    }
}
