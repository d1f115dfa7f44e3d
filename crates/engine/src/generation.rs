//! The sampling loop on one sequence: tokens out, as text that never ends inside a character.

use crate::{Engine, EngineError, Feed, SeqId, Want};
use puna_sampling::{Chain, SamplerOptions};
use puna_tokenizer::{TokenId, TokenKind, Tokenizer};
use std::{borrow::Cow, sync::Arc};

/// How much is generated, and how.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GenerationOptions {
    /// The samplers.
    pub sampler: SamplerOptions,
    /// Most tokens; up to the end of the context where unset.
    pub max_tokens: Option<usize>,
    /// Texts at which generation ends, none of them empty; they are not part of the result.
    pub stop: Vec<String>,
    /// Whether end-of-generation tokens are forbidden.
    pub ignore_eos: bool,
    /// Whether control tokens appear in the text.
    pub show_special: bool,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended its text.
    EndOfGeneration,
    /// A stop text.
    Stop,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    Context,
}

impl FinishReason {
    /// Name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndOfGeneration => "end_of_generation",
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
        }
    }
}

/// What one round of the loop gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The token, which may be one that ends the text.
    pub token: TokenId,
    /// Text that is certain now: whole characters, and nothing that may still become a stop text.
    pub text: String,
    /// Set with the last token.
    pub finish: Option<FinishReason>,
}

/// A running generation. The prompt is computed when it is made.
pub struct Generation<'e> {
    engine: &'e mut Engine,
    sequence: SeqId,
    chain: Chain,
    text: TextStream,
    logits: Vec<f32>,
    /// Sampled and not yet computed.
    pending: Option<TokenId>,
    left: usize,
    reused: usize,
    finished: bool,
    ignore_eos: bool,
    tokenizer: Arc<Tokenizer>,
}

impl<'e> Generation<'e> {
    /// Computes `prompt` on `sequence`, keeping what the sequence already holds of it.
    ///
    /// # Errors
    /// [`EngineError::ContextExceeded`] where the prompt is longer than the context, [`EngineError::Option`] for an empty stop text, and
    /// whatever else the engine refuses.
    pub fn new(
        engine: &'e mut Engine,
        sequence: SeqId,
        prompt: &[TokenId],
        options: &GenerationOptions,
    ) -> Result<Self, EngineError> {
        if prompt.is_empty() {
            return Err(EngineError::Empty);
        }
        if prompt.len() > engine.context() {
            return Err(EngineError::ContextExceeded {
                tokens: prompt.len(),
                context: engine.context(),
            });
        }
        if options.stop.iter().any(String::is_empty) {
            return Err(EngineError::Option {
                option: "stop text",
                found: "an empty text".to_owned(),
                expected: "at least one character".to_owned(),
            });
        }
        let tokenizer = Arc::clone(engine.tokenizer()?);
        let mut sampler = options.sampler.clone();
        if options.ignore_eos {
            let banned = tokenizer
                .end_of_generation()
                .iter()
                .map(|t| (t.0, f32::NEG_INFINITY));
            sampler.logit_bias.extend(banned);
        }
        let mut chain = Chain::new(&sampler)?;
        for token in prompt {
            chain.accept(token.0);
        }
        let reused = engine.reuse(sequence, prompt)?;
        let mut logits = Vec::new();
        let feed = Feed {
            sequence,
            tokens: &prompt[reused..],
            want: Want::Last,
        };
        engine.decode(&[feed], &mut |_, _, row| logits.extend_from_slice(row))?;
        Ok(Self {
            text: TextStream::new(options),
            left: options.max_tokens.unwrap_or(usize::MAX),
            ignore_eos: options.ignore_eos,
            engine,
            sequence,
            chain,
            logits,
            pending: None,
            reused,
            finished: false,
            tokenizer,
        })
    }

    /// Tokens of the prompt that were in the cache already.
    pub fn reused(&self) -> usize {
        self.reused
    }

    /// The seed in use.
    pub fn seed(&self) -> u32 {
        self.chain.seed()
    }

