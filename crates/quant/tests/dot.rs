//! The dot product of every type: its order of operations against a second, slow writing-down of the rule, its value against f64, and
//! cases made by hand.

use puna_quant::{
    ActivationBuffer, ActivationKind, ActivationRow, Codec, ElementType, Q8Row, QuantError,
    ScaleKind, dot, first_non_finite,
};

/// A small generator (xorshift), so that cases are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// Roughly normal values.
    fn values(&mut self, n: usize, size: f32) -> Vec<f32> {
        let mut uniform = || (self.next() >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
        (0..n)
            .map(|_| (uniform() + uniform() + uniform()) * size)
            .collect()
    }
}

fn codecs() -> impl Iterator<Item = &'static dyn Codec> {
    ElementType::ALL.iter().filter_map(|t| t.codec())
}

fn cut(t: ElementType, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(t.block_bytes())
}

/// Replaces the scales of one block by these values, in the order of the fields.
fn with_scales(codec: &dyn Codec, block: &[u8], scales: [f32; 2]) -> Vec<u8> {
    let mut block = block.to_vec();
    for (field, scale) in codec.scale_fields().iter().zip(scales) {
        let bytes = match field.kind {
            ScaleKind::F16 => half::f16::from_f32(scale).to_le_bytes().to_vec(),
            ScaleKind::F32 => scale.to_le_bytes().to_vec(),
            ScaleKind::E8M0 => vec![(scale.log2() + 128.0) as u8],
            other => panic!("{other:?}"),
        };
        block[field.offset..][..bytes.len()].copy_from_slice(&bytes);
    }
    block
}

/// The scales of one block as f32; zero for those that it does not have.
fn scales_of(codec: &dyn Codec, block: &[u8]) -> [f32; 2] {
    let mut scales = [0.0; 2];
    for (field, scale) in codec.scale_fields().iter().zip(&mut scales) {
        let b = &block[field.offset..];
        *scale = match field.kind {
            ScaleKind::F16 => half::f16::from_le_bytes([b[0], b[1]]).to_f32(),
            ScaleKind::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            ScaleKind::E8M0 => 2f32.powi(i32::from(b[0]) - 128),
            other => panic!("{other:?}"),
        };
    }
    scales
}

/// Random rows whose scales are of an ordinary size.
fn random_row(codec: &dyn Codec, blocks: usize, random: &mut Random) -> Vec<u8> {
    let t = codec.element_type();
    let bytes = random.bytes(blocks * t.block_bytes());
    if t.block_len() == 1 {
        return bytes;
    }
    let rows = cut(t, &bytes).map(|block| {
        let s = random.values(2, 0.05);
        let scale = if t == ElementType::MXFP4 {
            s[0].abs() + 1e-6
        } else {
            s[0]
        };
        with_scales(codec, block, [scale, s[1]])
    });
    rows.collect::<Vec<_>>().concat()
}

fn decode(codec: &dyn Codec, bytes: &[u8]) -> Vec<f32> {
    let t = codec.element_type();
    let mut out = vec![0.0; bytes.len() / t.block_bytes() * t.block_len()];
    codec.dequantize(bytes, &mut out).unwrap();
    out
}

/// The rule, written a second time from the integers that decoding shows when the scales are 1 and 0: slow and without the library's loops.
fn dot_by_the_rule(codec: &dyn Codec, row: &[u8], x: &[f32]) -> f32 {
    let t = codec.element_type();
    let n = t.block_len();
    let buffer = ActivationBuffer::new(codec.activation(), x).unwrap();
    let (quants, scales) = match buffer.row() {
        ActivationRow::Q8(x) => (x.quants, x.scales),
        _ => return dense_dot_by_the_rule(&decode(codec, row), x),
    };
    let mut acc = 0.0f32;
    for (b, block) in cut(t, row).enumerate() {
        let quants = &quants[b * n..][..n];
        let sum_with = |weights: &[f32], at: usize| -> i64 {
            weights
                .iter()
                .zip(&quants[at..])
                .map(|(&w, &q)| w as i64 * i64::from(q))
                .sum()
        };
        let [d, m] = scales_of(codec, block);
        // Sub-block scales are inside of the integers here: their products with the scale are exact.
        let scaled = decode(codec, &with_scales(codec, block, [1.0, 0.0]));
        // With scales 0 and -1, a weight decodes to its minimum.
        let minima = decode(codec, &with_scales(codec, block, [0.0, -1.0]));
        let sixteens = matches!(t, ElementType::Q2_K | ElementType::Q3_K | ElementType::Q6_K);
        for at in (0..n).step_by(32) {
            let scale = scales[(b * n + at) / 32];
            let sum_of = |w: &[f32], at: usize, n: usize| sum_with(&w[at..at + n], at) as f32;
            if sixteens {
                let mut part = d * sum_of(&scaled, at, 16);
                part = d.mul_add(sum_of(&scaled, at + 16, 16), part);
                if t == ElementType::Q2_K {
                    part = (-m).mul_add(sum_of(&minima, at, 16), part);
                    part = (-m).mul_add(sum_of(&minima, at + 16, 16), part);
                }
                acc = part.mul_add(scale, acc);
                continue;
            }
            // The scale of the sub-block has to be told from its integers, since its product with the activations' scale is rounded.
            let unit = if n == 32 {
                1.0
            } else {
                sub_scale(codec, block, at / 32)
            };
            let dot = if unit == 0.0 {
                0.0
            } else {
                sum_of(&scaled, at, 32) / unit
            };
            acc = (d * unit * scale).mul_add(dot, acc);
            let sum = sum_with(&[1.0; 32], at) as f32;
            match t {
                ElementType::Q4_1 | ElementType::Q5_1 => acc = m.mul_add(scale * sum, acc),
                ElementType::Q4_K | ElementType::Q5_K => {
                    acc = (-m * minima[at]).mul_add(scale * sum, acc);
                }
                _ => {}
            }
        }
    }
    acc
}

