//! Writing one position into a page, and reading it back.

use super::{BLOCK, KvLayout, KvType, PAGE};
use crate::kernels::Set;
use crate::kernels::simd::{LANES, Simd, simd_entries};
use half::{bf16, f16};
use puna_quant::ElementType;
use std::ops::Range;

/// Writes the keys and values of one position for some of the heads.
///
/// `position` is the position in the page, `k` is `[kv_heads, k_dim]` and `v` `[kv_heads, v_dim]`, of which the rows of `heads` are used.
/// Only bytes that belong to these heads and this position are written, so calls for other positions or heads may run at the same time.
///
/// # Safety
/// The CPU has the features of the [`Set`]; `page` points to [`KvLayout::page_bytes`] bytes, and nobody else reads or writes the bytes of this
/// position and these heads meanwhile. Shapes are checked, with a panic.
pub type StoreFn = unsafe fn(
    layout: &KvLayout,
    page: *mut u8,
    heads: Range<usize>,
    position: usize,
    k: &[f32],
    v: &[f32],
);

/// The store of a kernel set.
pub fn store_fn(set: Set) -> StoreFn {
    match set {
        #[cfg(target_arch = "x86_64")]
        Set::PortableFma => entries::portable_fma,
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => entries::avx2,
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => entries::avx512,
        _ => entries::portable,
    }
}

simd_entries! {
    mod entries = store(
        layout: &KvLayout, page: *mut u8, heads: Range<usize>, position: usize, k: &[f32], v: &[f32],
    );
}

/// See [`StoreFn`].
#[inline(always)]
fn store<S: Simd>(
    s: S,
    layout: &KvLayout,
    page: *mut u8,
    heads: Range<usize>,
    position: usize,
    k: &[f32],
    v: &[f32],
) {
    assert!(position < PAGE && heads.end <= layout.kv_heads);
    assert_eq!(k.len(), layout.kv_heads * layout.k_dim, "keys");
    assert_eq!(v.len(), layout.kv_heads * layout.v_dim, "values");
    for head in heads {
        let k = &k[head * layout.k_dim..][..layout.k_dim];
        let v = &v[head * layout.v_dim..][..layout.v_dim];
        // SAFETY: the caller's page holds `page_bytes`, which covers every head; `position` is below PAGE.
        unsafe {
            store_key(
                s,
                layout.k_type,
                page.add(layout.k_offset(head)),
                position,
                k,
            );
            store_value(
                s,
                layout.v_type,
                page.add(layout.v_offset(head)),
                position,
                v,
            );
        }
    }
}

/// # Safety
/// `keys` points to the keys of a head of `k.len()` dimensions.
#[inline(always)]
unsafe fn store_key<S: Simd>(s: S, ty: KvType, keys: *mut u8, position: usize, k: &[f32]) {
    let (group, lane) = (position / LANES, position % LANES);
    // SAFETY: element `d` of a position lies at `[group][d][lane]`; the block types likewise.
    unsafe {
        match ty {
            KvType::F32 => {
                let at: *mut f32 = keys.cast::<f32>().add(group * k.len() * LANES + lane);
                for (d, &x) in k.iter().enumerate() {
                    at.add(d * LANES).write_unaligned(x);
                }
            }
            KvType::F16 => {
                let at: *mut u16 = keys.cast::<u16>().add(group * k.len() * LANES + lane);
                halves(s, k, |d, bits| at.add(d * LANES).write_unaligned(bits));
            }
            KvType::Bf16 => {
                let at: *mut u16 = keys.cast::<u16>().add(group * k.len() * LANES + lane);
                for (d, &x) in k.iter().enumerate() {
                    at.add(d * LANES)
                        .write_unaligned(bf16::from_f32(x).to_bits());
                }
            }
            KvType::Q8_0 | KvType::Q4_0 => {
                let bytes = ty.block_bytes();
                for (b, x) in k.chunks_exact(BLOCK).enumerate() {
                    let block = quantize(ty, x);
                    let at = keys.add((group * (k.len() / BLOCK) + b) * bytes * LANES);
                    at.cast::<[u8; 2]>().add(lane).write([block[0], block[1]]);
                    for (i, &q) in block[2..bytes].iter().enumerate() {
                        at.add((i + 2) * LANES + lane).write(q);
                    }
                }
            }
        }
    }
}

