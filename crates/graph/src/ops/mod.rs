//! The ops. Each file holds one: attributes, shape rule, reference.

mod activation;
mod attention;
mod binary;
mod embed;
mod gated;
mod linear;
mod norm;
mod rope;
mod scale;
mod select;
mod softcap;

pub use activation::{Activation, ActivationKind};
pub use attention::Attention;
pub use binary::{Add, Mul};
pub use embed::Embed;
pub use gated::GatedActivation;
pub use linear::Linear;
pub use norm::{Norm, NormKind};
pub use rope::{Rope, RopeOrder, RopeScaling};
pub use scale::Scale;
pub use select::SelectOutputs;
pub use softcap::Softcap;

/// Every op there is.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is documented by its attributes")]
pub enum Op {
    Embed(Embed),
    Linear(Linear),
    Norm(Norm),
    Add(Add),
    Mul(Mul),
    Scale(Scale),
    Softcap(Softcap),
    Activation(Activation),
    GatedActivation(GatedActivation),
    Rope(Rope),
    Attention(Attention),
    SelectOutputs(SelectOutputs),
}

impl Op {
    /// Name for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Embed(_) => "embed",
            Self::Linear(_) => "linear",
            Self::Norm(_) => "norm",
            Self::Add(_) => "add",
            Self::Mul(_) => "mul",
            Self::Scale(_) => "scale",
            Self::Softcap(_) => "softcap",
            Self::Activation(_) => "activation",
            Self::GatedActivation(_) => "gated activation",
            Self::Rope(_) => "rope",
            Self::Attention(_) => "attention",
            Self::SelectOutputs(_) => "select outputs",
        }
    }

    /// Whether each row of the result depends on the same row of the inputs alone.
    pub const fn is_row_wise(&self) -> bool {
        !matches!(self, Self::Attention(_) | Self::SelectOutputs(_))
    }
}