/// The scale of sub-block `j` of 32 weights, from the layouts.
fn sub_scale(codec: &dyn Codec, block: &[u8], j: usize) -> f32 {
    match codec.element_type() {
        ElementType::Q4_K | ElementType::Q5_K if j < 4 => f32::from(block[4 + j] & 63),
        ElementType::Q4_K | ElementType::Q5_K => {
            f32::from((block[8 + j] & 15) | (block[j] >> 6 << 4))
        }
        ElementType::IQ4_XS => {
            let low = block[4 + j / 2] >> (4 * (j % 2)) & 15;
            let high = u16::from_le_bytes([block[2], block[3]]) >> (2 * j) & 3;
            f32::from(low) + f32::from(high) * 16.0 - 32.0
        }
        _ => 1.0,
    }
}

fn dense_dot_by_the_rule(w: &[f32], x: &[f32]) -> f32 {
    let mut lane = [0.0f32; 16];
    for c in 0..w.len() {
        lane[c % 16] = w[c].mul_add(x[c], lane[c % 16]);
    }
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lane[i] += lane[i + width];
        }
    }
    lane[0]
}

fn product(codec: &dyn Codec, row: &[u8], x: &[f32]) -> f32 {
    let buffer = ActivationBuffer::new(codec.activation(), x).unwrap();
    codec.dot(row, buffer.row()).unwrap()
}

#[test]
fn every_dot_product_follows_the_rule_bit_for_bit() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for codec in codecs() {
        let t = codec.element_type();
        for blocks in [0, 1, 2, 3, 7, 15, 16, 17, 31, 40] {
            for size in [1.0, 1e-3, 1e4] {
                let row = random_row(codec, blocks, &mut random);
                let x = random.values(blocks * t.block_len(), size);
                let (ours, rule) = (product(codec, &row, &x), dot_by_the_rule(codec, &row, &x));
                assert!(
                    ours.to_bits() == rule.to_bits() || (ours.is_nan() && rule.is_nan()),
                    "{t}, {blocks} blocks: {ours:e}, the rule gives {rule:e}"
                );
            }
        }
    }
}

#[test]
fn every_dot_product_is_near_the_product_of_the_decoded_values() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for codec in codecs() {
        let t = codec.element_type();
        let blocks = 4096 / t.block_len();
        let mut row = random_row(codec, blocks, &mut random);
        if t.block_len() == 1 && !codec.scale_fields().is_empty() {
            // Random bits are no ordinary floats.
            let values = random.values(blocks, 1.0);
            if t == ElementType::F64 {
                let doubles = values.iter().map(|&v| f64::from(v));
                row = doubles.flat_map(f64::to_le_bytes).collect();
            } else {
                codec.quantize(&values, &mut row).unwrap();
            }
        }
        let x = random.values(4096, 2.0);
        let weights = decode(codec, &row);
        let terms = weights
            .iter()
            .zip(&x)
            .map(|(&w, &x)| f64::from(w) * f64::from(x));
        let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), v| (sum + v, size + v * v));
        let ours = f64::from(product(codec, &row, &x));
        // Errors of the activations add up like a random walk; those of f32 are far smaller.
        let tolerance = match codec.activation() {
            ActivationKind::F32 => 1e-5 * size.sqrt(),
            _ => 0.05 * size.sqrt(),
        };
        assert!(
            (ours - exact).abs() <= tolerance,
            "{t}: {ours} {exact} {tolerance}"
        );
    }
}

