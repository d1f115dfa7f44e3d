//! The tokenizer: a vocabulary made ready, and encoding.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use puna_gguf::Metadata;

use crate::TokenId;
use crate::bpe::Scratch;
use crate::encoder::Encoder;
use crate::error::TokenizerError;
use crate::matcher::{Fragment, Matcher};
use crate::pieces::pieces;
use crate::pre::Bos;
use crate::special;
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
    add_sep: bool,
    end_of_generation: Vec<TokenId>,
    warnings: Vec<String>,
    /// Memory of encodings that are done, with their word caches.
    scratch: Mutex<Vec<Scratch>>,
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
        special::apply_defaults(&mut vocabulary, &index);
        let end_of_generation = special::find_roles(&mut vocabulary, &index);
        let mut warnings = Vec::new();
        let (encoder, usual, spelling) = Encoder::new(&vocabulary, &index, &mut warnings)?;
        vocabulary.merges = Texts::default();
        vocabulary.precompiled_charsmap = Vec::new();
        let add_bos = match usual.bos {
            Bos::Asked => vocabulary.add_bos.unwrap_or(false),
            Bos::Usual => vocabulary.add_bos.unwrap_or(true),
            Bos::Always => true,
        };
        let add_eos = vocabulary.add_eos.unwrap_or(usual.eos);
        let add_sep =
            vocabulary.model == Model::WordPiece && vocabulary.add_sep.unwrap_or(usual.sep);
        let SpecialIds { bos, eos, sep, .. } = vocabulary.special;
        for (added, role, id) in [
            (add_bos, "bos", bos),
            (add_eos, "eos", eos),
            (add_sep, "seperator", sep), // misspelt in the format
        ] {
            if added && id.is_none() {
                return Err(TokenizerError::MissingSpecialToken { role });
            }
        }
        Ok(Self {
            pieces: pieces(&vocabulary, spelling, &mut warnings)?,
            matcher: Matcher::new(&vocabulary),
            vocabulary,
            index,
            encoder,
            add_bos,
            add_eos,
            add_sep,
            end_of_generation,
            warnings,
            scratch: Mutex::default(),
        })
    }

    /// Turns a text into token ids.
    ///
    /// User-defined tokens are found before anything else; control tokens only with `parse_special`. Errors are a text with a
    /// byte that the vocabulary cannot express, and a vocabulary without texts.
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
        let last = self.last_special().filter(|_| add_special);
        let is = |fragment: Option<&Fragment>, id| fragment == Some(&Fragment::Token(id));
        ids.extend(bos.filter(|&bos| !is(fragments.first(), bos)));
        let mut scratch = self.take_scratch();
        let encoded = self.encode_fragments(text, &fragments, &mut scratch, &mut ids);
        self.return_scratch(scratch);
        encoded?;
        ids.extend(last.filter(|&last| !is(fragments.last(), last)));
        Ok(ids)
    }

    /// What encoding with `add_special` puts last: EOS, or the separator.
    pub(crate) fn last_special(&self) -> Option<TokenId> {
        let eos = self.eos().filter(|_| self.add_eos);
        eos.or(self.special().sep.filter(|_| self.add_sep))
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
            let Self {
                encoder,
                vocabulary,
                index,
                ..
            } = self;
            encoder.encode(text, prefix, vocabulary, index, scratch, ids)?;
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

    /// Whether encoding with `add_special` puts the separator last.
    pub fn add_sep(&self) -> bool {
        self.add_sep
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

    /// Whether a space is put before text, or the first token decodes to one as if it were.
    pub(crate) fn adds_space_prefix(&self) -> bool {
        let added = self.vocabulary.add_space_prefix;
        match self.vocabulary.model {
            Model::SentencePiece => added.unwrap_or(true),
            Model::Unigram => added.unwrap_or(false),
            Model::WordPiece => true,
            _ => false,
        }
    }
}
