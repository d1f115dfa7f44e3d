//! The tokenizer: a vocabulary made ready, and encoding.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use puna_gguf::Metadata;

use crate::TokenId;
use crate::bpe::{Bpe, Scratch};
use crate::byte_chars;
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::matcher::{Fragment, Matcher};
use crate::pre::{self, PreTokenizer};
use crate::special;
use crate::spm::{self, SentencePiece};
use crate::texts::{TextIndex, Texts};
use crate::vocabulary::{Model, SpecialIds, TokenKind, Vocabulary};

/// What encoding does besides text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put BOS before and EOS behind, as the model wants it, unless the text has it there already.
    pub add_special: bool,
    /// Turn the texts of control tokens into these tokens. Only for text that is trusted: with it, text can forge turns.
    pub parse_special: bool,
}

/// A part of a text that is trusted, or not, to hold special tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'t> {
    /// The text.
    pub text: &'t str,
    /// Whether the texts of control tokens in it become these tokens.
    pub special: bool,
}

/// Turns text into token ids and back. Shared freely between threads.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    index: TextIndex,
    /// Bytes that each token decodes to.
    pieces: Texts,
    matcher: Matcher,
    encoder: Encoder,
    add_bos: bool,
    add_eos: bool,
    end_of_generation: Vec<TokenId>,
    warnings: Vec<String>,
    /// Memory of encodings that are done, with their word caches.
    scratch: Mutex<Vec<Scratch>>,
}

