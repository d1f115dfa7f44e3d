//! From a graph to steps: what is fused, what is quantized when, and where it all lies.
//!
//! - Row-wise ops that follow each other become one [`RowsStep`]: a norm, the additions around it, rotary positions, the store into the
//!   cache and the quantization for the next linear are one pass over each row.
//! - Linears that read the same value become one [`LinearStep`]; a gated pair and its activation become one part of it; a bias, and an
//!   addition that only it feeds, are applied to its results in registers or the first-level cache.

use super::{
    arena::{Buffer, Lifetime, place},
    step::{AttendStep, LinearPart, LinearStep, Matrix, Packed, RowCodec, RowOp, RowsStep, Step},
};
use crate::kernels::{
    Kernels, PanelKernel, activation,
    elementwise::{Activation, Combine, Map},
    kv::{KvLayout, KvType},
    rope::{RopeParams, RopeTable},
};
use puna_graph::{
    BackendError, CacheLayer, CacheLayout, CacheType, Graph, Op, Rows, ValueId, WeightId,
    ops::{ActivationKind, Rope},
};
use puna_quant::ActivationKind as PackedKind;
use std::collections::HashMap;

/// A graph's steps and buffers.
pub(crate) struct Compiled {
    pub steps: Vec<Step>,
    pub buffers: Vec<Buffer>,
    /// Bytes per row of the two blocks of the arena.
    pub bytes_per_row: [usize; 2],
    /// Index of the result's buffer.
    pub output: usize,
    pub layouts: Vec<KvLayout>,
}

/// Refuses what the kernels lack, then chooses steps.
pub(crate) fn compile(
    graph: &Graph,
    cache: &CacheLayout,
    kernels: Kernels,
) -> Result<Compiled, BackendError> {
    let layouts = kv_layouts(cache, graph.cache_layers())?;
    let output = graph
        .output()
        .ok_or_else(|| unsupported("graph", "no output"))?;
    let mut compiler = Compiler {
        graph,
        kernels,
        cache,
        layouts: &layouts,
        uses: graph.use_counts(),
        steps: Vec::new(),
        buffers: Vec::new(),
        lifetimes: Vec::new(),
        values: HashMap::new(),
        packed: HashMap::new(),
        angles: Vec::new(),
    };
    compiler.all()?;
    let output = compiler.read(output);
    compiler.lifetimes[output].last = compiler.steps.len();
    let (mut buffers, lifetimes, steps) = (compiler.buffers, compiler.lifetimes, compiler.steps);
    let bytes_per_row = place(&mut buffers, &lifetimes);
    Ok(Compiled {
        steps,
        buffers,
        bytes_per_row,
        output,
        layouts,
    })
}

/// What the pages of each layer look like, if `cache` is the cache of `layers`.
pub(crate) fn kv_layouts(
    cache: &CacheLayout,
    layers: &[CacheLayer],
) -> Result<Vec<KvLayout>, BackendError> {
    cache
        .check(layers)
        .map_err(|e| unsupported("plan", e.to_string()))?;
    let (k, v) = (kv_type(cache.key_type)?, kv_type(cache.value_type)?);
    let layout = |l: &CacheLayer| {
        KvLayout::new(k, v, l.kv_heads, l.key_dim, l.value_dim)
            .map_err(|e| unsupported("cache", e.to_string()))
    };
    layers.iter().map(layout).collect()
}

/// The layout's name for an element type of the cache.
fn kv_type(t: CacheType) -> Result<KvType, BackendError> {
    Ok(match t {
        CacheType::F32 => KvType::F32,
        CacheType::F16 => KvType::F16,
        CacheType::BF16 => KvType::Bf16,
        CacheType::Q8_0 => KvType::Q8_0,
        CacheType::Q4_0 => KvType::Q4_0,
        other => return Err(unsupported("cache", other.name())),
    })
}

