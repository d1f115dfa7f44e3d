//! Roles of tokens that the metadata does not name: found by the texts that the field uses.

use crate::TokenId;
use crate::texts::TextIndex;
use crate::vocabulary::{Model, SpecialIds, TokenKind, Vocabulary};

const EOT: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];
const EOM: &[&str] = &["<|eom_id|>"];
const FIM_PREFIX: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
const FIM_SUFFIX: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
const FIM_MIDDLE: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];
const FIM_PAD: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const FIM_REPOSITORY: &[&str] = &[
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
];
const FIM_SEPARATOR: &[&str] = &["<|file_sep|>"];

/// Texts that end a generation wherever they occur in a vocabulary.
const END_OF_GENERATION: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Fills in the ids that a model has when its metadata is silent.
pub(crate) fn apply_defaults(vocabulary: &mut Vocabulary, index: &TextIndex) {
    let len = vocabulary.tokens.len();
    let in_range = |id: u32| ((id as usize) < len).then_some(TokenId(id));
    let by_text = |text: &str, id: u32| {
        let found = index.get(&vocabulary.tokens, text.as_bytes()).map(TokenId);
        found.or_else(|| in_range(id))
    };
    let unknown_kind = || {
        let kinds = vocabulary.kinds.iter();
        (0..)
            .map(TokenId)
            .zip(kinds)
            .find(|(_, kind)| **kind == TokenKind::Unknown)
    };
    let defaults = match vocabulary.model {
        Model::SentencePiece => SpecialIds {
            unk: in_range(0),
            bos: in_range(1),
            eos: in_range(2),
            ..SpecialIds::default()
        },
        // llama.cpp takes 11 whatever it is. That is right for the files that rely on it, and a comma elsewhere.
        Model::Bpe if vocabulary.tokens.get(11) == Some(b"<|endoftext|>") => SpecialIds {
            bos: in_range(11),
            eos: in_range(11),
            ..SpecialIds::default()
        },
        Model::Bpe | Model::WhitespaceBpe | Model::HybridDna | Model::Rwkv | Model::None => {
            SpecialIds::default()
        }
        Model::WordPiece => SpecialIds {
            bos: by_text("[CLS]", 101),
            sep: by_text("[SEP]", 102),
            unk: by_text("[UNK]", 100),
            mask: by_text("[MASK]", 103),
            pad: by_text("[PAD]", 0),
            ..SpecialIds::default()
        },
        Model::Unigram => SpecialIds {
            eos: in_range(1),
            unk: unknown_kind().map(|(id, _)| id).or(in_range(2)),
            pad: in_range(0),
            ..SpecialIds::default()
        },
        Model::Plamo2 => SpecialIds {
            unk: in_range(0),
            bos: in_range(1),
            eos: in_range(2),
            pad: in_range(3),
            ..SpecialIds::default()
        },
    };
    let special = &mut vocabulary.special;
    special.bos = special.bos.or(defaults.bos);
    special.eos = special.eos.or(defaults.eos);
    special.unk = special.unk.or(defaults.unk);
    special.sep = special.sep.or(defaults.sep);
    special.pad = special.pad.or(defaults.pad);
    special.mask = special.mask.or(defaults.mask);
}

/// Finds the roles that are still open by token text, and makes control tokens of what is found: such a text must not come
/// out of a user's words. Returns the tokens that end a generation, ascending.
pub(crate) fn find_roles(vocabulary: &mut Vocabulary, index: &TextIndex) -> Vec<TokenId> {
    let mut special = vocabulary.special;
    let SpecialIds {
        eot,
        eom,
        fim_prefix,
        fim_suffix,
        fim_middle,
        fim_pad,
        fim_repository,
        fim_separator,
        ..
    } = &mut special;
    let roles = [
        (eot, EOT),
        (eom, EOM),
        (fim_prefix, FIM_PREFIX),
        (fim_suffix, FIM_SUFFIX),
        (fim_middle, FIM_MIDDLE),
        (fim_pad, FIM_PAD),
        (fim_repository, FIM_REPOSITORY),
        (fim_separator, FIM_SEPARATOR),
    ];
    for (role, texts) in roles {
        if role.is_none() {
            *role = texts
                .iter()
                .find_map(|text| make_control(vocabulary, index, text));
        }
    }
    vocabulary.special = special;

    let mut ends: Vec<TokenId> = Vec::new();
    for text in END_OF_GENERATION {
        if !is_plain_markup(vocabulary, index, text) {
            ends.extend(make_control(vocabulary, index, text));
        }
    }
    ends.extend(
        [
            special.fim_pad,
            special.fim_repository,
            special.fim_separator,
            special.eos,
            special.eot,
            special.eom,
        ]
        .into_iter()
        .flatten(),
    );
    drop_exceptions(vocabulary, index, &mut ends);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// `<|end|>` ends a part of an answer, not the answer, where harmony's (gpt-oss) or Solar's markers exist; `</s>` is plain text
/// in Gemma 4.
fn drop_exceptions(vocabulary: &Vocabulary, index: &TextIndex, ends: &mut Vec<TokenId>) {
    let find = |text: &str| index.get(&vocabulary.tokens, text.as_bytes()).map(TokenId);
    let has = |text: &str| find(text).is_some();
    let call = has("<|call|>") || has("<|calls|>");
    let mut drop = |text: &str| {
        let dropped = find(text);
        ends.retain(|&id| Some(id) != dropped);
    };
    if call && (has("<|return|>") || has("<|flush|>")) {
        drop("<|end|>");
    }
    if has("<|tool_response>") {
        drop("</s>");
    }
}

/// `</s>` is also HTML, and an ordinary token of Qwen 2: where the model has another EOS, the normal token is text.
fn is_plain_markup(vocabulary: &Vocabulary, index: &TextIndex, text: &str) -> bool {
    if text != "</s>" {
        return false;
    }
    let id = index.get(&vocabulary.tokens, text.as_bytes()).map(TokenId);
    let eos = vocabulary.special.eos;
    id.is_some_and(|id| {
        vocabulary.kind(id) == TokenKind::Normal && eos.is_some_and(|eos| eos != id)
    })
}

fn make_control(vocabulary: &mut Vocabulary, index: &TextIndex, text: &str) -> Option<TokenId> {
    let id = TokenId(index.get(&vocabulary.tokens, text.as_bytes())?);
    if let Some(kind) = vocabulary.kinds.get_mut(id.index()) {
        *kind = TokenKind::Control;
    }
    Some(id)
}
