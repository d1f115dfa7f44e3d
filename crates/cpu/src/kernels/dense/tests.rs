//! Every set equals the types' own dot products, bit for bit.

use super::*;
use crate::kernels::attention::tests::{Rng, sets};

const TYPES: [ElementType; 8] = [
    ElementType::F32,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F64,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
];

/// Random numbers as bytes of a type.
fn weights(ty: ElementType, n: usize, rng: &mut Rng) -> Vec<u8> {
    let x: Vec<f32> = rng.floats(n).iter().map(|x| x * 100.0).collect();
    match ty {
        ElementType::F64 => x.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect(),
        ElementType::I8 => x.iter().map(|&x| x as i8 as u8).collect(),
        ElementType::I16 => x.iter().flat_map(|&x| (x as i16).to_le_bytes()).collect(),
        ElementType::I32 => x.iter().flat_map(|&x| (x as i32).to_le_bytes()).collect(),
        ElementType::I64 => x.iter().flat_map(|&x| (x as i64).to_le_bytes()).collect(),
        _ => {
            let mut bytes = vec![0; ty.row_bytes(n).unwrap()];
            puna_quant::quantize(ty, &x, &mut bytes).unwrap();
            bytes
        }
    }
}

/// `skew` moves the weights off their alignment.
fn check_shape(ty: ElementType, rows: usize, cols: usize, tokens: usize, skew: usize) {
    let mut rng = Rng((rows * 1000 + cols) as u64);
    let data = weights(ty, rows * cols, &mut rng);
    // Exactly as long as the rows: a read beyond would leave the allocation.
    let mut bytes = vec![0; skew];
    bytes.extend_from_slice(&data);
    let bytes = bytes.into_boxed_slice();
    let x = rng.floats(tokens * cols);
    let row_bytes = ty.row_bytes(cols).unwrap();
    let activations = Activations::F32 {
        x: &x,
        tokens,
        cols,
    };
    for set in sets() {
        for first in (0..rows).step_by(PANEL_ROWS) {
            let panel = Panel {
                bytes: &bytes[skew + first * row_bytes..],
                row_bytes,
                rows: PANEL_ROWS.min(rows - first),
                cols,
            };
            let mut out = vec![f32::NAN; tokens * PANEL_ROWS];
            // SAFETY: the set is one that the CPU has.
            unsafe { panel_fn(set, ty).unwrap()(&panel, &activations, &mut out) };
            for token in 0..tokens {
                for row in 0..panel.rows {
                    let want = puna_quant::dot(
                        ty,
                        &panel.bytes[row * row_bytes..][..row_bytes],
                        ActivationRow::F32(&x[token * cols..][..cols]),
                    );
                    assert_eq!(
                        out[token * PANEL_ROWS + row].to_bits(),
                        want.unwrap().to_bits(),
                        "{set:?} {ty:?} {rows} x {cols}, token {token} of {tokens}, row {row}"
                    );
                }
            }
        }
    }
}

#[test]
fn panels_of_any_shape_equal_the_dot_products() {
    for ty in TYPES {
        for (rows, cols, tokens) in [
            (16, 64, 1),
            (16, 64, 2),
            (37, 33, 3),
            (5, 17, 4),
            (13, 100, 5),
            (16, 15, 6),
            (9, 1, 7),
            (20, 48, 8),
            (16, 600, 13),
            (19, 259, 50),
            (3, 512, 97),
        ] {
            check_shape(ty, rows, cols, tokens, 0);
        }
    }
}

#[test]
fn weights_off_their_alignment_work() {
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        check_shape(ty, 7, 40, 2, 1);
        check_shape(ty, 7, 40, 20, 1);
    }
}

#[test]
fn a_sum_without_a_column_keeps_the_sign_of_its_zero() {
    // The products underflow to minus zero; seventeen columns leave fifteen lanes without a second one.
    let one = f32::MIN_POSITIVE.to_le_bytes();
    for (rows, tokens) in [(1, 1), (16, 1), (16, 8)] {
        let bytes = one.repeat(17 * rows);
        let x = vec![-f32::MIN_POSITIVE; 17 * tokens];
        for set in sets() {
            let panel = Panel {
                bytes: &bytes,
                row_bytes: 68,
                rows,
                cols: 17,
            };
            let mut out = vec![1.0; 16 * tokens];
            let activations = Activations::F32 {
                x: &x,
                tokens,
                cols: 17,
            };
            // SAFETY: the set is one that the CPU has.
            unsafe { panel_fn(set, ElementType::F32).unwrap()(&panel, &activations, &mut out) };
            assert_eq!(out[0].to_bits(), (-0.0f32).to_bits(), "{set:?}");
        }
    }
}

#[test]
fn quantized_types_have_no_dense_panel() {
    assert!(panel_fn(Set::Portable, ElementType::Q4_K).is_none());
}
