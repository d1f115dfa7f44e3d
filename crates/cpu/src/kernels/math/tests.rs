//! Accuracy against `f64`, and equality of the sets.

use super::{double, exp, gelu, gelu_erf, gelu_quick, sigmoid, silu, softplus, tanh};
use crate::kernels::{
    entry::assert_same,
    simd::{LANES, Simd, portable::Portable},
};

type Lanes = [f32; LANES];

/// One of the functions on sixteen numbers.
fn apply<S: Simd>(s: S, name: &str, x: &Lanes) -> Lanes {
    let v = s.load(x);
    let y = match name {
        "exp" => exp(s, v),
        "tanh" => tanh(s, v),
        "sigmoid" => sigmoid(s, v),
        "silu" => silu(s, v),
        "gelu" => gelu(s, v),
        "gelu_quick" => gelu_quick(s, v),
        "gelu_erf" => gelu_erf(s, v),
        "softplus" => softplus(s, v),
        other => panic!("no function {other}"),
    };
    let mut out = [0.0; LANES];
    s.store(y, &mut out);
    out
}

/// The normal distribution by its series (small arguments) or continued fraction.
fn phi(x: f64) -> f64 {
    let z = x.abs();
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let upper = if z < 3.0 {
        let (mut term, mut sum) = (z, z);
        for k in 1..80 {
            term *= z * z / f64::from(2 * k + 1);
            sum += term;
        }
        0.5 - density * sum
    } else {
        density / (1..200).rev().fold(z, |f, k| z + f64::from(k) / f)
    };
    if x < 0.0 { upper } else { 1.0 - upper }
}

fn reference(name: &str, x: f64) -> f64 {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    match name {
        "exp" => x.exp(),
        "tanh" => x.tanh(),
        "sigmoid" => logistic(x),
        "silu" => x * logistic(x),
        "gelu" => {
            x * logistic(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3)))
        }
        "gelu_quick" => x * logistic(1.702 * x),
        "gelu_erf" => x * phi(x),
        "softplus" => x.exp().ln_1p(),
        other => panic!("no function {other}"),
    }
}

/// `count` numbers from `low` to `high` in even steps, and as many powers of two of both signs near zero.
fn samples(low: f32, high: f32, count: usize) -> Vec<Lanes> {
    let even = (0..count).map(|i| low + (high - low) * (i as f32 / (count - 1) as f32));
    let small = (0..count).map(|i| {
        let size = ((i % 120) as f32 - 119.0).exp2() * (1.0 + i as f32 / count as f32);
        if i % 2 == 0 { size } else { -size }
    });
    let all: Vec<f32> = even.chain(small).collect();
    all.as_chunks::<LANES>().0.to_vec()
}

/// Names, the range to sample, and the relative error allowed in units of 2^-24.
const FUNCTIONS: [(&str, f32, f32, f64); 8] = [
    ("exp", -87.3365, 88.7228, 1.5),
    ("tanh", -20.0, 20.0, 4.0),
    ("sigmoid", -87.0, 90.0, 5.0),
    ("silu", -80.0, 90.0, 5.0),
    ("gelu", -5.0, 20.0, 100.0),
    ("gelu_quick", -20.0, 50.0, 70.0),
    ("gelu_erf", -12.0, 20.0, 16.0),
    ("softplus", -80.0, 90.0, 6.0),
];

#[test]
fn functions_are_accurate() {
    for (name, low, high, allowed) in FUNCTIONS {
        let mut worst = (0.0, 0.0);
        for x in samples(low, high, 160_000) {
            let y = apply(Portable, name, &x);
            for (x, y) in x.into_iter().zip(y) {
                let want = reference(name, f64::from(x));
                if want.abs() < f64::from(f32::MIN_POSITIVE) {
                    assert!(y.abs() <= 2.0 * f32::MIN_POSITIVE, "{name}({x}) is {y}");
                    continue;
                }
                let error = ((f64::from(y) - want) / want).abs() * f64::from(1 << 24);
                if error > worst.0 || error.is_nan() {
                    worst = (error, x);
                }
            }
        }
        eprintln!("{name}: {:.2} of 2^-24 at {}", worst.0, worst.1);
        assert!(worst.0 <= allowed, "{name}: {worst:?}");
    }
}

