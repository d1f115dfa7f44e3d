//! Ids back to text, all at once or token by token.

use crate::TokenId;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::TokenKind;

/// What decoding shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Leave out a first token that is BOS and a last that is EOS or the separator, where encoding adds them.
    pub remove_special: bool,
    /// Write control and unknown tokens as their text; otherwise they give nothing.
    pub unparse_special: bool,
    /// Take away the space that encoding puts before text (`SentencePiece`), so that text comes back as it was. Not for the
    /// middle of a text.
    pub strip_space_prefix: bool,
}

impl Default for DecodeOptions {
    /// A whole text, as it was before encoding, without special tokens.
    fn default() -> Self {
        Self {
            remove_special: false,
            unparse_special: false,
            strip_space_prefix: true,
        }
    }
}

impl DecodeOptions {
    /// The continuation of a text: nothing is taken from its front.
    pub fn continuation() -> Self {
        Self {
            strip_space_prefix: false,
            ..Self::default()
        }
    }
}

impl Tokenizer {
    /// The bytes that ids stand for. Ids outside of the vocabulary give nothing.
    pub fn decode_bytes(&self, ids: &[TokenId], options: DecodeOptions) -> Vec<u8> {
        let mut ids = ids;
        if options.remove_special {
            if let [first, rest @ ..] = ids
                && self.add_bos()
                && Some(*first) == self.bos()
            {
                ids = rest;
            }
            if let [rest @ .., last] = ids
                && Some(*last) == self.last_special()
            {
                ids = rest;
            }
        }
        let mut pieces = Pieces::new(self, options);
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(pieces.next(id));
        }
        bytes
    }

    /// The text that ids stand for. Bytes that are not UTF-8 become U+FFFD; [`Self::decode_bytes`] has them.
    pub fn decode(&self, ids: &[TokenId], options: DecodeOptions) -> String {
        match String::from_utf8(self.decode_bytes(ids, options)) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    /// Decodes the continuation of a text token by token, without special tokens.
    pub fn decoder(&self) -> Decoder<'_> {
        self.decoder_with(DecodeOptions::continuation())
    }

    /// Decodes token by token. `remove_special` has no meaning here: the decoder does not know which token is the last.
    pub fn decoder_with(&self, options: DecodeOptions) -> Decoder<'_> {
        Decoder {
            pieces: Pieces::new(self, options),
            pending: Vec::new(),
        }
    }
}

/// The bytes of one token after the other, by the options.
#[derive(Clone, Debug)]
struct Pieces<'t> {
    tokenizer: &'t Tokenizer,
    options: DecodeOptions,
    /// The next piece begins with a space that encoding has put there.
    strip: bool,
}

impl<'t> Pieces<'t> {
    fn new(tokenizer: &'t Tokenizer, options: DecodeOptions) -> Self {
        Self {
            tokenizer,
            options,
            strip: options.strip_space_prefix && tokenizer.adds_space_prefix(),
        }
    }

    fn next(&mut self, id: TokenId) -> &'t [u8] {
        let Some(piece) = self.tokenizer.piece(id) else {
            return &[];
        };
        let kind = self.tokenizer.kind(id);
        if matches!(
            kind,
            TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined
        ) {
            // Encoding puts a space before the text after such a token as well.
            self.strip = self.options.strip_space_prefix && self.tokenizer.adds_space_prefix();
            let shown = self.options.unparse_special || kind == TokenKind::UserDefined;
            return if shown { piece } else { &[] };
        }
        let strip = std::mem::take(&mut self.strip);
        match piece {
            [b' ', rest @ ..] if strip => rest,
            _ => piece,
        }
    }
}

/// Decodes token by token: text comes out as soon as its characters are complete, and no byte is lost.
#[derive(Clone, Debug)]
pub struct Decoder<'t> {
    pieces: Pieces<'t>,
    /// The beginning of a character, at most three bytes.
    pending: Vec<u8>,
}

impl Decoder<'_> {
    /// Takes a token; gives the text that is complete with it, which may be empty. Bytes that cannot be part of any character
    /// come out as U+FFFD.
    pub fn push(&mut self, id: TokenId) -> String {
        let piece = self.pieces.next(id);
        if self.pending.is_empty()
            && let Ok(text) = std::str::from_utf8(piece)
        {
            return text.to_owned();
        }
        self.pending.extend_from_slice(piece);
        let mut text = String::new();
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest
                        .split_at_checked(error.valid_up_to())
                        .unwrap_or((rest, &[]));
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    rest = after;
                    // No length: the text ends inside a character.
                    let Some(bad) = error.error_len() else {
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = rest.get(bad..).unwrap_or_default();
                }
            }
        }
        self.pending = rest.to_vec();
        text
    }

    /// Takes a token; gives its bytes by the same rules, complete characters or not. Bytes that [`Self::push`] holds back are not
    /// among them: use one of the two.
    pub fn push_bytes(&mut self, id: TokenId) -> &[u8] {
        self.pieces.next(id)
    }

    /// The bytes that are held back: the beginning of a character.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Ends the text: what is held back comes out as U+FFFD.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}