fn gate(kind: ActivationKind) -> Result<Activation, BackendError> {
    activation(kind).ok_or_else(|| unsupported("activation", format!("{kind:?}")))
}

fn unsupported(op: &'static str, detail: impl Into<String>) -> BackendError {
    BackendError::Unsupported {
        backend: super::NAME,
        op,
        detail: detail.into(),
    }
}

fn rope_table(rope: &Rope) -> Result<RopeTable, BackendError> {
    let params = RopeParams {
        dims: rope.dims,
        base: rope.base,
        scaling: rope.scaling,
        factors: rope.factors.as_ref().map(|f| &f.data[..rope.dims / 2]),
        magnitude: rope.magnitude,
    };
    RopeTable::new(&params).map_err(|e| unsupported("rope", e.to_string()))
}

struct Compiler<'g> {
    graph: &'g Graph,
    kernels: Kernels,
    cache: &'g CacheLayout,
    layouts: &'g [KvLayout],
    uses: Vec<u32>,
    steps: Vec<Step>,
    buffers: Vec<Buffer>,
    lifetimes: Vec<Lifetime>,
    /// Buffer of each value that is computed.
    values: HashMap<ValueId, usize>,
    /// Quantized forms of values.
    packed: HashMap<(ValueId, PackedKind), Packed>,
    /// Tables of rotary angles, by what they are made from.
    angles: Vec<(Rope, usize)>,
}