/// One block of `Q8_0` with this scale and these first weights.
fn q8_0_block(scale: f32, first: &[i8]) -> Vec<u8> {
    let mut block = vec![0; 34];
    block[..2].copy_from_slice(&half::f16::from_f32(scale).to_le_bytes());
    for (b, &w) in block[2..].iter_mut().zip(first) {
        *b = w as u8;
    }
    block
}

#[test]
fn blocks_are_added_in_ascending_order_with_one_rounding_each() {
    // Quants all 1 in the first place, scales given: the sum is of weight * scale * x_scale in f32.
    let mut quants = vec![0i8; 96];
    for b in 0..3 {
        quants[b * 32] = 1;
    }
    let case = |x_scales: [f32; 3]| {
        let row = [1, 1, 1].map(|w| q8_0_block(1.0, &[w])).concat();
        let x = Q8Row {
            quants: &quants,
            scales: &x_scales,
            sums: &x_scales,
            offsets: &[-128; 3],
            halves: &[0; 6],
        };
        dot(ElementType::Q8_0, &row, ActivationRow::Q8(x)).unwrap()
    };
    let big = 2f32.powi(24);
    assert_eq!(case([1.0, 1.0, big]), big + 2.0); // 1 + 1 first, then exactly added
    assert_eq!(case([big, 1.0, 1.0]), big); // each 1 is half a unit and rounds to even
    assert_eq!(case([big, -big, 1.0]), 1.0);
}

#[test]
fn a_product_is_not_rounded_before_it_is_added_to_its_lane() {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 needs more than 24 bits.
    let (near_one, rounded_square) = (1.0 + 2f32.powi(-12), 1.0 + 2f32.powi(-11));
    let case = |column: usize| {
        let (mut weights, mut x) = ([0.0f32; 17], [0.0f32; 17]);
        (weights[0], x[0]) = (-1.0, rounded_square);
        (weights[column], x[column]) = (near_one, near_one);
        let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        dot(ElementType::F32, &bytes, ActivationRow::F32(&x)).unwrap()
    };
    assert_eq!(case(16), 2f32.powi(-24)); // the same lane as column 0
    assert_eq!(case(1), 0.0); // a lane of its own: rounded there
}

#[test]
fn hand_made_blocks_give_hand_made_products() {
    // Q4_0, scale 0.5: integers -8, 7 in places 0 and 16 (one byte), 0 elsewhere.
    let mut q4_0 = vec![0x88u8; 18];
    q4_0[..2].copy_from_slice(&half::f16::from_f32(0.5).to_le_bytes());
    q4_0[2] = 0xf0;
    // Q4_K: d 2, dmin 4; sub-block 0 has scale 3 and minimum 5, sub-block 7 scale 63 and minimum 62; first weights 15 and 9.
    let mut q4_k = vec![0u8; 144];
    q4_k[..2].copy_from_slice(&half::f16::from_f32(2.0).to_le_bytes());
    q4_k[2..4].copy_from_slice(&half::f16::from_f32(4.0).to_le_bytes());
    q4_k[4] = 3;
    q4_k[8] = 5;
    q4_k[15] = 0xef; // low four bits of minimum 7 (0xe) and scale 7 (0xf)
    q4_k[7] = 0xc0; // top bits of scale 7
    q4_k[11] = 0xc0; // top bits of minimum 7
    q4_k[16] = 0x0f;
    q4_k[16 + 96] = 0x90;

    let mut quants = vec![0i8; 256];
    (quants[0], quants[16], quants[224]) = (10, -3, -127);
    let x32 = Q8Row {
        quants: &quants[..32],
        scales: &[0.25],
        sums: &[1.75],
        offsets: &[7 * -128],
        halves: &[10 * -128, 3 * 128],
    };
    let product = dot(ElementType::Q4_0, &q4_0, ActivationRow::Q8(x32)).unwrap();
    assert_eq!(product, 0.5 * 0.25 * (-8.0 * 10.0 + 7.0 * -3.0));

    let mut sums = [0.0; 8];
    (sums[0], sums[7]) = (7.0 * 0.25, -127.0 * 0.25);
    let x256 = Q8Row {
        quants: &quants,
        scales: &[0.25; 8],
        sums: &sums,
        offsets: &[0; 8],
        halves: &[0; 16],
    };
    let product = dot(ElementType::Q4_K, &q4_k, ActivationRow::Q8(x256)).unwrap();
    let isum = 3 * 15 * 10 + 63 * 9 * -127;
    let imin = 5 * 7 + 62 * -127;
    assert_eq!(product, 0.5 * isum as f32 - imin as f32);
}