/// # Safety
/// `values` points to the values of a head of `v.len()` dimensions.
#[inline(always)]
unsafe fn store_value<S: Simd>(s: S, ty: KvType, values: *mut u8, position: usize, v: &[f32]) {
    // SAFETY: a position's row lies at `[position]`.
    unsafe {
        let row = values.add(position * ty.row_bytes(v.len()));
        match ty {
            KvType::F32 => {
                for (d, &x) in v.iter().enumerate() {
                    row.cast::<f32>().add(d).write_unaligned(x);
                }
            }
            KvType::F16 => halves(s, v, |d, bits| {
                row.cast::<u16>().add(d).write_unaligned(bits);
            }),
            KvType::Bf16 => {
                for (d, &x) in v.iter().enumerate() {
                    row.cast::<u16>()
                        .add(d)
                        .write_unaligned(bf16::from_f32(x).to_bits());
                }
            }
            KvType::Q8_0 | KvType::Q4_0 => {
                let bytes = ty.block_bytes();
                for (b, x) in v.chunks_exact(BLOCK).enumerate() {
                    let block = quantize(ty, x);
                    row.add(b * bytes)
                        .copy_from_nonoverlapping(block.as_ptr(), bytes);
                }
            }
        }
    }
}

/// Hands the half-float bits of each value to `write`.
#[inline(always)]
fn halves<S: Simd>(s: S, x: &[f32], mut write: impl FnMut(usize, u16)) {
    let mut bits = [0u16; LANES];
    for (i, x) in x.chunks(LANES).enumerate() {
        s.store_f16(s.load_partial(x), &mut bits);
        for (j, &b) in bits.iter().enumerate().take(x.len()) {
            write(i * LANES + j, b);
        }
    }
}

/// One block in the layout of its GGUF type; the first `block_bytes` are used.
#[inline(always)]
fn quantize(ty: KvType, x: &[f32]) -> [u8; 34] {
    let ty = match ty {
        KvType::Q8_0 => ElementType::Q8_0,
        _ => ElementType::Q4_0,
    };
    let mut block = [0; 34];
    puna_quant::quantize(ty, x, &mut block[..ty.block_bytes()])
        .expect("32 values are one block of these types");
    block
}

/// Reads one position back, for all heads: `k` is `[kv_heads, k_dim]` and `v` `[kv_heads, v_dim]`.
///
/// Not a fast path: it serves what rewrites positions (shifts, saved states). Panics when shapes do not fit together.
pub fn load_row(layout: &KvLayout, page: &[u8], position: usize, k: &mut [f32], v: &mut [f32]) {
    assert!(position < PAGE && page.len() >= layout.page_bytes());
    let (group, lane) = (position / LANES, position % LANES);
    for head in 0..layout.kv_heads {
        let keys = &page[layout.k_offset(head)..][..layout.k_bytes()];
        let values = &page[layout.v_offset(head)..][..layout.v_bytes()];
        let k = &mut k[head * layout.k_dim..][..layout.k_dim];
        let v = &mut v[head * layout.v_dim..][..layout.v_dim];
        // The key's row in the order of its GGUF type: a float or scale, then single bytes, each sixteen positions wide.
        let units = layout.k_dim / layout.k_type.block_len();
        let first = if layout.k_type == KvType::F32 { 4 } else { 2 };
        let bytes = layout.k_type.block_bytes();
        let mut row = Vec::with_capacity(units * bytes);
        for unit in 0..units {
            let at = &keys[(group * units + unit) * bytes * LANES..][..bytes * LANES];
            row.extend_from_slice(&at[lane * first..][..first]);
            row.extend(at[first * LANES..].iter().skip(lane).step_by(LANES));
        }
        decode(layout.k_type, &row, k);
        let bytes = layout.v_type.row_bytes(layout.v_dim);
        decode(layout.v_type, &values[position * bytes..][..bytes], v);
    }
}

/// Decodes a row in the layout of its GGUF type.
fn decode(ty: KvType, row: &[u8], out: &mut [f32]) {
    match ty {
        KvType::F32 => {
            for (o, b) in out.iter_mut().zip(row.as_chunks().0) {
                *o = f32::from_le_bytes(*b);
            }
        }
        KvType::F16 => {
            for (o, b) in out.iter_mut().zip(row.as_chunks().0) {
                *o = f16::from_le_bytes(*b).to_f32();
            }
        }
        KvType::Bf16 => {
            for (o, b) in out.iter_mut().zip(row.as_chunks().0) {
                *o = bf16::from_le_bytes(*b).to_f32();
            }
        }
        KvType::Q8_0 | KvType::Q4_0 => {
            let ty = match ty {
                KvType::Q8_0 => ElementType::Q8_0,
                _ => ElementType::Q4_0,
            };
            puna_quant::dequantize(ty, row, out).expect("rows are whole blocks");
        }
    }
}
