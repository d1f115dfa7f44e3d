//! Every kernel against the specification, bit for bit.

use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel, panel_fn};
use crate::kernels::Set;
use puna_quant::{ActivationBuffer, ActivationKind, ActivationRow, ElementType, Q8Row, ScaleKind};

const TYPES: [ElementType; 15] = [
    ElementType::Q4_0,
    ElementType::Q4_1,
    ElementType::Q5_0,
    ElementType::Q5_1,
    ElementType::Q8_0,
    ElementType::Q8_1,
    ElementType::IQ4_NL,
    ElementType::MXFP4,
    ElementType::Q2_K,
    ElementType::Q3_K,
    ElementType::Q4_K,
    ElementType::Q5_K,
    ElementType::Q6_K,
    ElementType::IQ4_XS,
    ElementType::Q8_K,
];

const TOKENS: [usize; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 21, 31, 64, 70];
const MOST_TOKENS: usize = 70;
const ROWS: [usize; 6] = [1, 15, 16, 17, 31, 32];

/// Sets that this CPU can run.
fn sets() -> Vec<Set> {
    let mut sets = vec![Set::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        if crate::kernels::simd::avx2::Avx2::new().is_some() {
            sets.extend([Set::PortableFma, Set::Avx2]);
        }
        if crate::kernels::simd::avx512::Avx512::new().is_some() {
            sets.push(Set::Avx512);
        }
    }
    sets
}

/// Numbers that look random and are the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// In -1..1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A copy that ends where readable memory ends, and begins near where it begins.
struct Guarded<T> {
    map: *mut libc::c_void,
    map_bytes: usize,
    data: *const T,
    len: usize,
}

impl<T: Copy> Guarded<T> {
    fn new(from: &[T]) -> Self {
        let page = 4096;
        let bytes = size_of_val(from);
        let inner = bytes.div_ceil(page).max(1) * page;
        let map_bytes = inner + 2 * page;
        // SAFETY: a fresh private map; both edge pages are made inaccessible, the copy lies between.
        unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                map_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert!(map != libc::MAP_FAILED);
            let data: *mut T = map.cast::<u8>().add(page + inner - bytes).cast();
            std::ptr::copy_nonoverlapping(from.as_ptr(), data, from.len());
            for edge in [map, map.cast::<u8>().add(page + inner).cast()] {
                assert_eq!(libc::mprotect(edge, page, libc::PROT_NONE), 0);
            }
            Self {
                map,
                map_bytes,
                data,
                len: from.len(),
            }
        }
    }
}

