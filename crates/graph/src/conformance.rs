//! The suite that every backend passes: ops, element types and shapes, compared with the `f64` reference and with itself.
//!
//! [`cases`] makes small graphs with fixed pseudo-random weights. [`check`] runs one on a backend as a whole batch, token by token and in
//! uneven chunks; all three must give the same bits, and agree with the reference within the case's tolerance.

use crate::{
    Backend, Batch, CacheLayer, CacheLayout, CacheType, Graph, GraphBuilder, GraphError,
    PAGE_POSITIONS, PageId, PlanOptions, Reach, Run, ValueId, Vector, Weight,
    ops::{ActivationKind, Norm, NormKind, Rope, RopeOrder, RopeScaling},
    reference,
};
use puna_quant::{ElementType, ScaleKind};
use std::sync::Arc;

/// A graph, the tokens to run it on, and how far a backend may be from the reference.
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// Tokens of one sequence.
    pub tokens: Vec<u32>,
    /// Largest difference, relative to the largest value of the reference.
    pub tolerance: f64,
}

const VOCABULARY: usize = 40;
/// Exact but for rounding in `f32`.
const ROUNDING: f64 = 1e-5;
/// Activations are rounded to eight bits, in both factors of a gated product.
const EIGHT_BITS: f64 = 4e-2;

/// A small generator; the suite is the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // Knuth's constants; the high bits are good enough for test data.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
    fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }
    fn vector(&mut self, name: &str, len: usize) -> Vector {
        let data: Vec<f32> = (0..len).map(|_| 1.0 + 0.3 * self.float()).collect();
        Vector::new(name, data)
    }

    /// A matrix of the type: plain numbers, or random blocks with sensible scales.
    fn matrix(
        &mut self,
        element_type: ElementType,
        rows: usize,
        cols: usize,
    ) -> Result<Weight, GraphError> {
        let row_bytes = element_type.row_bytes(cols).unwrap_or(0);
        let mut bytes = vec![0u8; rows * row_bytes];
        for byte in &mut bytes {
            *byte = self.next() as u8;
        }
        let fields = element_type.codec().map_or(&[][..], |c| c.scale_fields());
        for block in bytes.chunks_exact_mut(element_type.block_bytes()) {
            if element_type.block_len() == 1 && fields.is_empty() {
                // Integers of one byte's range, so that sums stay small.
                let sign = if block[0] < 128 { 0 } else { 255 };
                block[1..].fill(sign);
            }
            for field in fields {
                let scale = self.float()
                    * if element_type.block_len() == 1 {
                        1.0
                    } else {
                        0.02
                    };
                write_scale(block, field.offset, field.kind, scale);
            }
        }
        let range = 0..bytes.len();
        Weight::new(
            format!("w.{}", element_type.name()),
            element_type,
            [rows, cols],
            Arc::new(bytes),
            range,
        )
    }
}

