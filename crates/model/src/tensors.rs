//! The table of tensors of an architecture, from which files are checked and, by the converter, made.

/// One dimension of a tensor in terms of the hyper-parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Size {
    /// Entries of the vocabulary.
    Vocabulary,
    /// `embedding_length`
    Embedding,
    /// `feed_forward_length`
    FeedForward,
    /// `head_count * key_length`
    Queries,
    /// `head_count_kv * key_length`
    Keys,
    /// `head_count_kv * value_length`
    Values,
    /// Queries, keys and values one after another.
    FusedQkv,
    /// `head_count * value_length`
    AttentionOut,
    /// `key_length`
    KeyDim,
    /// Half of the rotated dimensions.
    RopePairs,
    /// Anything.
    Any,
}

/// What the converter does to a Hugging Face tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transform {
    /// Nothing.
    None,
    /// Rows of query heads from half-split to adjacent-pair rotary order.
    PermuteQueries,
    /// Rows of key heads from half-split to adjacent-pair rotary order.
    PermuteKeys,
    /// One is added to every element (norms that multiply by `1 + weight`).
    AddOne,
}

/// One row of the table. `{i}` in a name stands for the layer.
#[derive(Clone, Copy, Debug)]
pub struct TensorSpec {
    /// Name in GGUF files.
    pub gguf: &'static str,
    /// Name in Hugging Face folders.
    pub hugging_face: &'static str,
    /// Row-major shape: `[rows, cols]` or `[len]`.
    pub shape: &'static [Size],
    /// What the converter does to it.
    pub transform: Transform,
    /// Whether a file must have it.
    pub required: bool,
}

impl TensorSpec {
    /// With a transform for the converter.
    #[must_use]
    pub const fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// The layer, if `name` is this tensor of some layer (`Some(None)` for a tensor outside of layers).
    pub fn matches(&self, name: &str) -> Option<Option<usize>> {
        match self.gguf.split_once("{i}") {
            None => (self.gguf == name).then_some(None),
            Some((head, tail)) => {
                let number = name.strip_prefix(head)?.strip_suffix(tail)?;
                let canonical = !number.is_empty() && (number == "0" || !number.starts_with('0'));
                let digits = number.bytes().all(|b| b.is_ascii_digit());
                (canonical && digits)
                    .then(|| number.parse().ok())?
                    .map(Some)
            }
        }
    }

    /// Name in the GGUF file for `layer`.
    pub fn name(&self, layer: Option<usize>) -> String {
        layer.map_or_else(
            || self.gguf.to_owned(),
            |i| self.gguf.replace("{i}", &i.to_string()),
        )
    }

    /// Whether there is one per layer.
    pub fn per_layer(&self) -> bool {
        self.gguf.contains("{i}")
    }
}

/// A tensor that every file has.
pub const fn required(
    gguf: &'static str,
    hugging_face: &'static str,
    shape: &'static [Size],
) -> TensorSpec {
    TensorSpec {
        gguf,
        hugging_face,
        shape,
        transform: Transform::None,
        required: true,
    }
}

/// A tensor that some files have.
pub const fn optional(
    gguf: &'static str,
    hugging_face: &'static str,
    shape: &'static [Size],
) -> TensorSpec {
    TensorSpec {
        gguf,
        hugging_face,
        shape,
        transform: Transform::None,
        required: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_only_its_own_template_and_a_canonical_layer_number() {
        let spec = required("blk.{i}.attn_q.weight", "", &[]);
        for (name, expected) in [
            ("blk.0.attn_q.weight", Some(Some(0))),
            ("blk.31.attn_q.weight", Some(Some(31))),
            ("blk.01.attn_q.weight", None),
            ("blk..attn_q.weight", None),
            ("blk.+1.attn_q.weight", None),
            ("blk.99999999999999999999.attn_q.weight", None),
            ("blk.1.attn_q.bias", None),
        ] {
            assert_eq!(spec.matches(name), expected, "{name}");
        }
        assert_eq!(
            required("output.weight", "", &[]).matches("output.weight"),
            Some(None)
        );
        assert_eq!(spec.name(Some(7)), "blk.7.attn_q.weight");
    }
}
