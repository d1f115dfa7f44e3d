//! The kernels of one set, as safe calls.
//!
//! A [`Kernels`] exists only for a set that this CPU can run, which is what the kernels' functions ask of their caller.

use super::{
    Set,
    attention::{Attention, AttentionKernels, Output, Run, Task, kernels as attention_kernels},
    dense,
    elementwise::{Activation, Combine, CombineFn, Map, MapFn, combine, combine_to, map, map_to},
    kv::{KvLayout, StoreFn, store_fn},
    linear::{self, Activations, PANEL_ROWS, Panel, PanelFn},
    norm::{Norm, NormFn, layer_norm, rms_norm},
    quantize::{QuantizeFn, quantize},
    rope::{RopeFn, rope},
};
use puna_graph::{Weight, ops};
use puna_quant::{Codec, ElementType, Q8RowMut};

/// See the file's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    set: Set,
    rms_norm: NormFn,
    layer_norm: NormFn,
    map: MapFn,
    combine: CombineFn,
    quantize: QuantizeFn,
    attention: AttentionKernels,
    store: StoreFn,
    rope: RopeFn,
}

// SAFETY of the calls below, where nothing else is said: `new` has checked that the CPU has the features of the set, which is all that
// these kernels ask for.
impl Kernels {
    /// The kernels of `set`, if this CPU can run them.
    pub(crate) fn new(set: Set) -> Option<Self> {
        set.is_available().then(|| Self {
            set,
            rms_norm: rms_norm(set),
            layer_norm: layer_norm(set),
            map: map(set),
            combine: combine(set),
            quantize: quantize(set),
            attention: attention_kernels(set),
            store: store_fn(set),
            rope: rope(set),
        })
    }

    /// The best kernels for this CPU.
    pub(crate) fn best() -> Self {
        let portable = || {
            Self::new(Set::Portable)
                .unwrap_or_else(|| unreachable!("portable kernels run anywhere"))
        };
        Self::new(Set::best()).unwrap_or_else(portable)
    }

    /// Which set these are.
    pub(crate) fn set(&self) -> Set {
        self.set
    }

    /// The panel kernel of a weight type.
    pub(crate) fn panel(&self, element_type: ElementType) -> Option<PanelKernel> {
        let quantized = linear::panel_fn(self.set, element_type).map(|f| (f, true));
        let dense = || dense::panel_fn(self.set, element_type).map(|f| (f, false));
        let (kernel, pairs) = quantized.or_else(dense)?;
        Some(PanelKernel { kernel, pairs })
    }

    /// Row `token` of an embedding table, decoded by its type's `codec`, times `scale`.
    ///
    /// # Panics
    /// The table has no such row, or `out` has another length.
    pub(crate) fn embed(
        &self,
        table: &Weight,
        codec: &dyn Codec,
        token: u32,
        scale: f32,
        out: &mut [f32],
    ) {
        let start = token as usize * table.row_bytes();
        let row = &table.bytes()[start..start + table.row_bytes()];
        if let Err(error) = codec.dequantize(row, out) {
            panic!("row {token} of tensor `{}`: {error}", table.name());
        }
        if scale != 1.0 {
            // SAFETY: see above.
            unsafe { (self.map)(Map::Scale(scale), out) }
        }
    }

    pub(crate) fn norm(&self, norm: &ops::Norm, x: &[f32], out: &mut [f32]) {
        let parameters = Norm {
            group: norm.group,
            weight: norm.weight.as_ref().map(|v| &*v.data),
            bias: norm.bias.as_ref().map(|v| &*v.data),
            eps: norm.eps,
        };
        let kernel = match norm.kind {
            ops::NormKind::Rms => self.rms_norm,
            ops::NormKind::Layer => self.layer_norm,
        };
        // SAFETY: see above.
        unsafe { kernel(&parameters, x, out) }
    }

    /// `out = op(x)`
    pub(crate) fn map(&self, op: Map, x: &[f32], out: &mut [f32]) {
        // SAFETY: see above.
        unsafe { map_to(self.map, op, x, out) }
    }

