//! Time for one token over a vocabulary of 262,144 entries: `cargo bench -p puna-sampling`.

use puna_sampling::{Chain, SamplerKind, SamplerOptions, Xoshiro256};
use std::time::Instant;

const VOCABULARY: usize = 262_144;
const ROUNDS: u32 = 200;

/// Sums of uniform numbers: roughly the bell shape of real logits, with a spread of about 2.
fn logits() -> Vec<f32> {
    let mut random = Xoshiro256::new(1);
    (0..VOCABULARY)
        .map(|_| (0..12).map(|_| random.next_f64() - 0.5).sum::<f64>() as f32 * 2.0)
        .collect()
}

fn main() {
    let row = logits();
    let mut rising = row.clone();
    rising.sort_by(f32::total_cmp);
    let base = || SamplerOptions {
        seed: Some(1),
        ..SamplerOptions::default()
    };
    let mirrored = SamplerKind::order_from_names("min_p;top_p;temperature").unwrap_or_default();
    for (name, row, options) in [
        ("default", &row, base()),
        ("default, rising logits", &rising, base()),
        (
            "with penalties",
            &row,
            SamplerOptions {
                repeat_penalty: 1.1,
                ..base()
            },
        ),
        ("greedy", &row, SamplerOptions::greedy()),
        ("no top-k", &row, SamplerOptions { top_k: 0, ..base() }),
        (
            "min_p;top_p;temperature",
            &row,
            SamplerOptions {
                order: mirrored,
                ..base()
            },
        ),
        (
            "temperature only",
            &row,
            SamplerOptions {
                top_k: 0,
                top_p: 1.0,
                min_p: 0.0,
                ..base()
            },
        ),
    ] {
        let Ok(mut chain) = Chain::new(&options) else {
            continue;
        };
        (0..64).for_each(|token| chain.accept(token * 100));
        let mut work = row.clone();
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            work.copy_from_slice(row);
            let start = Instant::now();
            let token = chain.sample(&mut work);
            best = best.min(start.elapsed().as_secs_f64());
            std::hint::black_box(token).ok();
        }
        println!("{name:28} {:8.1} us", best * 1e6);
    }
}
