//! Chains against probabilities computed by hand.

use puna_sampling::{Chain, SamplerKind, SamplerOptions, SamplingError};

/// Logits whose softmax is the given probabilities.
fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln()).collect()
}

/// Only what the test sets is on.
fn neutral() -> SamplerOptions {
    SamplerOptions {
        seed: Some(7),
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        ..SamplerOptions::default()
    }
}

/// Draws often and returns the share of each token.
fn shares(options: &SamplerOptions, row: &[f32], accepted: &[u32]) -> Vec<f64> {
    const DRAWS: u32 = 40_000;
    let mut chain = Chain::new(options).unwrap();
    for &token in accepted {
        chain.accept(token);
    }
    let mut counts = vec![0_u32; row.len()];
    for _ in 0..DRAWS {
        counts[chain.sample(&mut row.to_vec()).unwrap() as usize] += 1;
    }
    counts
        .iter()
        .map(|&n| f64::from(n) / f64::from(DRAWS))
        .collect()
}

#[track_caller]
fn check(options: &SamplerOptions, row: &[f32], accepted: &[u32], expected: &[f64]) {
    let found = shares(options, row, accepted);
    for (token, (f, e)) in found.iter().zip(expected).enumerate() {
        let near = if *e == 0.0 {
            *f == 0.0
        } else {
            (f - e).abs() < 0.012
        };
        assert!(
            near,
            "token {token}: share {f}, expected {e} (all: {found:?})"
        );
    }
}

#[test]
fn without_samplers_the_draw_follows_the_softmax() {
    check(
        &neutral(),
        &logits(&[0.1, 0.2, 0.3, 0.4]),
        &[],
        &[0.1, 0.2, 0.3, 0.4],
    );
}

#[test]
fn top_k_keeps_the_best_and_prefers_lower_ids_in_a_tie() {
    let row = logits(&[0.1, 0.2, 0.3, 0.4]);
    check(
        &SamplerOptions {
            top_k: 2,
            ..neutral()
        },
        &row,
        &[],
        &[0.0, 0.0, 3.0 / 7.0, 4.0 / 7.0],
    );
    let ties = [1.0, 1.0, 2.0, 1.0];
    let options = SamplerOptions {
        top_k: 2,
        ..neutral()
    };
    let best = std::f64::consts::E / (1.0 + std::f64::consts::E);
    check(&options, &ties, &[], &[1.0 - best, 0.0, best, 0.0]);
}

#[test]
fn top_p_keeps_the_tokens_that_reach_it() {
    let row = logits(&[0.1, 0.2, 0.3, 0.4]);
    for (top_p, expected) in [
        (0.69, [0.0, 0.0, 3.0 / 7.0, 4.0 / 7.0]),
        (0.71, [0.0, 2.0 / 9.0, 3.0 / 9.0, 4.0 / 9.0]),
        (0.0, [0.0, 0.0, 0.0, 1.0]),
        (1.0, [0.1, 0.2, 0.3, 0.4]),
    ] {
        check(&SamplerOptions { top_p, ..neutral() }, &row, &[], &expected);
    }
}

#[test]
fn min_p_keeps_the_tokens_near_the_best() {
    let row = logits(&[0.1, 0.2, 0.3, 0.4]);
    for (min_p, expected) in [
        (0.74, [0.0, 0.0, 3.0 / 7.0, 4.0 / 7.0]),
        (0.49, [0.0, 2.0 / 9.0, 3.0 / 9.0, 4.0 / 9.0]),
        (1.0, [0.0, 0.0, 0.0, 1.0]),
    ] {
        check(&SamplerOptions { min_p, ..neutral() }, &row, &[], &expected);
    }
}

#[test]
fn min_keep_holds_back_every_truncating_sampler() {
    let row = logits(&[0.1, 0.2, 0.3, 0.4]);
    let base = SamplerOptions {
        min_keep: 3,
        ..neutral()
    };
    let expected = [0.0, 2.0 / 9.0, 3.0 / 9.0, 4.0 / 9.0];
    check(
        &SamplerOptions {
            top_k: 1,
            ..base.clone()
        },
        &row,
        &[],
        &expected,
    );
    check(
        &SamplerOptions {
            top_p: 0.1,
            ..base.clone()
        },
        &row,
        &[],
        &expected,
    );
    check(&SamplerOptions { min_p: 1.0, ..base }, &row, &[], &expected);
}

#[test]
fn temperature_divides_the_logits() {
    let row = logits(&[0.2, 0.8]);
    // 0.2^2 : 0.8^2 at temperature 0.5; the square roots at 2
    check(
        &SamplerOptions {
            temperature: 0.5,
            ..neutral()
        },
        &row,
        &[],
        &[0.04 / 0.68, 0.64 / 0.68],
    );
    check(
        &SamplerOptions {
            temperature: 2.0,
            ..neutral()
        },
        &row,
        &[],
        &[1.0 / 3.0, 2.0 / 3.0],
    );
}

