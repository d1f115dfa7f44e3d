//! Gated activation (Shazeer, 2020: "GLU variants improve transformer").

use super::ActivationKind;

/// `activation(gate) * up`; inputs: gate, up.
#[derive(Clone, Copy, Debug)]
pub struct GatedActivation {
    /// The function on the gate.
    pub kind: ActivationKind,
}

impl GatedActivation {
    pub(crate) fn reference(self, gate: &[f64], up: &[f64]) -> Vec<f64> {
        gate.iter()
            .zip(up)
            .map(|(g, u)| self.kind.reference(*g) * u)
            .collect()
    }
}