#[test]
fn ends_are_clean() {
    let inf = f32::INFINITY;
    let x = [
        0.0,
        -0.0,
        inf,
        -inf,
        f32::NAN,
        88.722_83,
        88.722_84,
        -87.336_54,
        -87.336_55,
        -88.0,
        -104.0,
        200.0,
        -1000.0,
        1e-40,
        1.0,
        f32::MIN,
    ];
    let y = apply(Portable, "exp", &x);
    assert_eq!(y[..4], [1.0, 1.0, inf, 0.0]);
    assert!(y[4].is_nan() && y[5].is_finite() && y[5] > 3.4e38);
    assert_eq!((y[6], y[8], y[9], y[10]), (inf, 0.0, 0.0, 0.0));
    assert!(y[7].is_normal());
    assert_eq!((y[11], y[12], y[13], y[15]), (inf, 0.0, 1.0, 0.0));
    for (name, at_inf, at_minus_inf) in [
        ("tanh", 1.0, -1.0),
        ("sigmoid", 1.0, 0.0),
        ("silu", inf, f32::NAN),
        ("gelu", inf, f32::NAN),
        ("gelu_quick", inf, f32::NAN),
        ("gelu_erf", inf, f32::NAN),
        ("softplus", inf, 0.0),
    ] {
        let y = apply(Portable, name, &x);
        assert_eq!(y[2], at_inf, "{name}");
        assert_same(&y[3..4], &[at_minus_inf], name);
        assert!(y[4].is_nan(), "{name}(NaN) is {}", y[4]);
        let finite = [0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert!(finite.iter().all(|&i| y[i].is_finite()), "{name}: {y:?}");
    }
}

/// Each function on each sample, against the portable bits.
#[cfg(target_arch = "x86_64")]
fn same_as_portable<S: Simd>(s: S) {
    for (name, low, high, _) in FUNCTIONS {
        let mut inputs = samples(low * 1.3, high * 1.3, 1600);
        inputs.push([
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            f32::MAX,
            f32::MIN,
            88.722_83,
            88.722_84,
            -87.336_54,
            -87.336_55,
            1e-40,
            -1e-40,
            0.0,
            -0.0,
            128.0,
            -1e9,
        ]);
        for x in inputs {
            let what = format!("{name} of {x:?}");
            assert_same(&apply(s, name, &x), &apply(Portable, name, &x), &what);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_set_gives_the_portable_bits() {
    use crate::kernels::simd::{avx2::Avx2, avx512::Avx512};
    Avx2::new().map(same_as_portable);
    Avx512::new().map(same_as_portable);
}

#[test]
fn double_functions_are_accurate() {
    let close = |got: f64, want: f64, allowed: f64, what: &str, x: f64| {
        let error = if want.abs() < 1e-300 {
            got - want
        } else {
            (got - want) / want
        };
        assert!(
            error.abs() <= allowed,
            "{what}({x}) is {got}, expected {want}"
        );
    };
    for i in -7000..=7000 {
        let x = f64::from(i) * 0.1013;
        close(double::exp(x), x.exp(), 5e-16, "exp", x);
        let y = x.exp() * 1.37;
        close(double::ln(y), y.ln(), 1e-15, "ln", y);
        let near_one = 1.0 + x * 1e-4;
        close(double::ln(near_one), near_one.ln(), 1e-15, "ln", near_one);
    }
    for i in 0..200_000 {
        let x = f64::from(i) * 37.131_7 - 1e6;
        let (s, c) = double::sin_cos(x);
        assert!((s - x.sin()).abs() < 5e-16, "sin({x})");
        assert!((c - x.cos()).abs() < 5e-16, "cos({x})");
    }
    for base in [10_000.0, 500_000.0, 1e6, 1e7] {
        for i in 0..128 {
            let y = -f64::from(i) / 128.0;
            close(double::pow(base, y), f64::powf(base, y), 5e-15, "pow", y);
        }
    }
}

#[test]
fn double_functions_keep_their_ends() {
    let inf = f64::INFINITY;
    assert_eq!(
        (double::exp(inf), double::exp(-inf), double::exp(0.0)),
        (inf, 0.0, 1.0)
    );
    assert!(double::exp(f64::NAN).is_nan() && double::exp(709.0).is_finite());
    assert!(double::exp(-744.0) > 0.0);
    assert_eq!(
        (double::ln(inf), double::ln(0.0), double::ln(1.0)),
        (inf, -inf, 0.0)
    );
    assert!(double::ln(-1.0).is_nan() && double::ln(f64::NAN).is_nan());
    assert!((double::ln(5e-324) - 5e-324f64.ln()).abs() < 1e-12);
    assert!(double::sin_cos(inf).0.is_nan());
    assert_eq!(double::sin_cos(0.0), (0.0, 1.0));
}