enum Encoder {
    SentencePiece(SentencePiece),
    Bpe(Bpe),
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("model", &self.vocabulary.model)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads the tokenizer of a model file.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        Self::new(Vocabulary::from_gguf(metadata)?)
    }

    /// Makes a tokenizer of a vocabulary. Errors name the metadata key that the wrong part has in a GGUF file.
    pub fn new(mut vocabulary: Vocabulary) -> Result<Self, TokenizerError> {
        vocabulary.complete()?;
        let mut index = TextIndex::with_capacity(vocabulary.tokens.len());
        for number in 0..vocabulary.tokens.len() {
            index.insert(&vocabulary.tokens, number);
        }
        special::apply_defaults(&mut vocabulary);
        let end_of_generation = special::find_roles(&mut vocabulary, &index);
        let mut warnings = Vec::new();
        let (encoder, usual_bos) = match vocabulary.model {
            Model::SentencePiece => {
                let encoder = SentencePiece::new(&vocabulary, &index);
                (
                    Encoder::SentencePiece(encoder),
                    vocabulary.special.bos.is_some(),
                )
            }
            Model::ByteLevelBpe => {
                let pre = pre_tokenizer(&vocabulary, &mut warnings)?;
                let encoder = Bpe::new(&vocabulary, &index, pre)?;
                vocabulary.merges = Texts::default();
                (
                    Encoder::Bpe(encoder),
                    pre.add_bos && vocabulary.special.bos.is_some(),
                )
            }
        };
        let add_bos = vocabulary.add_bos.unwrap_or(usual_bos);
        let add_eos = vocabulary.add_eos.unwrap_or(false);
        for (added, flag, key, id) in [
            (
                add_bos,
                "tokenizer.ggml.add_bos_token",
                "tokenizer.ggml.bos_token_id",
                vocabulary.special.bos,
            ),
            (
                add_eos,
                "tokenizer.ggml.add_eos_token",
                "tokenizer.ggml.eos_token_id",
                vocabulary.special.eos,
            ),
        ] {
            if added && id.is_none() {
                return Err(TokenizerError::MissingSpecialToken { flag, id: key });
            }
        }
        Ok(Self {
            pieces: pieces(&vocabulary, &mut warnings)?,
            matcher: Matcher::new(&vocabulary),
            vocabulary,
            index,
            encoder,
            add_bos,
            add_eos,
            end_of_generation,
            warnings,
            scratch: Mutex::default(),
        })
    }

    /// Turns a text into token ids.
    ///
    /// User-defined tokens are found before anything else; control tokens only with `parse_special`. The one error is a text
    /// with a byte that the vocabulary cannot express.
    pub fn encode(
        &self,
        text: &str,
        options: EncodeOptions,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        let everything = options.parse_special.then_some(0..text.len());
        self.encode_regions(text, everything.as_slice(), options.add_special)
    }

    /// Turns segments into token ids as if they were one text, so that words and merges may reach over their borders; control
    /// tokens are found only inside of `special` segments.
    pub fn encode_segments(
        &self,
        segments: &[Segment<'_>],
        add_special: bool,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        let mut text = String::with_capacity(segments.iter().map(|s| s.text.len()).sum());
        let mut regions: Vec<Range<usize>> = Vec::new();
        for segment in segments {
            let start = text.len();
            text.push_str(segment.text);
            if !segment.special {
                continue;
            }
            match regions.last_mut() {
                Some(last) if last.end == start => last.end = text.len(),
                _ => regions.push(start..text.len()),
            }
        }
        self.encode_regions(&text, &regions, add_special)
    }

    fn encode_regions(
        &self,
        text: &str,
        regions: &[Range<usize>],
        add_special: bool,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        // Positions in a word are of 32 bits, and a space may become three bytes.
        const LIMIT: usize = u32::MAX as usize / 4;
        if text.len() > LIMIT {
            return Err(TokenizerError::TooLarge {
                what: "bytes of text to encode",
                found: text.len(),
                limit: LIMIT,
            });
        }
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        let fragments = self.matcher.split(text, regions);
        let bos = self.bos().filter(|_| add_special && self.add_bos);
        let eos = self.eos().filter(|_| add_special && self.add_eos);
        let is = |fragment: Option<&Fragment>, id| fragment == Some(&Fragment::Token(id));
        ids.extend(bos.filter(|&bos| !is(fragments.first(), bos)));
        let mut scratch = self.take_scratch();
        let encoded = self.encode_fragments(text, &fragments, &mut scratch, &mut ids);
        self.return_scratch(scratch);
        encoded?;
        ids.extend(eos.filter(|&eos| !is(fragments.last(), eos)));
        Ok(ids)
    }

    fn encode_fragments(
        &self,
        text: &str,
        fragments: &[Fragment],
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        // Fragments of text are apart: each is the first, or follows a special token, and gets its space prefix.
        let prefix = self.adds_space_prefix();
        for fragment in fragments {
            let range = match fragment {
                Fragment::Token(id) => {
                    ids.push(*id);
                    continue;
                }
                Fragment::Text(range) => range.clone(),
            };
            let text = text.get(range).unwrap_or_default();
            match &self.encoder {
                Encoder::SentencePiece(model) => {
                    model.encode(text, prefix, &self.vocabulary, &self.index, scratch, ids)?;
                }
                Encoder::Bpe(model) => {
                    model.encode(text, &self.vocabulary, &self.index, scratch, ids)?;
                }
            }
        }
        Ok(())
    }

    fn take_scratch(&self) -> Scratch {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_default()
    }

    fn return_scratch(&self, scratch: Scratch) {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        pool.push(scratch);
    }

    /// The number of tokens; ids are smaller.
    pub fn len(&self) -> usize {
        self.vocabulary.tokens.len()
    }

    /// Whether the vocabulary has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How text becomes tokens.
    pub fn model(&self) -> Model {
        self.vocabulary.model
    }

    /// The bytes that a token decodes to, special tokens as their text. Not always whole characters.
    pub fn piece(&self, id: TokenId) -> Option<&[u8]> {
        self.pieces.get(id.index())
    }

    /// The entry of the vocabulary; `None` for ids outside of it and entries that are not UTF-8.
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        std::str::from_utf8(self.vocabulary.tokens.get(id.index())?).ok()
    }

    /// The token with this entry in the vocabulary, of whatever kind.
    pub fn find(&self, text: &str) -> Option<TokenId> {
        self.index
            .get(&self.vocabulary.tokens, text.as_bytes())
            .map(TokenId)
    }

    /// What a token is; [`TokenKind::Unused`] for ids outside of the vocabulary.
    pub fn kind(&self, id: TokenId) -> TokenKind {
        self.vocabulary.kind(id)
    }

    /// The tokens with a role.
    pub fn special(&self) -> &SpecialIds {
        &self.vocabulary.special
    }

    /// Begin of sequence.
    pub fn bos(&self) -> Option<TokenId> {
        self.special().bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<TokenId> {
        self.special().eos
    }

    /// End of turn.
    pub fn eot(&self) -> Option<TokenId> {
        self.special().eot
    }

    /// Unknown text.
    pub fn unk(&self) -> Option<TokenId> {
        self.special().unk
    }

    /// Padding.
    pub fn pad(&self) -> Option<TokenId> {
        self.special().pad
    }

    /// Whether encoding with `add_special` puts BOS first.
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether encoding with `add_special` puts EOS last.
    pub fn add_eos(&self) -> bool {
        self.add_eos
    }

    /// Whether a generation ends with this token: EOS, end of turn and whatever else the field uses for it.
    pub fn is_end_of_generation(&self, id: TokenId) -> bool {
        self.end_of_generation.binary_search(&id).is_ok()
    }

    /// The tokens for which [`Self::is_end_of_generation`] holds, ascending.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// What the vocabulary leaves to guess, as sentences for the user: a missing pre-tokenizer for one.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a space is put before text.
    pub(crate) fn adds_space_prefix(&self) -> bool {
        self.vocabulary.model == Model::SentencePiece
            && self.vocabulary.add_space_prefix.unwrap_or(true)
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

/// What each token decodes to.
fn pieces(vocabulary: &Vocabulary, warnings: &mut Vec<String>) -> Result<Texts, TokenizerError> {
    let mut pieces = Texts::with_capacity(vocabulary.tokens.len());
    let mut buffer = Vec::new();
    let mut bad_bytes = 0;
    for (text, &kind) in vocabulary.tokens.iter().zip(&vocabulary.kinds) {
        buffer.clear();
        match kind {
            TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined => {
                buffer.extend_from_slice(text);
            }
            TokenKind::Byte if let Some(byte) = spm::byte_of_token(text) => buffer.push(byte),
            _ => {
                bad_bytes += usize::from(kind == TokenKind::Byte);
                match vocabulary.model {
                    Model::SentencePiece => unescape_spaces(text, &mut buffer),
                    Model::ByteLevelBpe => {
                        if !byte_chars::decode(text, &mut buffer) {
                            buffer.extend_from_slice(text);
                        }
                    }
                }
            }
        }
        pieces.push(&[&buffer])?;
    }
    if bad_bytes > 0 {
        warnings.push(format!(
            "{bad_bytes} tokens of type byte are not written as <0x00> to <0xFF>; they are taken as text"
        ));
    }
    Ok(pieces)
}

fn unescape_spaces(mut text: &[u8], out: &mut Vec<u8>) {
    const SPACE: &[u8] = "▁".as_bytes();
    while let Some(&byte) = text.first() {
        if let Some(rest) = text.strip_prefix(SPACE) {
            out.push(b' ');
            text = rest;
        } else {
            out.push(byte);
            text = text.get(1..).unwrap_or_default();
        }
    }
}