impl<T> std::ops::Deref for Guarded<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: initialized in `new`; sizes of all element types divide the page, so that it is aligned.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`.
        unsafe { libc::munmap(self.map, self.map_bytes) };
    }
}

/// Quantized activations.
struct Input {
    cols: usize,
    quants: Guarded<i8>,
    scales: Guarded<f32>,
    sums: Guarded<f32>,
    offsets: Guarded<i32>,
    halves: Guarded<i32>,
}

impl Input {
    fn new(x: &[f32], cols: usize) -> Self {
        let buffer = ActivationBuffer::new(ActivationKind::Q8, x).unwrap();
        let ActivationRow::Q8(row) = buffer.row() else {
            panic!("not quantized");
        };
        Self {
            cols,
            quants: Guarded::new(row.quants),
            scales: Guarded::new(row.scales),
            sums: Guarded::new(row.sums),
            offsets: Guarded::new(row.offsets),
            halves: Guarded::new(row.halves),
        }
    }

    /// The last `tokens` rows, so that they end where memory ends.
    fn last(&self, tokens: usize) -> Activations<'_> {
        fn tail<T>(all: &[T], len: usize) -> &[T] {
            &all[all.len() - len..]
        }
        let n = tokens * self.cols;
        Activations::Q8 {
            parts: Q8Row {
                quants: tail(&self.quants, n),
                scales: tail(&self.scales, n / 32),
                sums: tail(&self.sums, n / 32),
                offsets: tail(&self.offsets, n / 32),
                halves: tail(&self.halves, n / 16),
            },
            tokens,
            cols: self.cols,
        }
    }
}

/// Rows of activations: noise, extremes of one sign, of both, of zeros, and one row in which a block is not finite.
fn activations(noise: &mut Noise, cols: usize) -> Vec<f32> {
    let mut x = Vec::new();
    for t in 0..MOST_TOKENS {
        for c in 0..cols {
            let u = noise.unit();
            x.push(match t % 7 {
                1 => 3.5,
                2 => -0.25,
                3 if c % 2 == 0 => 1e-3,
                3 => -1e-3,
                4 => u.signum() * 8.0,
                5 if t == 5 => 0.0,
                6 if t == 6 && c == cols - 1 => f32::NAN,
                _ => u * 4.0,
            });
        }
    }
    x
}

/// Rows of weights: noise, and from row to row extremes of all bits; scales finite unless `wild`.
fn weights(noise: &mut Noise, ty: ElementType, cols: usize, wild: bool) -> Vec<u8> {
    let row_bytes = ty.row_bytes(cols).unwrap();
    let mut bytes = Vec::new();
    for r in 0..MOST_ROWS {
        for _ in 0..row_bytes {
            bytes.push(match r {
                3 => 0xff,
                4 => 0x00,
                5 => 0x80,
                6 => 0x7f,
                7 => 0xf0,
                8 => 0x0f,
                _ => noise.next() as u8,
            });
        }
    }
    if !wild {
        let fields = ty.codec().unwrap().scale_fields();
        for block in bytes.chunks_exact_mut(ty.block_bytes()) {
            for field in fields {
                let at = field.offset;
                match field.kind {
                    ScaleKind::F16 => block[at + 1] = block[at + 1] & 0x83 | 0x2c,
                    ScaleKind::E8M0 => block[at] = block[at] % 20 + 115,
                    _ => block[at..at + 4].copy_from_slice(&noise.unit().to_le_bytes()),
                }
            }
        }
    }
    bytes
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Where the result of a row and token is.
fn at(row: usize, token: usize, tokens: usize) -> usize {
    (row / PANEL_ROWS * tokens + token) * PANEL_ROWS + row % PANEL_ROWS
}

/// All sets, token counts and row counts for one type and shape.
fn check(ty: ElementType, cols: usize, wild: bool) {
    let mut noise = Noise(0x9e37_79b9 + cols as u64);
    let x = Input::new(&activations(&mut noise, cols), cols);
    let bytes = weights(&mut noise, ty, cols, wild);
    let row_bytes = ty.row_bytes(cols).unwrap();
    // SAFETY: any CPU runs this set.
    let expected = unsafe {
        let mut out = vec![0.0; MOST_TOKENS * MOST_ROWS];
        let panel = Panel {
            bytes: &bytes,
            row_bytes,
            rows: MOST_ROWS,
            cols,
        };
        panel_fn(Set::Portable, ty).unwrap()(&panel, &x.last(MOST_TOKENS), &mut out);
        out
    };
    if !wild {
        assert!(
            expected.iter().any(|e| e.is_finite() && *e != 0.0),
            "{ty:?}"
        );
    }
    for set in sets() {
        let kernel = panel_fn(set, ty).unwrap();
        for rows in ROWS {
            let first = MOST_ROWS - rows;
            let end = Guarded::new(&bytes[first * row_bytes..]);
            let panel = Panel {
                bytes: &end,
                row_bytes,
                rows,
                cols,
            };
            for tokens in TOKENS {
                let out = &mut vec![f32::NAN; tokens * MOST_ROWS];
                // SAFETY: the CPU has the set.
                unsafe { kernel(&panel, &x.last(tokens), out) };
                for t in 0..tokens {
                    for r in 0..rows {
                        let e = expected[at(first + r, MOST_TOKENS - tokens + t, MOST_TOKENS)];
                        let o = out[at(r, t, tokens)];
                        assert!(
                            same(o, e),
                            "{ty:?} {set:?}: {cols} columns, token {t} of {tokens}, row {r} of {rows}: {o}, expected {e}"
                        );
                    }
                }
            }
        }
    }
}

fn shapes(ty: ElementType) -> &'static [usize] {
    if ty.block_len() == 32 {
        &[32, 256, 288, 576, 1536]
    } else {
        &[256, 768, 1536]
    }
}

#[test]
fn every_set_gives_the_specifications_bits() {
    for ty in TYPES {
        for &cols in shapes(ty) {
            check(ty, cols, false);
        }
    }
}

#[test]
fn blocks_of_any_bytes_give_the_specifications_bits_or_nan() {
    for ty in TYPES {
        check(ty, 512, true);
    }
}

#[test]
fn types_without_integer_kernels_have_none() {
    for ty in [ElementType::F32, ElementType::BF16, ElementType::IQ1_S] {
        for set in sets() {
            assert!(panel_fn(set, ty).is_none());
        }
    }
}

#[test]
#[should_panic(expected = "bytes of a row")]
fn a_row_of_another_type_is_refused() {
    let x = Input::new(&[1.0; 64], 64);
    let panel = Panel {
        bytes: &[0; 40],
        row_bytes: 40,
        rows: 1,
        cols: 64,
    };
    let set = *sets().last().unwrap();
    // SAFETY: the CPU has the set.
    unsafe { panel_fn(set, ElementType::Q4_0).unwrap()(&panel, &x.last(1), &mut [0.0; 16]) };
}
