//! Writes a [`Vocabulary`] as the `tokenizer.*` keys of a GGUF file.

use puna_gguf::{Array, StringArray, Value};

use crate::from_gguf::GEMMA4;
use crate::texts::Texts;
use crate::vocabulary::{Model, TokenKind, Vocabulary};

impl TokenKind {
    /// The number of the kind in a file.
    pub const fn number(self) -> i32 {
        match self {
            Self::Normal => 1,
            Self::Unknown => 2,
            Self::Control => 3,
            Self::UserDefined => 4,
            Self::Unused => 5,
            Self::Byte => 6,
        }
    }
}

impl Vocabulary {
    /// The keys of a GGUF file that say what this vocabulary is, with their values. [`Vocabulary::from_gguf`] reads the same
    /// vocabulary from them, except for `special_tokens_take_spaces_after`, which has no key.
    pub fn to_gguf(&self) -> Vec<(&'static str, Value)> {
        let mut keys: Vec<(&'static str, Value)> = Vec::new();
        let is_gemma4 = self.model == Model::Bpe && self.pre_tokenizer.as_deref() == Some(GEMMA4);
        let model = if is_gemma4 { GEMMA4 } else { self.model.name() };
        keys.push(("tokenizer.ggml.model", model.into()));
        if self.model == Model::None {
            return keys;
        }
        if let Some(pre) = &self.pre_tokenizer {
            keys.push(("tokenizer.ggml.pre", pre.as_str().into()));
        }
        keys.push(("tokenizer.ggml.tokens", strings(&self.tokens)));
        if !self.scores.is_empty() {
            keys.push(("tokenizer.ggml.scores", array(&self.scores[..])));
        }
        if !self.kinds.is_empty() {
            let kinds: Vec<i32> = self.kinds.iter().map(|kind| kind.number()).collect();
            keys.push(("tokenizer.ggml.token_type", array(&kinds[..])));
        }
        if self.model.has_merges() {
            keys.push(("tokenizer.ggml.merges", strings(&self.merges)));
        }
        for (key, id) in self.special.by_key() {
            keys.extend(id.map(|id| (key, id.0.into())));
        }
        if self.model == Model::WordPiece {
            let cls = self.special.bos;
            keys.extend(cls.map(|id| ("tokenizer.ggml.cls_token_id", id.0.into())));
        }
        let flags = [
            ("tokenizer.ggml.add_bos_token", self.add_bos),
            ("tokenizer.ggml.add_eos_token", self.add_eos),
            ("tokenizer.ggml.add_sep_token", self.add_sep),
            ("tokenizer.ggml.add_space_prefix", self.add_space_prefix),
            (
                "tokenizer.ggml.remove_extra_whitespaces",
                self.remove_extra_whitespaces,
            ),
            ("tokenizer.ggml.normalizer.lowercase", self.lowercase),
            (
                "tokenizer.ggml.normalizer.strip_accents",
                self.strip_accents,
            ),
        ];
        for (key, flag) in flags {
            keys.extend(flag.map(|flag| (key, flag.into())));
        }
        if !self.precompiled_charsmap.is_empty() {
            let bytes = array(&self.precompiled_charsmap[..]);
            keys.push(("tokenizer.ggml.precompiled_charsmap", bytes));
        }
        keys
    }
}

fn array(values: impl Into<Array>) -> Value {
    Value::Array(values.into())
}

fn strings(texts: &Texts) -> Value {
    texts.iter().collect::<StringArray>().into()
}
