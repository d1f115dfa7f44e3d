//! Which token has which role, and which are added to texts.

use serde_json::Value;

use super::tokenizer_json::{steps, type_of};
use crate::TokenId;
use crate::texts::TextIndex;
use crate::vocabulary::{Model, Vocabulary};

/// Where roles are found.
pub(super) struct Sources<'j> {
    pub(super) tokenizer_config: &'j Value,
    pub(super) special_map: &'j Value,
    pub(super) config: &'j Value,
    pub(super) tokenizer_json: &'j Value,
}

/// Fills in the special ids and what is added to texts.
pub(super) fn read(vocabulary: &mut Vocabulary, sources: &Sources<'_>) {
    let mut index = TextIndex::with_capacity(vocabulary.tokens.len());
    for number in 0..vocabulary.tokens.len() {
        index.insert(&vocabulary.tokens, number);
    }
    let find = |text: &str| index.get(&vocabulary.tokens, text.as_bytes()).map(TokenId);
    let role = |name: &str| {
        let key = format!("{name}_token");
        let by_text = [sources.tokenizer_config, sources.special_map]
            .into_iter()
            .find_map(|source| text_of(&source[&key]).and_then(find));
        by_text.or_else(|| {
            let id = &sources.config[format!("{name}_token_id")];
            // Some have a list of tokens that end a text; the first is the one meant.
            let id = id.as_u64().or_else(|| id[0].as_u64())?;
            let id = u32::try_from(id).ok()?;
            ((id as usize) < vocabulary.tokens.len()).then_some(TokenId(id))
        })
    };
    let mut special = vocabulary.special;
    let cls = role("cls");
    special.bos = role("bos").or(special.bos);
    special.eos = role("eos").or(special.eos);
    special.unk = role("unk").or(special.unk);
    special.sep = role("sep").or(special.sep);
    special.pad = role("pad").or(special.pad);
    special.mask = role("mask").or(special.mask);
    if vocabulary.model == Model::WordPiece {
        special.bos = cls.or(special.bos);
    }
    let template = Template::read(sources.tokenizer_json);
    let ends = |text: Option<&str>, ids: [Option<TokenId>; 2]| {
        let id = text.and_then(find);
        id.is_some() && ids.contains(&id)
    };
    let flag = |key: &str| sources.tokenizer_config[key].as_bool();
    if let Some(template) = template {
        let first = ends(template.first, [special.bos, cls]);
        let last = ends(template.last, [special.eos, special.sep]);
        vocabulary.add_bos = Some(flag("add_bos_token").unwrap_or(first));
        vocabulary.add_eos = Some(flag("add_eos_token").unwrap_or(last));
        if first && special.bos.is_none() {
            special.bos = cls;
        }
        if last && special.eos.is_none() {
            special.eos = special.sep;
        }
    } else {
        vocabulary.add_bos = flag("add_bos_token").or(vocabulary.add_bos);
        vocabulary.add_eos = flag("add_eos_token").or(vocabulary.add_eos);
        if vocabulary.model == Model::Bpe {
            vocabulary.add_bos = vocabulary.add_bos.or(Some(false));
        }
    }
    if vocabulary.model == Model::WordPiece {
        vocabulary.add_sep = vocabulary.add_eos;
        vocabulary.add_eos = None; // the separator is what ends a text
    }
    vocabulary.add_bos = vocabulary
        .add_bos
        .filter(|&add| !add || special.bos.is_some());
    vocabulary.add_eos = vocabulary
        .add_eos
        .filter(|&add| !add || special.eos.is_some());
    vocabulary.special = special;
}

/// The text of a token that is written as text or as an object.
fn text_of(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token["content"].as_str())
}

/// What the post-processor of a `tokenizer.json` puts around a single text.
struct Template<'j> {
    first: Option<&'j str>,
    last: Option<&'j str>,
}

impl<'j> Template<'j> {
    /// `None` without a `tokenizer.json`.
    fn read(json: &'j Value) -> Option<Self> {
        let mut template = Self {
            first: None,
            last: None,
        };
        if json.is_null() {
            return None;
        }
        for step in steps(&json["post_processor"], "processors") {
            match type_of(step) {
                "TemplateProcessing" => {
                    let single = step["single"].as_array().map_or(&[][..], Vec::as_slice);
                    let special = |part: &'j Value| part["SpecialToken"]["id"].as_str();
                    template.first = single.first().and_then(special);
                    template.last = single.last().and_then(special);
                }
                "BertProcessing" | "RobertaProcessing" => {
                    template.first = step["cls"][0].as_str();
                    template.last = step["sep"][0].as_str();
                }
                _ => {}
            }
        }
        Some(template)
    }
}

/// The chat template: one text, or the one named `default` of several.
pub(super) fn chat_template(tokenizer_config: &Value) -> Option<String> {
    let template = &tokenizer_config["chat_template"];
    let by_name = || {
        let named = template.as_array()?.iter();
        let mut named = named.filter(|t| t["name"].as_str() == Some("default"));
        named.next()?["template"].as_str()
    };
    template.as_str().or_else(by_name).map(str::to_owned)
}
