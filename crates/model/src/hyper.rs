//! Hyper-parameters that most architectures share, read and checked from the metadata.

use crate::ModelError;
use puna_gguf::Metadata;
use puna_graph::{
    Vector,
    ops::{Rope, RopeOrder, RopeScaling},
};

/// Most layers of a model; guards against allocating for a damaged count.
const MAX_LAYERS: u64 = 1024;
/// Largest width, head count or length of anything.
const MAX_SIZE: u64 = 1 << 24;

/// Metadata seen through an architecture's prefix: `attention.head_count` means `llama.attention.head_count`.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'a str,
}

impl<'a> Keys<'a> {
    /// The keys of architecture `prefix`.
    pub fn new(metadata: &'a Metadata, prefix: &'a str) -> Self {
        Self { metadata, prefix }
    }

    /// All metadata.
    pub fn metadata(&self) -> &'a Metadata {
        self.metadata
    }

    /// The full name of a key.
    pub fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn invalid(
        &self,
        key: &str,
        found: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> ModelError {
        ModelError::InvalidKey {
            key: self.full(key),
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// A size, zero standing for absent as some writers do.
    pub fn size(&self, key: &str) -> Result<Option<usize>, ModelError> {
        match self.metadata.u64(&self.full(key))? {
            None | Some(0) => Ok(None),
            Some(n) if n > MAX_SIZE => Err(self.invalid(key, n, format!("at most {MAX_SIZE}"))),
            Some(n) => Ok(Some(n as usize)),
        }
    }

    /// A size that must be there and positive.
    pub fn required_size(&self, key: &str) -> Result<usize, ModelError> {
        match (self.size(key)?, self.metadata.get(&self.full(key))) {
            (Some(n), _) => Ok(n),
            (None, Some(_)) => Err(self.invalid(key, 0, "a positive number")),
            (None, None) => Err(ModelError::MissingKey {
                key: self.full(key),
            }),
        }
    }

    /// A float, if there and finite.
    pub fn float(&self, key: &str) -> Result<Option<f32>, ModelError> {
        match self.metadata.f32(&self.full(key))? {
            Some(x) if !x.is_finite() => Err(self.invalid(key, x, "a finite number")),
            x => Ok(x),
        }
    }

    /// A float, zero standing for absent.
    pub fn nonzero_float(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.float(key)?.filter(|x| *x != 0.0))
    }

    /// A float above zero that `fits`, zero standing for absent; `expected` says in words what fits.
    pub fn positive(
        &self,
        key: &str,
        fits: impl FnOnce(f32) -> bool,
        expected: &str,
    ) -> Result<Option<f32>, ModelError> {
        match self.nonzero_float(key)? {
            Some(x) if x < 0.0 || !fits(x) => Err(self.invalid(key, x, expected)),
            x => Ok(x),
        }
    }

    /// The base frequency of rotary positions; at most 1 would turn fast dimensions faster than any position can tell.
    pub fn rope_base(&self, key: &str) -> Result<f32, ModelError> {
        let base = self.positive(key, |x| x > 1.0, "a number above 1")?;
        Ok(base.unwrap_or(10_000.0))
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata.str(&self.full(key))?)
    }

    /// One size per layer, given as one number for all or as an array.
    pub fn per_layer(&self, key: &str, layers: usize) -> Result<Option<Vec<usize>>, ModelError> {
        let full = self.full(key);
        if !matches!(self.metadata.get(&full), Some(puna_gguf::Value::Array(_))) {
            return Ok(self.size(key)?.map(|n| vec![n; layers]));
        }
        let Some(values) = self.metadata.integers(&full)? else {
            return Ok(None);
        };
        if values.len() != layers {
            return Err(self.invalid(
                key,
                format!("{} values", values.len()),
                format!("{layers}, one per layer"),
            ));
        }
        let sizes = values.iter().map(|n| match u64::try_from(*n) {
            Ok(n @ 1..=MAX_SIZE) => Ok(n as usize),
            _ => Err(self.invalid(key, n, format!("1 to {MAX_SIZE}"))),
        });
        sizes.collect::<Result<_, _>>().map(Some)
    }
}

/// Hyper-parameters of a transformer decoder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HyperParameters {
    /// Context of the training, in tokens.
    pub context_length: usize,
    /// Width of the residual stream.
    pub embedding_length: usize,
    /// Layers.
    pub block_count: usize,
    /// Width of the feed-forward network, by layer.
    pub feed_forward_length: Vec<usize>,
    /// Query heads, by layer.
    pub head_count: Vec<usize>,
    /// Key and value heads, by layer.
    pub head_count_kv: Vec<usize>,
    /// Elements of a query or key of one head.
    pub key_length: usize,
    /// Elements of a value of one head.
    pub value_length: usize,
    /// Elements of a head that are rotated.
    pub rope_dims: usize,
    /// Entries of the vocabulary.
    pub vocabulary: usize,
}