#[test]
fn penalties_divide_positive_and_multiply_negative_logits() {
    let options = SamplerOptions {
        repeat_penalty: 2.0,
        ..neutral()
    };
    // token 0: 2 / 2 = 1; token 1: -1 * 2 = -2; token 2 untouched
    let (a, b, c) = (1.0_f64.exp(), (-2.0_f64).exp(), 1.0);
    let sum = a + b + c;
    check(
        &options,
        &[2.0, -1.0, 0.0],
        &[0, 1, 1],
        &[a / sum, b / sum, c / sum],
    );
}

#[test]
fn frequency_counts_and_presence_does_not() {
    let options = SamplerOptions {
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        ..neutral()
    };
    // token 0 three times: 2 - 3 * 0.5 - 0.25; token 1 once: 1 - 0.5 - 0.25
    let weights = [0.25_f64.exp(), 0.25_f64.exp(), 0.0_f64.exp()];
    let sum: f64 = weights.iter().sum();
    check(
        &options,
        &[2.0, 1.0, 0.0],
        &[0, 0, 1, 0],
        &weights.map(|w| w / sum),
    );
}

#[test]
fn tokens_beyond_the_window_are_forgotten() {
    let options = SamplerOptions {
        presence_penalty: 100.0,
        repeat_last_n: 2,
        ..neutral()
    };
    check(&options, &[0.0, 0.0, 0.0], &[0, 1, 2], &[1.0, 0.0, 0.0]);
    let none = SamplerOptions {
        repeat_last_n: 0,
        ..options
    };
    check(&none, &[0.0, 0.0], &[0, 0], &[0.5, 0.5]);
}

#[test]
fn a_bias_comes_first_and_minus_infinity_bans() {
    let options = SamplerOptions {
        logit_bias: vec![(0, f32::NEG_INFINITY), (1, 2.0_f32.ln())],
        top_k: 2,
        ..neutral()
    };
    check(
        &options,
        &[9.0, 0.0, 0.0, -5.0],
        &[],
        &[0.0, 2.0 / 3.0, 1.0 / 3.0, 0.0],
    );
}

// B159
#[test]
fn an_order_of_min_p_and_temperature_alone_works() {
    let order = SamplerKind::order_from_names("min_p;temperature").unwrap();
    let options = SamplerOptions {
        order,
        min_p: 0.74,
        top_k: 1, // off, since the order does not list it
        ..neutral()
    };
    check(
        &options,
        &logits(&[0.1, 0.2, 0.3, 0.4]),
        &[],
        &[0.0, 0.0, 3.0 / 7.0, 4.0 / 7.0],
    );
    let empty = SamplerOptions {
        order: Vec::new(),
        ..SamplerOptions::default()
    };
    check(&empty, &[0.0, 0.0], &[], &[0.5, 0.5]);
}

// B147
#[test]
fn a_top_k_beyond_the_vocabulary_keeps_all() {
    let options = SamplerOptions {
        top_k: 9_999_999,
        ..neutral()
    };
    check(&options, &logits(&[0.25, 0.75]), &[], &[0.25, 0.75]);
}

