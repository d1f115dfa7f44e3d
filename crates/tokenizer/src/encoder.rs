//! The encoder of a vocabulary: one of the models, with what is usual for it.

use crate::TokenId;
use crate::bpe::{Bpe, Scratch};
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::plamo2::Plamo2;
use crate::pre::{self, Alphabet, Bos, PreTokenizer};
use crate::rwkv::Rwkv;
use crate::spm::SentencePiece;
use crate::texts::TextIndex;
use crate::unigram::Unigram;
use crate::vocabulary::{Model, Vocabulary};
use crate::wordpiece::WordPiece;
use crate::{hybrid_dna, whitespace_bpe};

/// Turns text without special tokens into ids.
pub(crate) enum Encoder {
    SentencePiece(SentencePiece),
    Bpe(Bpe),
    WhitespaceBpe(Bpe),
    HybridDna(Bpe),
    WordPiece(WordPiece),
    Unigram(Unigram),
    Rwkv(Rwkv),
    Plamo2(Plamo2),
    None,
}

/// What is usual for a model, unless the metadata says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usual {
    pub(crate) bos: Bos,
    pub(crate) eos: bool,
    pub(crate) sep: bool,
}

/// How the texts of tokens spell what they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As it is.
    Plain,
    /// With U+2581 for spaces.
    MarkedSpaces,
    /// One printable character for each byte.
    ByteCharacters,
    /// With escapes as in a Python literal.
    Escapes,
}

impl Encoder {
    /// Makes the encoder of a vocabulary whose parts fit together.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        index: &TextIndex,
        warnings: &mut Vec<String>,
    ) -> Result<(Self, Usual, Spelling), TokenizerError> {
        let plain = Usual::default();
        Ok(match vocabulary.model {
            Model::SentencePiece => {
                let usual = Usual {
                    bos: usual_bos(vocabulary),
                    ..plain
                };
                let encoder = Self::SentencePiece(SentencePiece::new(vocabulary, index));
                (encoder, usual, Spelling::MarkedSpaces)
            }
            Model::Bpe | Model::WhitespaceBpe | Model::HybridDna => {
                let pre = pre_tokenizer(vocabulary, warnings)?;
                let bpe = Bpe::new(vocabulary, index, pre)?;
                let usual = Usual {
                    bos: match pre.bos {
                        Bos::Usual => usual_bos(vocabulary),
                        other => other,
                    },
                    ..plain
                };
                let spelling = match pre.alphabet {
                    Alphabet::Bytes => Spelling::ByteCharacters,
                    Alphabet::Characters => Spelling::Plain,
                    Alphabet::CharactersWithMarkedSpaces => Spelling::MarkedSpaces,
                };
                let encoder = match vocabulary.model {
                    Model::WhitespaceBpe => Self::WhitespaceBpe(bpe),
                    Model::HybridDna => Self::HybridDna(bpe),
                    _ => Self::Bpe(bpe),
                };
                (encoder, usual, spelling)
            }
            Model::WordPiece => {
                let usual = Usual {
                    bos: usual_bos(vocabulary),
                    sep: vocabulary.special.sep.is_some(),
                    ..plain
                };
                let encoder = Self::WordPiece(WordPiece::new(vocabulary)?);
                (encoder, usual, Spelling::MarkedSpaces)
            }
            Model::Unigram => {
                let usual = Usual {
                    eos: vocabulary.special.eos.is_some(),
                    ..plain
                };
                let encoder = Self::Unigram(Unigram::new(vocabulary, index)?);
                (encoder, usual, Spelling::MarkedSpaces)
            }
            Model::Rwkv => (Self::Rwkv(Rwkv::new(vocabulary)?), plain, Spelling::Escapes),
            Model::Plamo2 => {
                let encoder = Self::Plamo2(Plamo2::new(vocabulary, index)?);
                (encoder, plain, Spelling::Plain)
            }
            Model::None => (Self::None, plain, Spelling::Plain),
        })
    }

    /// Appends the tokens of a text without special tokens. `prefix`: `SentencePiece` puts a space before it.
    pub(crate) fn encode(
        &self,
        text: &str,
        prefix: bool,
        vocabulary: &Vocabulary,
        index: &TextIndex,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        match self {
            Self::SentencePiece(model) => {
                model.encode(text, prefix, vocabulary, index, scratch, out)
            }
            Self::Bpe(model) => model.encode(text, vocabulary, index, scratch, out),
            Self::WhitespaceBpe(model) => {
                whitespace_bpe::encode(model, text, vocabulary, index, scratch, out)
            }
            Self::HybridDna(model) => {
                hybrid_dna::encode(model, text, vocabulary, index, scratch, out)
            }
            Self::WordPiece(model) => model.encode(text, scratch, out),
            Self::Unigram(model) => model.encode(text, scratch, out),
            Self::Rwkv(model) => model.encode(text, out),
            Self::Plamo2(model) => model.encode(text, out),
            Self::None => Err(TokenizerError::NoVocabulary {
                found: Model::None.name().to_owned(),
            }),
        }
    }
}

/// BOS unless the metadata says otherwise, when there is one.
fn usual_bos(vocabulary: &Vocabulary) -> Bos {
    match vocabulary.special.bos {
        Some(_) => Bos::Usual,
        None => Bos::Asked,
    }
}

fn pre_tokenizer(
    vocabulary: &Vocabulary,
    warnings: &mut Vec<String>,
) -> Result<&'static PreTokenizer, TokenizerError> {
    let name = vocabulary.pre_tokenizer.as_deref().unwrap_or_default();
    let known = match name {
        "" => {
            warnings.push(format!(
                "metadata key `tokenizer.ggml.pre` is missing: text is cut as by `{}`, which may not be how this model was \
                 trained; convert the model again with a current converter",
                pre::DEFAULT
            ));
            PreTokenizer::by_name(pre::DEFAULT)
        }
        name => PreTokenizer::by_name(name),
    };
    known.ok_or_else(|| TokenizerError::UnknownPreTokenizer {
        name: printable(name.as_bytes()),
        known: PreTokenizer::known_names(),
    })
}