    /// The next token; `None` after the last one.
    ///
    /// # Errors
    /// Whatever the engine or the samplers refuse. Where the engine refused, another call tries the same again.
    pub fn step(&mut self) -> Result<Option<Step>, EngineError> {
        if self.finished || self.left == 0 {
            return Ok(None);
        }
        if let Some(token) = self.pending {
            let (sequence, logits) = (self.sequence, &mut self.logits);
            let feed = Feed {
                sequence,
                tokens: &[token],
                want: Want::Last,
            };
            self.engine.decode(&[feed], &mut |_, _, row| {
                logits.clear();
                logits.extend_from_slice(row);
            })?;
            self.pending = None;
        }
        let token = TokenId(self.chain.sample(&mut self.logits)?);
        self.chain.accept(token.0);
        self.left -= 1;
        let ends = !self.ignore_eos && self.tokenizer.is_end_of_generation(token);
        let (mut text, stopped) = self.text.push(&self.tokenizer, token, ends);
        let held = self.engine.tokens(self.sequence)?.len();
        let finish = if ends {
            Some(FinishReason::EndOfGeneration)
        } else if stopped {
            Some(FinishReason::Stop)
        } else if self.left == 0 {
            Some(FinishReason::Length)
        } else if held >= self.engine.context() {
            Some(FinishReason::Context)
        } else {
            None
        };
        if finish.is_some() {
            self.finished = true;
            if !stopped {
                text.push_str(&self.text.finish());
            }
        } else {
            self.pending = Some(token);
        }
        Ok(Some(Step {
            token,
            text,
            finish,
        }))
    }
}

/// Bytes of tokens to text, holding back what is not certain yet.
struct TextStream {
    stop: Vec<String>,
    show_special: bool,
    /// Bytes not given out yet.
    held: Vec<u8>,
}

impl TextStream {
    fn new(options: &GenerationOptions) -> Self {
        Self {
            stop: options.stop.clone(),
            show_special: options.show_special,
            held: Vec::new(),
        }
    }

    /// Text that is certain after `token`, and whether a stop text was met.
    fn push(&mut self, tokenizer: &Tokenizer, token: TokenId, ends: bool) -> (String, bool) {
        let hidden = ends || (!self.show_special && tokenizer.kind(token) == TokenKind::Control);
        if !hidden {
            self.held
                .extend_from_slice(tokenizer.piece(token).unwrap_or_default());
        }
        let stops = self
            .stop
            .iter()
            .filter_map(|s| find(&self.held, s.as_bytes()));
        if let Some(at) = stops.min() {
            self.held.truncate(at);
            return (self.finish(), true);
        }
        let certain = self.held.len() - self.possible_stop();
        let whole = certain - incomplete_tail(&self.held[..certain]);
        let rest = self.held.split_off(whole);
        let text = std::mem::replace(&mut self.held, rest);
        (to_text(&text), false)
    }

    /// Length of the longest end of the held bytes that begins a stop text.
    fn possible_stop(&self) -> usize {
        let starts = |s: &String| {
            (1..s.len().min(self.held.len() + 1))
                .rev()
                .find(|n| self.held.ends_with(&s.as_bytes()[..*n]))
        };
        self.stop.iter().filter_map(starts).max().unwrap_or(0)
    }

    /// All that is held; bytes that never became a character are shown as U+FFFD.
    fn finish(&mut self) -> String {
        to_text(&std::mem::take(&mut self.held))
    }
}

fn to_text(bytes: &[u8]) -> String {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

/// Bytes at the end that begin a character which may still become whole.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest)
        .find(|n| {
            let tail = &bytes[bytes.len() - n..];
            let error = std::str::from_utf8(tail).err();
            tail[0] >= 0xc0
                && error.is_some_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_can_still_become_whole_are_held_back() {
        for (bytes, expected) in [
            (&b"abc"[..], 0),
            ("\u{20ac}".as_bytes(), 0),
            (&"\u{20ac}".as_bytes()[..2], 2),
            (&"\u{1f999}".as_bytes()[..3], 3),
            (b"a\xff", 0),
            (b"a\xe2", 1),
            (b"\xe2a", 0),
            (b"\x80", 0),
            (b"\xf8", 0),
        ] {
            assert_eq!(incomplete_tail(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_possible_stop_text_is_held_back_and_found_across_tokens() {
        let options = GenerationOptions {
            stop: vec!["DEFG".into(), "\u{3002}".into()],
            ..GenerationOptions::default()
        };
        let mut stream = TextStream::new(&options);
        stream.held.extend_from_slice(b"ABCDE");
        assert_eq!(stream.possible_stop(), 2);
        stream.held = b"x\xe3\x80".to_vec();
        assert_eq!(stream.possible_stop(), 2);
        stream.held = b"DEFH".to_vec();
        assert_eq!(stream.possible_stop(), 0);
        assert_eq!(find(b"ABCDEFGH", b"DEFG"), Some(3));
    }
}