fn write_scale(block: &mut [u8], offset: usize, kind: ScaleKind, scale: f32) {
    let mut put = |bytes: &[u8]| {
        if let Some(place) = block.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    match kind {
        ScaleKind::F16 => put(&puna_quant::float::f32_to_f16(scale).to_le_bytes()),
        ScaleKind::BF16 => put(&puna_quant::float::f32_to_bf16(scale).to_le_bytes()),
        ScaleKind::F32 => put(&scale.to_le_bytes()),
        ScaleKind::F64 => put(&f64::from(scale).to_le_bytes()),
        // Around two to the power of minus six.
        _ => put(&[121]),
    }
}

/// All cases.
///
/// # Errors
/// [`GraphError`] if a case is made wrongly.
pub fn cases() -> Result<Vec<Case>, GraphError> {
    let mut cases = Vec::new();
    linears(&mut cases)?;
    row_wise(&mut cases)?;
    attention(&mut cases)?;
    Ok(cases)
}

fn tokens(count: usize) -> Vec<u32> {
    (0..count).map(|i| (i * 7 % VOCABULARY) as u32).collect()
}

/// Every type as a weight, with shapes around the borders of panels and blocks, alone and fused with what follows.
fn linears(cases: &mut Vec<Case>) -> Result<(), GraphError> {
    for element_type in ElementType::ALL
        .iter()
        .copied()
        .filter(|t| t.codec().is_some())
    {
        for (rows, blocks) in [(1, 1), (16, 2), (33, 3)] {
            let mut n = Numbers(u64::from(element_type.id()) * 97 + rows as u64);
            let block = element_type.block_len();
            let cols = if block == 1 {
                31 * blocks
            } else {
                block * blocks
            };
            let mut g = GraphBuilder::new();
            let x = g.embed(&n.matrix(ElementType::F32, VOCABULARY, cols)?, 1.0);
            let bias = n.vector("bias", rows);
            let a = g.linear(x, &n.matrix(element_type, rows, cols)?, Some(&bias))?;
            let gate = g.linear(x, &n.matrix(element_type, rows, cols)?, None)?;
            let up = g.linear(
                x,
                &n.matrix(element_type, rows, cols)?.with_scale(0.5),
                None,
            )?;
            let b = g.gated(gate, up, ActivationKind::Silu)?;
            let sum = g.add(a, b)?;
            let out = g.select_outputs(sum)?;
            cases.push(Case {
                name: format!("linear {} [{rows}, {cols}]", element_type.name()),
                graph: g.finish(out),
                tokens: tokens(9),
                tolerance: if block == 1 { ROUNDING } else { EIGHT_BITS },
            });
        }
    }
    Ok(())
}

type Op = fn(&mut GraphBuilder, ValueId, &mut Numbers, usize) -> Result<ValueId, GraphError>;

/// Ops on rows, over widths that are and are not whole vectors.
fn row_wise(cases: &mut Vec<Case>) -> Result<(), GraphError> {
    let ops: [(&str, Op); 9] = [
        ("rms norm", |g, x, n, width| {
            g.rms_norm(x, &n.vector("w", width), 1e-5)
        }),
        ("rms norm per head", |g, x, n, width| {
            g.rms_norm(x, &n.vector("w", width / 2), 1e-6)
        }),
        ("layer norm", |g, x, n, width| {
            let (weight, bias) = (Some(n.vector("w", width)), Some(n.vector("b", width)));
            g.norm(
                x,
                Norm {
                    kind: NormKind::Layer,
                    group: width,
                    eps: 1e-5,
                    weight,
                    bias,
                },
            )
        }),
        ("mul", |g, x, _, _| g.mul(x, x)),
        ("scale and softcap", |g, x, _, _| {
            let x = g.scale(x, 7.0);
            Ok(g.softcap(x, 3.0))
        }),
        ("gelu", |g, x, _, _| {
            Ok(g.activation(x, ActivationKind::GeluTanh))
        }),
        ("relu", |g, x, _, _| {
            Ok(g.activation(x, ActivationKind::Relu))
        }),
        ("rope, neighbours", |g, x, _, width| {
            g.rope(x, &rope(width, RopeOrder::Normal, RopeScaling::None))
        }),
        ("rope, halves, yarn", |g, x, _, width| {
            let scaling = RopeScaling::Yarn {
                factor: 4.0,
                original_context: 16,
                ext_factor: 1.0,
                attn_factor: 1.0,
                beta_fast: 32.0,
                beta_slow: 1.0,
            };
            g.rope(x, &rope(width, RopeOrder::Neox, scaling))
        }),
    ];
    for (name, op) in ops {
        for width in [4, 32, 52] {
            let mut n = Numbers(width as u64);
            let mut g = GraphBuilder::new();
            let x = g.embed(&n.matrix(ElementType::F32, VOCABULARY, width)?, 1.5);
            let y = op(&mut g, x, &mut n, width)?;
            let y = g.add(x, y)?;
            let out = g.select_outputs(y)?;
            cases.push(Case {
                name: format!("{name}, width {width}"),
                graph: g.finish(out),
                tokens: tokens(21),
                tolerance: ROUNDING,
            });
        }
    }
    Ok(())
}

/// Two heads, of which all but two dimensions are rotated.
fn rope(width: usize, order: RopeOrder, scaling: RopeScaling) -> Rope {
    let head_dim = width / 2;
    Rope {
        head_dim,
        dims: (head_dim - 1) / 2 * 2,
        order,
        base: 1000.0,
        scaling,
        factors: None,
        magnitude: 1.25,
    }
}

/// Head sizes, groups, windows and softcaps, past the border of a page.
fn attention(cases: &mut Vec<Case>) -> Result<(), GraphError> {
    for (heads, kv_heads, dim) in [(1, 1, 16), (6, 2, 32), (7, 1, 20)] {
        for (reach, softcap) in [
            (Reach::Full, None),
            (Reach::Window(30), None),
            (Reach::Window(64), Some(5.0)),
        ] {
            let mut n = Numbers((heads * dim) as u64);
            let mut g = GraphBuilder::new();
            let width = 24;
            let x = g.embed(&n.matrix(ElementType::F32, VOCABULARY, width)?, 1.0);
            let mut project = |g: &mut GraphBuilder, rows| {
                let weight = n.matrix(ElementType::F32, rows, width)?;
                g.linear(x, &weight, None)
            };
            let [q, k, v] = [
                project(&mut g, heads * dim)?,
                project(&mut g, kv_heads * dim)?,
                project(&mut g, kv_heads * dim)?,
            ];
            let rope = Rope {
                head_dim: dim,
                dims: dim,
                order: RopeOrder::Neox,
                base: 500.0,
                scaling: RopeScaling::None,
                factors: None,
                magnitude: 1.0,
            };
            let (q, k) = (g.rope(q, &rope)?, g.rope(k, &rope)?);
            let cache = CacheLayer {
                kv_heads,
                key_dim: dim,
                value_dim: dim,
                reach,
            };
            let y = g.attention([q, k, v], heads, cache, 0.2, softcap)?;
            let out = g.select_outputs(y)?;
            cases.push(Case {
                name: format!("attention, {heads} heads over {kv_heads} of {dim}, {reach:?}, softcap {softcap:?}"),
                graph: g.finish(out),
                tokens: tokens(PAGE_POSITIONS * 2 + 9),
                tolerance: ROUNDING,
            });
        }
    }
    Ok(())
}

/// Runs a case on `backend`; returns the bits of its results.
///
/// # Errors
/// What is wrong, in words: a refusal, a difference between chunkings, or a result too far from the reference.
pub fn check(backend: &dyn Backend, case: &Case) -> Result<Vec<u32>, String> {
    let all = run(backend, case, &[case.tokens.len()])?;
    let single = run(backend, case, &vec![1; case.tokens.len()])?;
    let uneven = run(backend, case, &[3, 1, case.tokens.len() - 4])?;
    let bits = |x: &[f32]| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    if bits(&all) != bits(&single) || bits(&all) != bits(&uneven) {
        return Err(format!(
            "{}: the result depends on how tokens are grouped",
            case.name
        ));
    }
    let outputs: Vec<u32> = (0..case.tokens.len() as u32).collect();
    let expected =
        reference::run(&case.graph, &case.tokens, &outputs).map_err(|e| e.to_string())?;
    let expected: Vec<f64> = expected.into_iter().flatten().collect();
    let largest = expected.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    let difference = all
        .iter()
        .zip(&expected)
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .fold(0.0, f64::max);
    // Not a number is never close.
    let close = difference <= case.tolerance * largest;
    if all.len() != expected.len() || !close {
        return Err(format!(
            "{}: differs by {difference:e} of at most {largest:e}",
            case.name
        ));
    }
    Ok(bits(&all))
}

fn run(backend: &dyn Backend, case: &Case, chunks: &[usize]) -> Result<Vec<f32>, String> {
    let text = |e: crate::BackendError| format!("{}: {e}", case.name);
    let layout = CacheLayout::new(case.graph.cache_layers(), CacheType::F32, CacheType::F32);
    let pages = case.tokens.len().div_ceil(PAGE_POSITIONS);
    let options = PlanOptions::new(case.tokens.len());
    let mut plan = backend
        .compile(case.graph.clone(), &layout, &options)
        .map_err(text)?;
    let mut cache = backend
        .cache(&layout, &vec![pages; layout.groups.len()])
        .map_err(text)?;
    // Not in order, so that page numbers matter.
    let table: Vec<PageId> = (0..pages as u32).rev().map(PageId).collect();
    let tables = vec![table; layout.groups.len()];
    let (mut out, mut done) = (Vec::new(), 0);
    for chunk in chunks {
        let outputs: Vec<u32> = (0..*chunk as u32).collect();
        let batch = Batch {
            tokens: &case.tokens[done..done + chunk],
            runs: &[Run {
                rows: 0..*chunk,
                first_position: done as u32,
                pages: &tables,
            }],
            outputs: &outputs,
        };
        out.extend_from_slice(plan.run(&batch, cache.as_mut()).map_err(text)?);
        done += chunk;
    }
    Ok(out)
}
