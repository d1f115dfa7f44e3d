//! Frequencies against formulas and numbers from elsewhere; rotations against complex multiplication.

use super::*;
use crate::kernels::entry::{assert_same, numbers, other_sets};

fn params(dims: usize, base: f32, scaling: RopeScaling) -> RopeParams<'static> {
    RopeParams {
        dims,
        base,
        scaling,
        factors: None,
        magnitude: 1.0,
    }
}

fn yarn(factor: f32, original_context: u32) -> RopeScaling {
    RopeScaling::Yarn {
        factor,
        original_context,
        ext_factor: 1.0,
        attn_factor: 1.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
    }
}

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 1e-13, "{got}, expected {want}");
}

/// Numbers that transformers' `_compute_yarn_parameters` gives, computed in f64.
#[test]
fn yarn_frequencies_equal_the_original_implementation() {
    let small = [
        (0, 1.0),
        (8, 0.1),
        (12, 0.027_973_994_686_104_89),
        (16, 0.006_538_461_538_461_538),
        (20, 0.001_337_886_702_378_929_3),
        (24, 0.000_25),
        (31, 3.333_803_580_408_31e-5),
    ];
    let large = [
        (0, 1.0),
        (20, 0.013_335_214_321_633_24),
        (30, 0.001_064_360_981_247_001_7),
        (40, 4.445_698_525_097_307e-5),
        (50, 5.133_812_566_142_866e-6),
        (63, 3.102_344_401_879_299e-7),
    ];
    let cases: [(_, _, _, &[(usize, f64)]); 2] =
        [(64, 1e4, 4096, &small), (128, 1e6, 32768, &large)];
    for (dims, base, context, want) in cases {
        let table = RopeTable::new(&params(dims, base, yarn(4.0, context))).unwrap();
        for &(pair, frequency) in want {
            near(table.frequencies[pair], frequency);
        }
        near(table.magnitude, 1.138_629_436_111_989);
    }
}

#[test]
fn linear_scaling_and_factors_divide_the_frequencies() {
    let plain = RopeTable::new(&params(64, 5e5, RopeScaling::None)).unwrap();
    let linear = RopeScaling::Linear { factor: 8.0 };
    let linear = RopeTable::new(&params(64, 5e5, linear)).unwrap();
    let factors: Vec<f32> = (1..=32).map(|i| i as f32 * 0.75).collect();
    let mut with_factors = params(64, 5e5, RopeScaling::None);
    with_factors.factors = Some(&factors);
    let with_factors = RopeTable::new(&with_factors).unwrap();
    for (i, plain) in plain.frequencies.iter().enumerate() {
        near(*plain, 5e5f64.powf(i as f64 / -32.0));
        near(linear.frequencies[i], plain / 8.0);
        near(with_factors.frequencies[i], plain / f64::from(factors[i]));
    }
}

#[test]
fn yarn_without_its_ramp_is_linear_scaling() {
    let scaling = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 4096,
        ext_factor: 0.0,
        attn_factor: 1.5,
        beta_fast: 32.0,
        beta_slow: 1.0,
    };
    let yarn = RopeTable::new(&params(64, 1e4, scaling)).unwrap();
    let linear = RopeTable::new(&params(64, 1e4, RopeScaling::Linear { factor: 4.0 })).unwrap();
    assert_eq!(yarn.frequencies, linear.frequencies);
    assert_eq!(yarn.magnitude, 1.5);
}

#[test]
fn angles_stay_exact_at_late_positions() {
    let mut long = params(128, 1e6, RopeScaling::None);
    long.magnitude = 1.25;
    let table = RopeTable::new(&long).unwrap();
    let (mut cos, mut sin) = (vec![0.0; 64], vec![0.0; 64]);
    for position in [0, 1, 77, 131_071, 1_000_000, 10_000_000] {
        table.fill(position, &mut cos, &mut sin);
        for i in 0..64 {
            let angle = f64::from(position) * 1e6f64.powf(i as f64 / -64.0);
            assert!((f64::from(cos[i]) - 1.25 * angle.cos()).abs() < 1.5e-7);
            assert!((f64::from(sin[i]) - 1.25 * angle.sin()).abs() < 1.5e-7);
        }
    }
}

#[test]
fn impossible_parameters_are_errors() {
    let refuse = |params: &RopeParams<'_>| RopeTable::new(params).unwrap_err();
    assert_eq!(
        refuse(&params(7, 1e4, RopeScaling::None)),
        RopeError::OddDims(7)
    );
    for base in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = refuse(&params(8, base, RopeScaling::None));
        assert!(matches!(error, RopeError::NotPositive { .. }), "{error}");
    }
    for scaling in [
        RopeScaling::Linear { factor: 0.0 },
        yarn(f32::NAN, 10),
        yarn(2.0, 0),
    ] {
        let error = refuse(&params(8, 1e4, scaling));
        assert!(matches!(error, RopeError::NotPositive { .. }), "{error}");
    }
    let mut short = params(8, 1e4, RopeScaling::None);
    short.factors = Some(&[1.0; 3]);
    let want = RopeError::FactorCount {
        found: 3,
        expected: 4,
    };
    assert_eq!(refuse(&short), want);
    short.factors = Some(&[1.0, 1.0, 0.0, 1.0]);
    assert!(matches!(refuse(&short), RopeError::NotPositive { .. }));
    assert_eq!(
        RopeTable::new(&params(0, 1e4, RopeScaling::None))
            .unwrap()
            .pairs(),
        0
    );
}

/// `(heads, head, pairs)`
const SHAPES: [(usize, usize, usize); 9] = [
    (1, 2, 1),
    (3, 64, 32),
    (2, 128, 64),
    (2, 80, 40),
    (5, 80, 16),
    (1, 96, 17),
    (4, 30, 15),
    (2, 8, 0),
    (1, 256, 128),
];

#[test]
fn rotations_take_the_stated_operations_in_every_set() {
    for (heads, head, pairs) in SHAPES {
        let (cos, sin) = (numbers(pairs, 1), numbers(pairs, 2));
        let before = numbers(heads * head, 3);
        for order in [RopeOrder::Normal, RopeOrder::Neox] {
            let mut want = before.clone();
            for x in want.chunks_mut(head) {
                for i in 0..pairs {
                    let (at_a, at_b) = match order {
                        RopeOrder::Normal => (2 * i, 2 * i + 1),
                        RopeOrder::Neox => (i, i + pairs),
                    };
                    let (a, b) = (x[at_a], x[at_b]);
                    x[at_a] = a.mul_add(cos[i], b * -sin[i]);
                    x[at_b] = a.mul_add(sin[i], b * cos[i]);
                }
            }
            let mut sets = other_sets();
            sets.push(Set::Portable);
            for set in sets {
                let mut got = before.clone();
                // SAFETY: only sets that the CPU has are tried.
                unsafe { rope(set)(order, &mut got, head, &cos, &sin) };
                assert_same(&got, &want, &format!("{set:?} {order:?} {heads} x {head}"));
            }
        }
    }
}