impl HyperParameters {
    /// Reads the keys that every architecture has. `vocabulary` is the number of rows of the token embedding.
    pub fn read(keys: &Keys<'_>, vocabulary: usize) -> Result<Self, ModelError> {
        const KV: &str = "attention.head_count_kv";
        let block_count = keys.required_size("block_count")?;
        if block_count as u64 > MAX_LAYERS {
            return Err(keys.invalid("block_count", block_count, format!("at most {MAX_LAYERS}")));
        }
        let embedding_length = keys.required_size("embedding_length")?;
        let per_layer = |key: &str| keys.per_layer(key, block_count);
        let missing = |key: &str| match keys.metadata.get(&keys.full(key)) {
            Some(_) => keys.invalid(key, 0, "a positive number"),
            None => ModelError::MissingKey {
                key: keys.full(key),
            },
        };
        let head_count =
            per_layer("attention.head_count")?.ok_or_else(|| missing("attention.head_count"))?;
        let head_count_kv = match per_layer(KV)? {
            Some(counts) => counts,
            None if keys.metadata.contains(&keys.full(KV)) => return Err(missing(KV)),
            None => head_count.clone(),
        };
        for (layer, (q, kv)) in head_count.iter().zip(&head_count_kv).enumerate() {
            if q % kv != 0 {
                let expected = format!("a divisor of the {q} heads of layer {layer}");
                return Err(keys.invalid(KV, kv, expected));
            }
        }
        let head_dim = embedding_length / head_count[0];
        let key_length = keys.size("attention.key_length")?.unwrap_or(head_dim);
        let value_length = keys.size("attention.value_length")?.unwrap_or(head_dim);
        if key_length == 0 || value_length == 0 {
            return Err(keys.invalid(
                "attention.head_count",
                head_count[0],
                format!("at most {embedding_length}"),
            ));
        }
        let rope_dims = match keys.size("rope.dimension_count")? {
            Some(n) if n > key_length || n % 2 != 0 => {
                let expected = format!("an even number up to the {key_length} elements of a head");
                return Err(keys.invalid("rope.dimension_count", n, expected));
            }
            given => given.unwrap_or(key_length),
        };
        Ok(Self {
            context_length: keys.required_size("context_length")?,
            embedding_length,
            block_count,
            feed_forward_length: per_layer("feed_forward_length")?
                .ok_or_else(|| missing("feed_forward_length"))?,
            head_count,
            head_count_kv,
            key_length,
            value_length,
            rope_dims,
            vocabulary,
        })
    }

    /// Rotary positions as the metadata describe them, with base frequency and scaling from the plain keys.
    pub fn rope(
        &self,
        keys: &Keys<'_>,
        order: RopeOrder,
        factors: Option<Vector>,
    ) -> Result<Rope, ModelError> {
        let base = keys.rope_base("rope.freq_base")?;
        Ok(Rope {
            head_dim: self.key_length,
            dims: self.rope_dims,
            order,
            base,
            scaling: self.rope_scaling(keys)?,
            factors,
            magnitude: attn_factor(keys)?,
        })
    }

    fn rope_scaling(&self, keys: &Keys<'_>) -> Result<RopeScaling, ModelError> {
        let factor_of = |key| keys.positive(key, |x| x >= 1.0, "a number of at least 1");
        let factor = match factor_of("rope.scaling.factor")? {
            Some(f) => f,
            None => factor_of("rope.scale_linear")?.unwrap_or(1.0),
        };
        Ok(match keys.str("rope.scaling.type")?.unwrap_or("linear") {
            "linear" if factor != 1.0 => RopeScaling::Linear { factor },
            // Long-RoPE puts all of its scaling into the per-dimension factors.
            "none" | "linear" | "longrope" => RopeScaling::None,
            "yarn" => self.yarn(keys, factor)?,
            other => {
                return Err(keys.invalid(
                    "rope.scaling.type",
                    other,
                    "none, linear, yarn or longrope",
                ));
            }
        })
    }

    fn yarn(&self, keys: &Keys<'_>, factor: f32) -> Result<RopeScaling, ModelError> {
        const LOG: &str = "rope.scaling.yarn_log_multiplier";
        const EXT: &str = "rope.scaling.yarn_ext_factor";
        if let Some(multiplier) = keys.nonzero_float(LOG)? {
            // It changes the magnitude, and with some architectures the attention scale too; ignoring it would be wrong silently.
            let key = keys.full(LOG);
            return Err(ModelError::Unsupported {
                what: format!("YaRN with `{key}` ({multiplier})"),
            });
        }
        let ext_factor = match keys.float(EXT)? {
            Some(x) if x > 1.0 => {
                return Err(keys.invalid(EXT, x, "0 to 1, or less than 0 for 1"));
            }
            given => given.filter(|x| *x >= 0.0).unwrap_or(1.0),
        };
        let beta = |key| keys.positive(key, |_| true, "a positive number");
        Ok(RopeScaling::Yarn {
            factor,
            original_context: keys
                .size("rope.scaling.original_context_length")?
                .unwrap_or(self.context_length) as u32,
            ext_factor,
            // The factor of the metadata holds with and without YaRN.
            attn_factor: 1.0,
            beta_fast: beta("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            beta_slow: beta("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
        })
    }
}

/// Factor on rotated queries and keys, which holds for every type of scaling.
fn attn_factor(keys: &Keys<'_>) -> Result<f32, ModelError> {
    const KEY: &str = "rope.scaling.attn_factor";
    let factor = keys.positive(KEY, |x| x <= 1000.0, "a positive number, at most 1000")?;
    Ok(factor.unwrap_or(1.0))
}