    /// `out = op(a, b)`
    pub(crate) fn combine(&self, op: Combine, a: &[f32], b: &[f32], out: &mut [f32]) {
        // SAFETY: see above.
        unsafe { combine_to(self.combine, op, a, b, out) }
    }

    /// `a = op(a, b)`, `a` holding any number of rows as long as `b`.
    pub(crate) fn combine_in_place(&self, op: Combine, a: &mut [f32], b: &[f32]) {
        // SAFETY: see above.
        unsafe { (self.combine)(op, a, b) }
    }

    /// Rotates the pairs of each head of `x`; `angles` holds their cosines, then their sines.
    pub(crate) fn rope(
        &self,
        order: ops::RopeOrder,
        head_dim: usize,
        angles: &[f32],
        x: &[f32],
        out: &mut [f32],
    ) {
        let (cos, sin) = angles.split_at(angles.len() / 2);
        out.copy_from_slice(x);
        // SAFETY: see above.
        unsafe { (self.rope)(order, out, head_dim, cos, sin) }
    }

    /// Quantizes whole blocks.
    pub(crate) fn quantize_q8(&self, x: &[f32], to: &mut Q8RowMut<'_>) {
        // SAFETY: see above.
        unsafe { (self.quantize)(x, to) }
    }

    /// Writes keys and values of one position into a page.
    ///
    /// # Safety
    /// `page` is a page of the layout, and nobody else uses this position of it meanwhile.
    pub(crate) unsafe fn store(
        &self,
        layout: &KvLayout,
        page: *mut u8,
        position: usize,
        k: &[f32],
        v: &[f32],
    ) {
        // SAFETY: the features as above, the rest by the caller.
        unsafe { (self.store)(layout, page, 0..layout.kv_heads(), position, k, v) }
    }

    /// Attention of a whole task.
    ///
    /// # Safety
    /// `out` points to the rows of the run, of which nobody else uses the task's queries and heads meanwhile.
    pub(crate) unsafe fn attend(
        &self,
        attention: &Attention<'_>,
        run: &Run<'_>,
        task: &Task,
        scratch: &mut [f32],
        out: Output,
    ) {
        // SAFETY: the features as above, the rest by the caller.
        unsafe { (self.attention.attend)(attention, run, task, scratch, out) }
    }

    /// One segment of a task.
    pub(crate) fn attend_segment(
        &self,
        attention: &Attention<'_>,
        run: &Run<'_>,
        task: &Task,
        segment: usize,
        scratch: &mut [f32],
        partial: &mut [f32],
    ) {
        // SAFETY: see above.
        unsafe { (self.attention.segment)(attention, run, task, segment, scratch, partial) }
    }

    /// Puts the segments of a task together.
    ///
    /// # Safety
    /// As for [`Self::attend`].
    pub(crate) unsafe fn attend_merge(
        &self,
        attention: &Attention<'_>,
        task: &Task,
        partials: &mut [f32],
        out: Output,
    ) {
        // SAFETY: the features as above, the rest by the caller.
        unsafe { (self.attention.merge)(attention, task, partials, out) }
    }
}

/// A panel kernel that this CPU can run: only [`Kernels::panel`] makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PanelKernel {
    kernel: PanelFn,
    /// Whether it takes two panels at once.
    pairs: bool,
}

impl PanelKernel {
    /// Multiplies up to two panels: `[panels, tokens, 16]`.
    pub(crate) fn multiply(self, panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
        // SAFETY (both calls): as for the calls of `Kernels`.
        if self.pairs {
            // SAFETY: see above.
            return unsafe { (self.kernel)(panel, x, out) };
        }
        let outputs = out.chunks_mut(x.tokens() * PANEL_ROWS);
        for (panel, out) in panel.halves().into_iter().flatten().zip(outputs) {
            // SAFETY: see above.
            unsafe { (self.kernel)(&panel, x, out) };
        }
    }
}

/// The kernels' name of an activation.
pub(crate) fn activation(kind: ops::ActivationKind) -> Option<Activation> {
    Some(match kind {
        ops::ActivationKind::Silu => Activation::Silu,
        ops::ActivationKind::GeluTanh => Activation::Gelu,
        ops::ActivationKind::Relu => Activation::Relu,
        _ => return None,
    })
}