#[test]
fn activations_that_are_no_numbers_make_the_product_nan() {
    let mut random = Random(77);
    for codec in codecs() {
        let n = 512 / codec.element_type().block_len();
        let row = random_row(codec, n, &mut random);
        for bad in [f32::NAN, f32::INFINITY] {
            let mut x = random.values(512, 1.0);
            x[300] = bad;
            let product = product(codec, &row, &x);
            assert!(!product.is_finite(), "{}: {product}", codec.element_type());
        }
    }
}

#[test]
fn wrong_lengths_and_wrong_activations_are_errors() {
    for codec in codecs() {
        let t = codec.element_type();
        let cols = 512;
        let row = vec![0u8; t.row_bytes(cols).unwrap()];
        let x = vec![0.5f32; cols];
        let good = ActivationBuffer::new(codec.activation(), &x).unwrap();
        assert!(codec.dot(&row, good.row()).is_ok());

        let longer = ActivationBuffer::new(codec.activation(), &[0.5; 768]).unwrap();
        for other in [codec.dot(&row, longer.row()), codec.dot(&[], good.row())] {
            assert!(
                matches!(other, Err(QuantError::Length { .. })),
                "{t}: {other:?}"
            );
        }
        if t.block_bytes() > 1 {
            let short = codec.dot(&row[1..], good.row());
            assert_eq!(
                short,
                Err(QuantError::PartialBlock {
                    element_type: t,
                    bytes: row.len() - 1
                })
            );
            let short = codec.dequantize(&row[1..], &mut vec![0.0; cols]);
            assert_eq!(
                short,
                Err(QuantError::PartialBlock {
                    element_type: t,
                    bytes: row.len() - 1
                })
            );
        }
        let other_kind = match codec.activation() {
            ActivationKind::F32 => ActivationKind::Q8,
            _ => ActivationKind::F32,
        };
        let other = ActivationBuffer::new(other_kind, &x).unwrap();
        assert!(matches!(
            codec.dot(&row, other.row()),
            Err(QuantError::WrongActivation { .. })
        ));
        let output = codec.dequantize(&row, &mut vec![0.0; cols - 1]);
        assert!(
            matches!(output, Err(QuantError::Length { .. })),
            "{t}: {output:?}"
        );
        match codec.quantize(&x, &mut vec![0; row.len() + 1]) {
            Err(QuantError::Length { .. } | QuantError::NoQuantizer(_)) => {}
            other => panic!("{t}: {other:?}"),
        }
    }
    let unsupported = dot(ElementType::IQ2_XXS, &[], ActivationRow::F32(&[]));
    assert_eq!(
        unsupported.unwrap_err().to_string(),
        "type IQ2_XXS is not supported yet"
    );
}

#[test]
fn random_bytes_of_every_type_and_length_never_panic() {
    let mut random = Random(0xfeed_f00d_dead_beef);
    // The most that integers can hold, to show that no sum overflows.
    let quants = [[i8::MIN; 1024], [i8::MAX; 1024]];
    for t in ElementType::ALL.iter().copied() {
        let Some(codec) = t.codec() else { continue };
        for round in 0..64 {
            let blocks = 1024 / t.block_len().max(32) * t.block_len().max(32) / t.block_len();
            let mut row = random.bytes(blocks * t.block_bytes());
            match round {
                0 => row.fill(0),
                1 => row.fill(0xff),
                2 => row.fill(0x80),
                3 => row.fill(0x7f),
                _ => {}
            }
            decode(codec, &row);
            first_non_finite(t, &row);
            for quants in &quants {
                let x = match codec.activation() {
                    ActivationKind::Q8 => ActivationRow::Q8(Q8Row {
                        quants,
                        scales: &[f32::MAX; 32],
                        sums: &[f32::INFINITY; 32],
                        offsets: &[i32::MIN; 32],
                        halves: &[i32::MIN; 64],
                    }),
                    _ => ActivationRow::F32(&[f32::MAX; 1024]),
                };
                codec.dot(&row, x).unwrap();
            }
            let cut = random.next() as usize % (row.len() + 1);
            let mut out = vec![0.0; random.next() as usize % 1025];
            let whole = cut.is_multiple_of(t.block_bytes())
                && out.len() == cut / t.block_bytes() * t.block_len();
            assert_eq!(
                codec.dequantize(&row[..cut], &mut out).is_ok(),
                whole,
                "{t} {cut}"
            );
            let floats: Vec<f32> = random
                .bytes(4096)
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&b| f32::from_le_bytes(b))
                .collect();
            ActivationBuffer::new(codec.activation(), &floats).unwrap();
            match codec.quantize(&floats, &mut vec![0; t.row_bytes(1024).unwrap()]) {
                Ok(()) | Err(QuantError::NoQuantizer(_)) => {}
                Err(other) => panic!("{t}: {other}"),
            }
        }
    }
}