// B148
#[test]
fn options_out_of_range_are_errors_that_name_them() {
    let base = SamplerOptions::default;
    for (options, name) in [
        (
            SamplerOptions {
                temperature: -1.0,
                ..base()
            },
            "temperature",
        ),
        (
            SamplerOptions {
                temperature: f32::NAN,
                ..base()
            },
            "temperature",
        ),
        (
            SamplerOptions {
                top_p: 2.0,
                ..base()
            },
            "top_p",
        ),
        (
            SamplerOptions {
                min_p: -0.1,
                ..base()
            },
            "min_p",
        ),
        (
            SamplerOptions {
                repeat_penalty: 0.0,
                ..base()
            },
            "repeat_penalty",
        ),
        (
            SamplerOptions {
                frequency_penalty: f32::INFINITY,
                ..base()
            },
            "frequency_penalty",
        ),
        (
            SamplerOptions {
                presence_penalty: f32::NAN,
                ..base()
            },
            "presence_penalty",
        ),
        (
            SamplerOptions {
                logit_bias: vec![(1, f32::NAN)],
                ..base()
            },
            "logit_bias",
        ),
    ] {
        match Chain::new(&options) {
            Err(SamplingError::Option { option, .. }) => assert_eq!(option, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(
        Chain::new(&SamplerOptions {
            top_k: -1,
            ..base()
        })
        .is_ok()
    );
}

#[test]
fn temperature_0_takes_the_best_and_the_lowest_of_equals() {
    let mut row: Vec<f32> = (0..1000_u32).map(|i| (i * 7919 % 1000) as f32).collect();
    let best = row.iter().position(|&x| x == 999.0).unwrap() as u32;
    let mut chain = Chain::new(&SamplerOptions::greedy()).unwrap();
    assert_eq!(chain.sample(&mut row.clone()), Ok(best));
    row[3] = 999.0;
    assert_eq!(chain.sample(&mut row.clone()), Ok(best.min(3)));
    let bare = SamplerOptions {
        order: Vec::new(),
        ..SamplerOptions::greedy()
    };
    assert_eq!(Chain::new(&bare).unwrap().sample(&mut row), Ok(best.min(3)));
}

#[test]
fn logits_that_are_no_numbers_are_errors_and_infinite_ones_are_not() {
    let mut chain = Chain::new(&SamplerOptions::default()).unwrap();
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!(chain.sample(&mut []), Err(SamplingError::EmptyVocabulary));
    assert_eq!(
        chain.sample(&mut [0.0, nan]),
        Err(SamplingError::NotANumber { token: 1, len: 2 })
    );
    assert_eq!(
        chain.sample(&mut [-inf, -inf]),
        Err(SamplingError::NothingLeft { len: 2 })
    );
    assert_eq!(chain.sample(&mut [1.0, inf, -inf]), Ok(1));
    assert_eq!(chain.sample(&mut [-inf, -1e30]), Ok(1));
    let cold = SamplerOptions {
        temperature: 1e-45,
        ..SamplerOptions::default()
    };
    assert_eq!(
        Chain::new(&cold).unwrap().sample(&mut [3.0, 3.1, 1.0]),
        Ok(1)
    );
    let biased = SamplerOptions {
        logit_bias: vec![(5, 1.0)],
        ..SamplerOptions::default()
    };
    assert_eq!(
        Chain::new(&biased).unwrap().sample(&mut [0.0; 3]),
        Err(SamplingError::BiasOutOfRange { token: 5, len: 3 })
    );
}

/// Logits from a fixed generator, in -10..10.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut random = puna_sampling::Xoshiro256::new(seed);
    (0..len)
        .map(|_| (random.next_f64() * 20.0 - 10.0) as f32)
        .collect()
}

#[test]
fn a_seed_gives_the_tokens_that_it_gave_when_this_was_written() {
    let options = SamplerOptions {
        seed: Some(1234),
        repeat_penalty: 1.1,
        ..SamplerOptions::default()
    };
    let mut chain = Chain::new(&options).unwrap();
    let mut run = || -> Vec<u32> {
        (0..8)
            .map(|i| {
                let token = chain.sample(&mut noise(5000, i)).unwrap();
                chain.accept(token);
                token
            })
            .collect()
    };
    assert_eq!(run(), [3887, 2347, 4928, 510, 3855, 1852, 1687, 4223]);
}

#[test]
fn reset_begins_again_and_a_fresh_seed_can_be_given_again() {
    let mut chain = Chain::new(&SamplerOptions::default()).unwrap();
    let run = |chain: &mut Chain| -> Vec<_> {
        (0..20).map(|i| chain.sample(&mut noise(100, i))).collect()
    };
    let first = run(&mut chain);
    chain.reset();
    assert_eq!(run(&mut chain), first);
    let options = SamplerOptions {
        seed: Some(chain.seed()),
        ..SamplerOptions::default()
    };
    assert_eq!(run(&mut Chain::new(&options).unwrap()), first);
}

#[test]
fn the_partial_selection_equals_a_full_sort() {
    for (len, k, step) in [
        (1, 1, 0.0),
        (1000, 40, 0.0),
        (5000, 40, 1.0),
        (5000, 700, 0.5),
        (300, 299, 0.0),
        (9000, 1, 3.0),
    ] {
        for (seed, slope) in [(1, 0.0), (2, 0.01), (3, -0.01)] {
            let mut row = noise(len, seed);
            for (i, x) in row.iter_mut().enumerate() {
                // coarse steps make ties, a slope makes rising and falling rows
                *x = if step > 0.0 {
                    (*x / step).round() * step
                } else {
                    *x
                } + slope * i as f32;
            }
            let mut sorted: Vec<(u32, f32)> = row
                .iter()
                .enumerate()
                .map(|(i, &x)| (i as u32, x))
                .collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            sorted.truncate(k);
            let mut list = Vec::new();
            let mut candidates = puna_sampling::Candidates::new(&mut row, &mut list);
            candidates.keep_best(k);
            let found: Vec<(u32, f32)> = candidates.iter().map(|c| (c.id, c.logit)).collect();
            assert_eq!(
                found, sorted,
                "len {len}, k {k}, step {step}, slope {slope}"
            );
        }
    }
}

#[test]
fn top_p_over_a_flat_vocabulary_equals_the_plain_definition() {
    let row: Vec<f32> = noise(20_000, 5).iter().map(|x| x * 0.05).collect();
    let options = SamplerOptions {
        top_p: 0.9,
        ..neutral()
    };
    let mut sorted: Vec<(usize, f64)> = row
        .iter()
        .map(|&x| f64::from(x).exp())
        .enumerate()
        .collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total: f64 = sorted.iter().map(|x| x.1).sum();
    let mut sum = 0.0;
    let mut kept = vec![false; row.len()];
    for (token, weight) in sorted {
        kept[token] = true;
        sum += weight;
        if sum >= 0.9 * total {
            break;
        }
    }
    let mut chain = Chain::new(&options).unwrap();
    for _ in 0..300 {
        assert!(kept[chain.sample(&mut row.clone()).unwrap() as usize]);
    }
}
