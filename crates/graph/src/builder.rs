//! Building a graph: each method adds one op, checks its shapes and returns its value.

use crate::{
    CacheLayer, Graph, GraphError, LayerId, Node, Op, Rows, Shape, ValueId, Vector, Weight,
    WeightId,
    ops::{
        Activation, ActivationKind, Add, Attention, Embed, GatedActivation, Linear, Mul, Norm,
        NormKind, Rope, Scale, SelectOutputs, Softcap,
    },
};

/// Makes a [`Graph`].
#[derive(Default)]
pub struct GraphBuilder {
    graph: Graph,
}

type Built = Result<ValueId, GraphError>;

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph with `output` as its result.
    pub fn finish(mut self, output: ValueId) -> Graph {
        self.graph.output = Some(output);
        self.graph
    }

    /// Shape of a value.
    pub fn shape(&self, value: ValueId) -> Shape {
        self.graph.node(value).shape
    }

    fn push(&mut self, op: Op, inputs: &[ValueId], rows: Rows, features: usize) -> ValueId {
        let id = ValueId(self.graph.nodes.len() as u32);
        self.graph.nodes.push(Node {
            op,
            inputs: inputs.to_vec(),
            shape: Shape { rows, features },
        });
        id
    }

    fn weight(&mut self, weight: &Weight) -> WeightId {
        let id = WeightId(self.graph.weights.len() as u32);
        self.graph.weights.push(weight.clone());
        id
    }

    fn unary(&mut self, op: Op, x: ValueId) -> ValueId {
        let Shape { rows, features } = self.shape(x);
        self.push(op, &[x], rows, features)
    }

    fn binary(&mut self, op: Op, a: ValueId, b: ValueId) -> Built {
        let (left, right) = (self.shape(a), self.shape(b));
        if left.rows != right.rows {
            return Err(GraphError::Rows {
                op: op.name(),
                left: left.rows,
                right: right.rows,
            });
        }
        if left.features != right.features {
            return Err(GraphError::Features {
                op: op.name(),
                tensor: "second operand".to_owned(),
                found: right.features,
                expected: left.features,
            });
        }
        Ok(self.push(op, &[a, b], left.rows, left.features))
    }

    /// Rows of `table` for the batch's tokens, times `scale`: `[tokens, table.cols]`.
    pub fn embed(&mut self, table: &Weight, scale: f32) -> ValueId {
        let features = table.cols();
        let table = self.weight(table);
        self.push(
            Op::Embed(Embed { table, scale }),
            &[],
            Rows::Tokens,
            features,
        )
    }

    /// `x` times the matrix, plus the bias: `[rows of x, weight.rows]`.
    pub fn linear(&mut self, x: ValueId, weight: &Weight, bias: Option<&Vector>) -> Built {
        let Shape { rows, features } = self.shape(x);
        let out = Linear::features(weight, bias, features)?;
        let op = Linear {
            weight: self.weight(weight),
            bias: bias.cloned(),
        };
        Ok(self.push(Op::Linear(op), &[x], rows, out))
    }

    /// RMS norm in groups of the weight's length: a whole row, or each head.
    pub fn rms_norm(&mut self, x: ValueId, weight: &Vector, eps: f32) -> Built {
        self.norm(
            x,
            Norm {
                kind: NormKind::Rms,
                group: weight.len(),
                eps,
                weight: Some(weight.clone()),
                bias: None,
            },
        )
    }

    /// Any norm.
    pub fn norm(&mut self, x: ValueId, norm: Norm) -> Built {
        norm.features(self.shape(x).features)?;
        Ok(self.unary(Op::Norm(norm), x))
    }

    /// `a + b`
    pub fn add(&mut self, a: ValueId, b: ValueId) -> Built {
        self.binary(Op::Add(Add), a, b)
    }

    /// `a * b`
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> Built {
        self.binary(Op::Mul(Mul), a, b)
    }

    /// `x * factor`
    pub fn scale(&mut self, x: ValueId, factor: f32) -> ValueId {
        self.unary(Op::Scale(Scale { factor }), x)
    }

    /// `cap * tanh(x / cap)`
    pub fn softcap(&mut self, x: ValueId, cap: f32) -> ValueId {
        self.unary(Op::Softcap(Softcap { cap }), x)
    }

    /// A nonlinear function of every element.
    pub fn activation(&mut self, x: ValueId, kind: ActivationKind) -> ValueId {
        self.unary(Op::Activation(Activation { kind }), x)
    }

    /// `activation(gate) * up`
    pub fn gated(&mut self, gate: ValueId, up: ValueId, kind: ActivationKind) -> Built {
        self.binary(Op::GatedActivation(GatedActivation { kind }), gate, up)
    }

    /// Rotary positions on every head of `x`, which has a row per token.
    pub fn rope(&mut self, x: ValueId, rope: &Rope) -> Built {
        self.need_tokens("rope", x)?;
        rope.features(self.shape(x).features)?;
        Ok(self.unary(Op::Rope(rope.clone()), x))
    }

    /// Attention of a new layer, which gets the next [`LayerId`]; see [`Attention`].
    pub fn attention(
        &mut self,
        [q, k, v]: [ValueId; 3],
        heads: usize,
        cache: CacheLayer,
        scale: f32,
        softcap: Option<f32>,
    ) -> Built {
        for x in [q, k, v] {
            self.need_tokens("attention", x)?;
        }
        let op = Attention {
            layer: LayerId(self.graph.cache_layers.len() as u32),
            heads,
            cache,
            scale,
            softcap,
        };
        let [fq, fk, fv] = [q, k, v].map(|x| self.shape(x).features);
        let features = op.features(fq, fk, fv)?;
        self.graph.cache_layers.push(cache);
        Ok(self.push(Op::Attention(op), &[q, k, v], Rows::Tokens, features))
    }

    /// The rows of `x` whose output is wanted.
    pub fn select_outputs(&mut self, x: ValueId) -> Built {
        self.need_tokens("select outputs", x)?;
        let features = self.shape(x).features;
        Ok(self.push(
            Op::SelectOutputs(SelectOutputs),
            &[x],
            Rows::Outputs,
            features,
        ))
    }

    fn need_tokens(&self, op: &'static str, x: ValueId) -> Result<(), GraphError> {
        match self.shape(x).rows {
            Rows::Tokens => Ok(()),
            rows @ Rows::Outputs => Err(GraphError::Rows {
                op,
                left: rows,
                right: Rows::Tokens,
            }),
        }
    }
}
