//! One text in the making: which tokens to compute next, and what the logits make of them.

use crate::{Engine, EngineError, Feed, SeqId, Want, text::TextStream};
use puna_sampling::{Chain, SamplerOptions};
use puna_tokenizer::{TokenId, Tokenizer};
use std::sync::Arc;

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

/// What one step of a generation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A part of the prompt was computed, and more of it is to come.
    Prompt {
        /// Tokens that are in the cache now.
        computed: usize,
        /// Tokens that have to be before the next token can be chosen.
        total: usize,
    },
    /// A token was chosen.
    Token {
        /// The token, which may be one that ends the text.
        token: TokenId,
        /// Text that is certain now: whole characters, and nothing that may still become a stop text.
        text: String,
        /// Set with the last token.
        finish: Option<FinishReason>,
    },
}

impl Step {
    /// The text that is certain now; empty while the prompt is computed.
    pub fn text(&self) -> &str {
        match self {
            Self::Prompt { .. } => "",
            Self::Token { text, .. } => text,
        }
    }
}

/// A text in the making on one sequence.
///
/// It is the list of tokens that the sequence shall hold (the prompt, then what was chosen), and what chooses the next one. It does not
/// tell prompt from generation: each step computes tokens that are wanted and not in the cache yet, a batch of them at most, and chooses
/// a token when the logits of the last one are there. Between steps it can be dropped, which leaves in the cache what was computed.
///
/// [`Self::step`] drives one generation. Several share a batch when [`Self::feed`], one [`Engine::decode`] for all of them, and
/// [`Self::advance`] are called one after the other.
pub struct Generation {
    sequence: SeqId,
    /// The prompt and what was chosen.
    tokens: Vec<TokenId>,
    /// Logits of the last token, from when they are known until the next token is chosen.
    logits: Vec<f32>,
    chain: Chain,
    text: TextStream,
    tokenizer: Arc<Tokenizer>,
    left: usize,
    reused: usize,
    finished: bool,
    ignore_eos: bool,
}

/// Where the logits of a [`Generation`]'s feed go.
pub struct LogitsSlot<'a>(&'a mut Vec<f32>);

impl LogitsSlot<'_> {
    /// Takes the row that [`Engine::decode`] gives for the feed.
    pub fn set(&mut self, row: &[f32]) {
        self.0.clear();
        self.0.extend_from_slice(row);
    }
}

impl Generation {
    /// A generation that continues `prompt` on `sequence`, keeping what the sequence already holds of it. Nothing is computed yet.
    ///
    /// # Errors
    /// [`EngineError::ContextExceeded`] where the prompt is longer than the context, [`EngineError::Option`] for an empty stop text, and
    /// what the samplers or the vocabulary refuse.
    pub fn new(
        engine: &mut Engine,
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
        Ok(Self {
            reused: engine.reuse(sequence, prompt)?,
            sequence,
            tokens: prompt.to_vec(),
            logits: Vec::new(),
            chain,
            text: TextStream::new(options),
            tokenizer,
            left: options.max_tokens.unwrap_or(usize::MAX),
            finished: false,
            ignore_eos: options.ignore_eos,
        })
    }

    /// Its sequence.
    pub fn sequence(&self) -> SeqId {
        self.sequence
    }

    /// The prompt and what was chosen.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Tokens of the prompt that were in the cache already.
    pub fn reused(&self) -> usize {
        self.reused
    }

    /// The seed in use.
    pub fn seed(&self) -> u32 {
        self.chain.seed()
    }

    /// Computes one batch at most: a part of the prompt, or the token chosen last. Chooses the next token where all of them are
    /// computed. `None` after the last one.
    ///
    /// # Errors
    /// Whatever the engine refuses; another call tries the same again. Where the samplers refuse, the generation is over.
    pub fn step(&mut self, engine: &mut Engine) -> Result<Option<Step>, EngineError> {
        let budget = engine.batch();
        if let Some((feed, mut slot)) = self.feed(engine, budget)? {
            engine.decode(&[feed], &mut |_, _, row| slot.set(row))?;
        }
        self.advance(engine)
    }

    /// What has to be computed next, at most `budget` tokens, and where the logits go if there are any. `None` where nothing has to be:
    /// logits wait for [`Self::advance`], or the generation is over. A generation whose prompt is done asks for one token.
    ///
    /// What the sequence was changed to meanwhile does not matter: what is missing of the tokens is asked for again.
    pub fn feed(
        &mut self,
        engine: &mut Engine,
        budget: usize,
    ) -> Result<Option<(Feed<'_>, LogitsSlot<'_>)>, EngineError> {
        if self.finished || budget == 0 || !self.logits.is_empty() {
            return Ok(None);
        }
        let held = engine.reuse(self.sequence, &self.tokens)?;
        let end = self.tokens.len().min(held.saturating_add(budget));
        let feed = Feed {
            sequence: self.sequence,
            tokens: &self.tokens[held..end],
            want: if end == self.tokens.len() {
                Want::Last
            } else {
                Want::None
            },
        };
        Ok(Some((feed, LogitsSlot(&mut self.logits))))
    }

    /// What came of the feed: the next token where its logits are there, otherwise how far the prompt is. `None` when it is over.
    ///
    /// # Errors
    /// [`EngineError::Sampling`] where logits are not numbers; the generation is over then.
    pub fn advance(&mut self, engine: &Engine) -> Result<Option<Step>, EngineError> {
        if self.finished {
            return Ok(None);
        }
        if self.logits.is_empty() {
            return Ok(Some(Step::Prompt {
                computed: engine.tokens(self.sequence)?.len(),
                total: self.tokens.len(),
            }));
        }
        if self.left == 0 {
            self.finished = true;
            return Ok(None);
        }
        let token = match self.chain.sample(&mut self.logits) {
            Ok(id) => TokenId(id),
            Err(error) => {
                self.finished = true;
                return Err(error.into());
            }
        };
        self.logits.clear();
        Ok(Some(self.accept(token, engine.context())))
    }

    /// Adds the token that was chosen.
    fn accept(&mut self, token: TokenId, context: usize) -> Step {
        self.chain.accept(token.0);
        self.tokens.push(token);
        self.left -= 1;
        let ends = !self.ignore_eos && self.tokenizer.is_end_of_generation(token);
        let (mut text, stopped) = self.text.push(&self.tokenizer, token, ends);
        let finish = if ends {
            Some(FinishReason::EndOfGeneration)
        } else if stopped {
            Some(FinishReason::Stop)
        } else if self.left == 0 {
            Some(FinishReason::Length)
        } else if self.tokens.len() > context {
            Some(FinishReason::Context)
        } else {
            None
        };
        if finish.is_some() {
            self.finished = true;
            if !stopped {
                text.push_str(&self.text.finish());
            }
        }
        Step::Token {
            token,
            text,
            finish,
        }
    }
}
