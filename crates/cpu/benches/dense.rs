//! Panels of plain numbers, beside this core's peaks: `cargo bench -p puna-cpu --bench dense [portable_fma|avx2|avx512]`.

use puna_cpu::kernels::dense::{TOKENS, panel_fn};
use puna_cpu::kernels::linear::{Activations, PANEL_ROWS, Panel};
use puna_quant::ElementType;

mod peaks;

fn main() {
    let set = peaks::chosen_set();
    let (peak, read) = (peaks::fma_peak(set), peaks::read_peak());
    println!(
        "{set:?}: {:.0} GFLOP/s, reading {:.1} GB/s",
        peak / 1e9,
        read / 1e9
    );
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for (rows, cols) in [(49152, 1536), (8192, 8960)] {
            let row_bytes = ty.row_bytes(cols).expect("plain types have any length");
            let matrix = peaks::Lines::new(rows * row_bytes);
            for tokens in [1, 2, 4, 6, 8, 16, 32, 96, 512] {
                // Compute-bound cases need no large matrix.
                let rows = if tokens > 8 { 512 } else { rows };
                let x: Vec<f32> = (0..tokens * cols)
                    .map(|i| (i as f32 * 0.37).sin())
                    .collect();
                let mut out = vec![0.0; tokens * PANEL_ROWS];
                let f = panel_fn(set, ty).expect("plain types have a panel");
                let seconds = peaks::median(|| {
                    for x in x.chunks(TOKENS * cols) {
                        let tokens = x.len() / cols;
                        let x = Activations::F32 { x, tokens, cols };
                        for row in (0..rows).step_by(PANEL_ROWS) {
                            let bytes = &matrix.bytes()[row * row_bytes..];
                            let rows = PANEL_ROWS;
                            let panel = Panel {
                                bytes,
                                row_bytes,
                                rows,
                                cols,
                            };
                            // SAFETY: the set was detected.
                            unsafe { f(&panel, &x, &mut out) };
                        }
                    }
                });
                let bytes = (rows * row_bytes) as f64 / seconds;
                let flops = (2 * rows * cols * tokens) as f64 / seconds;
                println!(
                    "{:5} {rows:5} x {cols:4}, {tokens:3} tokens {:8.3} ms  {:5.1} GB/s ({:3.0} %)  {:6.1} GFLOP/s ({:3.0} %)",
                    ty.name(),
                    seconds * 1e3,
                    bytes / 1e9,
                    100.0 * bytes / read,
                    flops / 1e9,
                    100.0 * flops / peak,
                );
            }
        }
    }
}
