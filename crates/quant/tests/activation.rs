//! The activation quantizers against their definition.

use puna_quant::{
    ActivationBuffer, ActivationKind, ActivationRow, LARGEST_BLOCK, Q8Row, Q8RowMut, QuantError,
    SMALLEST_BLOCK, quantize_q8,
};

/// Quants and scales of a row, by the definition and with the standard library's rounding.
fn by_definition(x: &[f32], n: usize) -> (Vec<i8>, Vec<f32>) {
    let (mut quants, mut scales) = (Vec::new(), Vec::new());
    for block in x.chunks(n) {
        let amax = block.iter().fold(0.0f32, |a, v| a.max(v.abs()));
        let inverse = 127.0 / amax;
        if block.iter().any(|v| v.is_nan()) || amax >= LARGEST_BLOCK {
            scales.push(f32::NAN);
            quants.extend(vec![0; n]);
        } else if amax < SMALLEST_BLOCK {
            scales.push(0.0);
            quants.extend(vec![0; n]);
        } else {
            scales.push(amax / 127.0);
            let q = block.iter().map(|v| (v * inverse).round_ties_even());
            quants.extend(q.map(|q| q.clamp(-127.0, 127.0) as i8));
        }
    }
    (quants, scales)
}

fn rows() -> Vec<Vec<f32>> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut rows = Vec::new();
    for size in [
        1.0, 1e-3, 1e30, 1e31, 1e-18, 2e-18, 1e-30, 1e-38, 1e-44, 3e38,
    ] {
        rows.push((0..512).map(|_| next() * size).collect::<Vec<_>>());
    }
    // Every tie: amax 127, so that the inverse is 1.
    rows.push(
        (0..512)
            .map(|i| i as f32 * 0.5 - 127.5)
            .map(|v| v.clamp(-127.0, 127.0))
            .collect(),
    );
    rows.push(vec![0.0; 512]);
    rows.push(vec![-0.0; 512]);
    rows.push((0..512).map(|i| if i == 40 { -7.0 } else { 0.0 }).collect());
    rows.push(vec![f32::MAX; 512]);
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        rows.push((0..512).map(|i| if i == 300 { bad } else { 1.0 }).collect());
    }
    rows
}

fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

/// The row of a buffer that was quantized.
fn row(buffer: &ActivationBuffer) -> Q8Row<'_> {
    match buffer.row() {
        ActivationRow::Q8(row) => row,
        other => panic!("{other:?}"),
    }
}

#[test]
fn quants_scales_and_sums_are_those_of_the_definition() {
    for (i, x) in rows().iter().enumerate() {
        let buffer = ActivationBuffer::new(ActivationKind::Q8, x).unwrap();
        let row = row(&buffer);
        let (quants, scales) = by_definition(x, 32);
        let sums = |n| -> Vec<i32> {
            quants
                .chunks(n)
                .map(|q| q.iter().map(|&q| i32::from(q)).sum())
                .collect()
        };
        let offsets = |n| -> Vec<i32> { sums(n).iter().map(|s| -128 * s).collect() };
        let products = scales.iter().zip(sums(32)).map(|(d, s)| d * s as f32);
        assert_eq!(row.quants, quants, "row {i}");
        assert!(same(row.scales, &scales), "row {i}: {:?}", row.scales);
        assert_eq!(row.offsets, offsets(32), "row {i}");
        assert_eq!(row.halves, offsets(16), "row {i}");
        assert!(same(row.sums, &products.collect::<Vec<_>>()), "row {i}");
    }
}

#[test]
fn a_block_that_is_no_number_does_not_touch_its_neighbours() {
    let mut x = vec![1.0f32; 96];
    x[40] = f32::INFINITY;
    let buffer = ActivationBuffer::new(ActivationKind::Q8, &x).unwrap();
    let row = row(&buffer);
    assert_eq!((row.scales[0], row.scales[2]), (1.0 / 127.0, 1.0 / 127.0));
    assert!(row.scales[1].is_nan() && row.sums[1].is_nan());
    assert_eq!(row.quants[32..64], [0; 32]);
    assert_eq!(row.offsets, [-128 * 127 * 32, 0, -128 * 127 * 32]);
}

#[test]
fn buffers_of_the_wrong_length_are_errors() {
    let x = [1.0f32; 512];
    for (cols, quants, scales, sums, offsets, halves, expected) in [
        (33, 32, 1, 1, 1, 2, "input"),
        (64, 63, 2, 2, 2, 4, "quants"),
        (64, 64, 1, 2, 2, 4, "scales"),
        (64, 64, 2, 1, 2, 4, "sums"),
        (64, 64, 2, 2, 3, 4, "offsets"),
        (64, 64, 2, 2, 2, 2, "halves"),
    ] {
        let mut to = Q8RowMut {
            quants: &mut vec![0; quants],
            scales: &mut vec![0.0; scales],
            sums: &mut vec![0.0; sums],
            offsets: &mut vec![0; offsets],
            halves: &mut vec![0; halves],
        };
        match quantize_q8(&x[..cols], &mut to) {
            Err(QuantError::ActivationLength { what, .. }) => assert_eq!(what, expected),
            other => panic!("{other:?}"),
        }
    }
}
