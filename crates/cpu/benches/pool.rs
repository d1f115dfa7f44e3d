//! Microseconds per step of the pool: `cargo bench -p puna-cpu --bench pool [-- THREADS]`.
//!
//! Empty steps and steps of some microseconds of work, alone and beside a busy foreign process.

use puna_cpu::pool::{Job, Pool};
use std::{hint::black_box, process::Command, time::Instant};

/// Steps of `chunks` chunks, each of which spins through `work` dependent multiplications.
#[allow(clippy::struct_field_names, reason = "a job has steps")]
struct Steps {
    steps: usize,
    chunks: usize,
    work: usize,
}

impl Job for Steps {
    fn steps(&self) -> usize {
        self.steps
    }
    fn chunks(&self, _step: usize) -> usize {
        self.chunks
    }
    fn execute(&self, _step: usize, _chunk: usize, _worker: usize) {
        let mut x = black_box(1.0f32);
        for _ in 0..self.work {
            x = x.mul_add(0.999, 0.001);
        }
        black_box(x);
    }
}

/// Median and worst of `runs` runs, in microseconds per step.
fn time(pool: &Pool, job: &Steps, runs: usize) -> (f64, f64) {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            pool.run(job);
            start.elapsed().as_secs_f64() * 1e6 / job.steps as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[runs / 2], times[runs - 1])
}

fn report(pool: &Pool, label: &str) {
    for (chunks, work) in [(1, 0), (2, 0), (16, 0), (16, 2_000), (64, 2_000)] {
        let job = Steps {
            steps: 200,
            chunks,
            work,
        };
        let (median, worst) = time(pool, &job, 200);
        println!(
            "{label}: {} threads, {chunks} chunks of {work}: {median:.3} us a step, worst run {worst:.3}",
            pool.threads()
        );
    }
    // One step a run: with the entry, the helpers still spinning.
    let job = Steps {
        steps: 1,
        chunks: 2,
        work: 0,
    };
    let (median, worst) = time(pool, &job, 2_000);
    println!(
        "{label}: {} threads, one step a run: {median:.3} us, worst {worst:.3}",
        pool.threads()
    );
}

fn main() {
    let arg = std::env::args().nth(1).and_then(|a| a.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = arg.unwrap_or(cores);
    for threads in [1, most] {
        let pool = Pool::new(threads).expect("threads");
        report(&pool, "alone");
        let busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn();
        if let Ok(mut busy) = busy {
            report(&pool, "beside a busy process");
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}