impl Compiler<'_> {
    fn all(&mut self) -> Result<(), BackendError> {
        let graph = self.graph;
        for (i, node) in graph.nodes().iter().enumerate() {
            let value = ValueId(i as u32);
            if self.is_fused_later(value) {
                continue;
            }
            match &node.op {
                Op::Linear(_) => self.linear(value, value, None)?,
                Op::GatedActivation(op) => match self.gated_pair(value) {
                    Some([gate, up]) => self.gated(value, gate, up, op.kind)?,
                    None => self.row_op(value)?,
                },
                Op::Add(_) => match self.residual(value) {
                    Some((linear, residual)) => self.linear(value, linear, Some(residual))?,
                    None => self.row_op(value)?,
                },
                Op::Attention(_) => self.attention(value)?,
                _ => self.row_op(value)?,
            }
        }
        Ok(())
    }

    /// Whether the value exists only inside of a step that a later node makes.
    fn is_fused_later(&self, value: ValueId) -> bool {
        let Op::Linear(_) = self.graph.node(value).op else {
            return false;
        };
        let reader = (value.index() + 1..self.graph.nodes().len())
            .map(|i| ValueId(i as u32))
            .find(|v| self.graph.node(*v).inputs.contains(&value));
        reader.is_some_and(|reader| match self.graph.node(reader).op {
            Op::GatedActivation(_) => self.gated_pair(reader).is_some(),
            Op::Add(_) => self
                .residual(reader)
                .is_some_and(|(linear, _)| linear == value),
            _ => false,
        })
    }

    fn linear_used_once(&self, value: ValueId) -> bool {
        matches!(self.graph.node(value).op, Op::Linear(_)) && self.uses[value.index()] == 1
    }

    /// The two linears of a gated activation that may be computed together with it.
    fn gated_pair(&self, value: ValueId) -> Option<[ValueId; 2]> {
        let [gate, up] = *self.graph.node(value).inputs.as_slice() else {
            return None;
        };
        let input = |v: ValueId| self.graph.node(v).inputs.first().copied();
        let fits = gate != up
            && self.linear_used_once(gate)
            && self.linear_used_once(up)
            && input(gate) == input(up);
        fits.then_some([gate, up])
    }

    /// A linear that only this addition reads, and what is added to it.
    fn residual(&self, value: ValueId) -> Option<(ValueId, ValueId)> {
        let [a, b] = *self.graph.node(value).inputs.as_slice() else {
            return None;
        };
        // The one that is computed last can wait for the other.
        let (linear, other) = if a > b { (a, b) } else { (b, a) };
        (a != b && self.linear_used_once(linear)).then_some((linear, other))
    }

    fn new_buffer(&mut self, buffer: Buffer) -> usize {
        let now = self.steps.len();
        self.buffers.push(buffer);
        self.lifetimes.push(Lifetime {
            first: now,
            last: now,
        });
        self.buffers.len() - 1
    }

    /// A buffer for a value, written by the step at the end of the list.
    fn write(&mut self, value: ValueId) -> usize {
        let shape = self.graph.node(value).shape;
        let buffer = self.new_buffer(Buffer::of::<f32>(shape.rows, shape.features));
        self.lifetimes[buffer].first = self.last_step();
        self.values.insert(value, buffer);
        self.touch(buffer);
        buffer
    }

    fn last_step(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }

    fn touch(&mut self, buffer: usize) {
        let now = self.last_step();
        let last = &mut self.lifetimes[buffer].last;
        *last = (*last).max(now);
    }

    /// The buffer of a value that the step at the end of the list reads.
    fn read(&mut self, value: ValueId) -> usize {
        let buffer = self.values[&value];
        self.touch(buffer);
        buffer
    }

    /// Makes the step at the end of the list a pass over `rows`.
    fn open_rows(&mut self, rows: Rows) {
        if !matches!(self.steps.last(), Some(Step::Rows(s)) if s.rows == rows) {
            self.steps.push(Step::Rows(RowsStep {
                rows,
                ops: Vec::new(),
            }));
        }
    }

    fn push_row_op(&mut self, op: RowOp) {
        if let Some(Step::Rows(step)) = self.steps.last_mut() {
            step.ops.push(op);
        }
    }

    fn row_op(&mut self, value: ValueId) -> Result<(), BackendError> {
        let graph = self.graph;
        let node = graph.node(value);
        if let Op::Rope(rope) = &node.op {
            self.angle_table(rope)?;
        }
        self.open_rows(node.shape.rows);
        let input = |c: &mut Self, i: usize| c.read(node.inputs[i]);
        let op = match &node.op {
            Op::Embed(op) => {
                let element_type = graph.weight(op.table).element_type();
                let codec = element_type.codec();
                RowOp::Embed {
                    table: op.table,
                    codec: codec
                        .map(RowCodec)
                        .ok_or_else(|| unsupported("embed", element_type.name()))?,
                    scale: op.scale,
                    out: self.write(value),
                }
            }
            Op::Norm(op) => RowOp::Norm {
                norm: op.clone(),
                x: input(self, 0),
                out: self.write(value),
            },
            Op::Add(_) => self.combine(Combine::Add, value),
            Op::Mul(_) => self.combine(Combine::Mul, value),
            Op::GatedActivation(op) => self.combine(Combine::Gate(gate(op.kind)?), value),
            Op::Scale(op) => self.map(Map::Scale(op.factor), value),
            Op::Softcap(op) => self.map(Map::Softcap(op.cap), value),
            Op::Activation(op) => self.map(Map::Activation(gate(op.kind)?), value),
            Op::Rope(op) => {
                let angles = self.angle_table(op)?;
                self.touch(angles);
                RowOp::Rope {
                    head_dim: op.head_dim,
                    order: op.order,
                    angles,
                    x: input(self, 0),
                    out: self.write(value),
                }
            }
            Op::SelectOutputs(_) => RowOp::Select {
                x: input(self, 0),
                out: self.write(value),
            },
            other => return Err(unsupported(other.name(), "this place in a graph")),
        };
        self.push_row_op(op);
        Ok(())
    }

    fn combine(&mut self, op: Combine, value: ValueId) -> RowOp {
        let graph = self.graph;
        let inputs = &graph.node(value).inputs;
        RowOp::Combine {
            op,
            a: self.read(inputs[0]),
            b: self.read(inputs[1]),
            out: self.write(value),
        }
    }

    fn map(&mut self, op: Map, value: ValueId) -> RowOp {
        let graph = self.graph;
        RowOp::Map {
            op,
            x: self.read(graph.node(value).inputs[0]),
            out: self.write(value),
        }
    }

    /// The table of angles for `rope`, made by the first step that needs it.
    fn angle_table(&mut self, rope: &Rope) -> Result<usize, BackendError> {
        let same = |r: &Rope| {
            let factors = |r: &Rope| r.factors.as_ref().map(|f| f.data.clone());
            r.dims == rope.dims
                && r.base == rope.base
                && r.scaling == rope.scaling
                && r.magnitude == rope.magnitude
                && factors(r) == factors(rope)
        };
        if let Some((_, buffer)) = self.angles.iter().find(|(r, _)| same(r)) {
            return Ok(*buffer);
        }
        let table = rope_table(rope)?;
        self.open_rows(Rows::Tokens);
        let out = self.new_buffer(Buffer::of::<f32>(Rows::Tokens, rope.dims));
        self.lifetimes[out].first = self.last_step();
        self.touch(out);
        self.push_row_op(RowOp::Angles { table, out });
        self.angles.push((rope.clone(), out));
        Ok(out)
    }

    /// The form of `value` that linears of this kind read, quantized by a pass over rows where that is not done yet.
    fn packed(&mut self, value: ValueId, kind: PackedKind) -> Packed {
        if let Some(packed) = self.packed.get(&(value, kind)) {
            return *packed;
        }
        let shape = self.graph.node(value).shape;
        let (rows, n) = (shape.rows, shape.features);
        if kind == PackedKind::F32 {
            return Packed::F32(self.values[&value]);
        }
        self.open_rows(rows);
        let x = self.read(value);
        let mut buffer = |b: Buffer| {
            let b = self.new_buffer(b);
            self.lifetimes[b].first = self.last_step();
            self.touch(b);
            b
        };
        let packed = Packed::Q8 {
            quants: buffer(Buffer::of::<i8>(rows, n)),
            scales: buffer(Buffer::of::<f32>(rows, n / 32)),
            sums: buffer(Buffer::of::<f32>(rows, n / 32)),
            offsets: buffer(Buffer::of::<i32>(rows, n / 32)),
            halves: buffer(Buffer::of::<i32>(rows, n / 16)),
        };
        self.push_row_op(RowOp::Quantize { x, out: packed });
        self.packed.insert((value, kind), packed);
        packed
    }

    /// The kernel for a weight, and what it reads.
    fn kernel(&self, weight: WeightId) -> Result<(PanelKernel, PackedKind), BackendError> {
        let weight = self.graph.weight(weight);
        let ty = weight.element_type();
        match (self.kernels.panel(ty), ty.codec()) {
            (Some(kernel), Some(codec)) => Ok((kernel, codec.activation())),
            _ => Err(unsupported(
                "linear",
                format!("tensor `{}` of type {}", weight.name(), ty.name()),
            )),
        }
    }

    /// Adds a part to the linear step at the end of the list, or to a new one.
    fn linear_part(
        &mut self,
        value: ValueId,
        weights: &[ValueId],
        residual: Option<ValueId>,
        kind: Option<Activation>,
    ) -> Result<(), BackendError> {
        let graph = self.graph;
        let input = graph.node(weights[0]).inputs[0];
        let rows = graph.node(value).shape.rows;
        let (mut inputs, mut kinds) = (Vec::new(), Vec::new());
        for linear in weights {
            let Op::Linear(op) = &graph.node(*linear).op else {
                return Err(unsupported("linear", "a fused value that is no linear"));
            };
            let (kernel, kind) = self.kernel(op.weight)?;
            kinds.push(kind);
            inputs.push((op, kernel, kind));
        }
        // An open linear step is continued where nothing has to be quantized first.
        let ready = kinds
            .iter()
            .all(|kind| *kind == PackedKind::F32 || self.packed.contains_key(&(input, *kind)));
        let open = matches!(self.steps.last(), Some(Step::Linear(s)) if s.input == input);
        let earlier = residual.is_none_or(|r| !self.written_by_last_step(r));
        if !(open && earlier && (ready || self.reopen_for(input, &kinds))) {
            for kind in &kinds {
                self.packed(input, *kind);
            }
            self.steps.push(Step::Linear(LinearStep {
                rows,
                input,
                parts: Vec::new(),
            }));
        }
        let mut matrices = Vec::new();
        for (op, kernel, kind) in inputs {
            let packed = match self.packed.get(&(input, kind)) {
                Some(packed) => *packed,
                None => Packed::F32(self.read(input)),
            };
            for buffer in packed.buffers() {
                self.touch(buffer);
            }
            matrices.push(Matrix {
                weight: op.weight,
                kernel,
                input: packed,
                bias: op.bias.clone(),
            });
        }
        let residual = residual.map(|r| self.read(r));
        let out = self.write(value);
        if let Some(Step::Linear(step)) = self.steps.last_mut() {
            let (first, second) = (matrices.swap_remove(0), matrices.pop());
            step.parts.push(LinearPart {
                matrix: first,
                gated: second.zip(kind),
                residual,
                out,
            });
        }
        Ok(())
    }

    /// Quantizes another form of `input` in the pass before the open linear step, if there is such a pass.
    fn reopen_for(&mut self, input: ValueId, kinds: &[PackedKind]) -> bool {
        let before = self.steps.len().checked_sub(2);
        let rows = self.graph.node(input).shape.rows;
        if !before.is_some_and(|i| matches!(&self.steps[i], Step::Rows(s) if s.rows == rows)) {
            return false;
        }
        let Some(linear) = self.steps.pop() else {
            return false;
        };
        for kind in kinds {
            self.packed(input, *kind);
        }
        self.steps.push(linear);
        true
    }

    fn written_by_last_step(&self, value: ValueId) -> bool {
        self.values
            .get(&value)
            .is_some_and(|b| self.lifetimes[*b].first == self.last_step())
    }

    fn linear(
        &mut self,
        value: ValueId,
        linear: ValueId,
        residual: Option<ValueId>,
    ) -> Result<(), BackendError> {
        self.linear_part(value, &[linear], residual, None)
    }

    fn gated(
        &mut self,
        value: ValueId,
        gate_value: ValueId,
        up: ValueId,
        kind: ActivationKind,
    ) -> Result<(), BackendError> {
        self.linear_part(value, &[gate_value, up], None, Some(gate(kind)?))
    }

    fn attention(&mut self, value: ValueId) -> Result<(), BackendError> {
        let graph = self.graph;
        let node = graph.node(value);
        let Op::Attention(op) = &node.op else {
            return Ok(());
        };
        let group = self
            .cache
            .group_of(op.layer)
            .ok_or_else(|| unsupported("attention", "a layer outside of the cache"))?;
        let layout = *self
            .layouts
            .get(op.layer.0 as usize)
            .ok_or_else(|| unsupported("attention", "a layer outside of the cache"))?;
        let attend = AttendStep::new(op, layout, group)
            .ok_or_else(|| unsupported("attention", "a window of 0 positions"))?;
        self.open_rows(Rows::Tokens);
        let [k, v] = [1, 2].map(|i| self.read(node.inputs[i]));
        self.push_row_op(RowOp::Store {
            layer: op.layer,
            group,
            layout,
            k,
            v,
        });
        self.steps.push(Step::Attend(attend));
        let q = self.read(node.inputs[0]);
        let out = self.write(value);
        // Merging long contexts is a step of its own, which keeps the buffers until then.
        self.steps.push(Step::Merge);
        self.touch(q);
        self.touch(out);
        let attend = self.steps.len() - 2;
        if let Step::Attend(step) = &mut self.steps[attend] {
            step.q = q;
            step.out = out;
        }
        Ok(())
    }
}
