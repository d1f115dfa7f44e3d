//! A loaded model that answers prompts on one sequence.

use super::Args;
use crate::{args::Predict, failure::usage_error};
use anyhow::{Context, Result, anyhow, bail};
use puna::{
    Chat, Conversation, Engine, EngineError, FinishReason, Generation, GenerationOptions, Message,
    SeqId, Step, TokenId, Tokenizer,
    tokenizer::{DecodeOptions, EncodeOptions},
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// A loaded model with what the arguments say of prompts and sampling.
pub(super) struct Session {
    engine: Engine,
    sequence: SeqId,
    tokenizer: Arc<Tokenizer>,
    /// `None` where prompts are continued as they are.
    chat: Option<Chat>,
    options: GenerationOptions,
    predict: Predict,
    /// The model's file.
    pub(super) model: PathBuf,
    /// Time to open it.
    pub(super) load: Duration,
}

/// What came of a prompt.
pub(super) struct Answer {
    pub(super) prompt: Vec<TokenId>,
    /// With the token that ended it, if one did.
    pub(super) ids: Vec<TokenId>,
    pub(super) text: String,
    pub(super) finish: Finish,
    pub(super) seed: u32,
    /// Tokens of the prompt that were in the cache already.
    pub(super) reused: usize,
    pub(super) prompt_time: Duration,
    pub(super) predicted_time: Duration,
}

/// Why it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// By itself.
    Reason(FinishReason),
    /// The user did not want more.
    Interrupted,
}

impl Finish {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reason(reason) => reason.name(),
            Self::Interrupted => "interrupted",
        }
    }
}

/// Who listens while an answer is made.
pub(super) trait Listener {
    /// Text that is certain.
    fn text(&mut self, text: &str) -> Result<()>;
    /// Whether to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

impl Session {
    /// Opens the model and its template.
    pub(super) fn open(args: &Args) -> Result<Self> {
        let model = args.model.path()?;
        let start = Instant::now();
        let backend = args.engine.threads.backend()?;
        let mut engine = Engine::open(&model, &backend, &args.engine.options())?;
        let tokenizer = Arc::clone(engine.tokenizer().map_err(EngineError::Vocabulary)?);
        let chat = chat(args, &engine, &tokenizer)?;
        let options = args.sampling.options(engine.context(), &args.prompt)?;
        Ok(Self {
            sequence: engine.sequence(),
            engine,
            tokenizer,
            chat,
            options,
            predict: args.sampling.predict()?,
            model,
            load: start.elapsed(),
        })
    }

    /// Whether a chat template is used.
    pub(super) fn is_chat(&self) -> bool {
        self.chat.is_some()
    }

    /// What the vocabulary leaves to guess, and a context that the model has not learned.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.tokenizer.warnings().to_vec();
        let (context, trained) = (self.engine.context(), self.engine.hyper().context_length);
        if context > trained {
            warnings.push(format!(
                "the context of {context} is beyond the {trained} tokens that the model was trained with; answers there lose their sense"
            ));
        }
        warnings
    }

    /// The tokens of a conversation; without a template, those of its texts one after the other.
    pub(super) fn encode(&self, messages: &[Message]) -> Result<Vec<TokenId>> {
        if let Some(chat) = &self.chat {
            return Ok(chat.prompt(&Conversation::new(messages.to_vec()))?);
        }
        let text: String = messages.iter().filter_map(Message::content).collect();
        let encode = EncodeOptions {
            add_special: true,
            parse_special: true,
        };
        let ids = self.tokenizer.encode(&text, encode)?;
        if ids.is_empty() {
            return Err(usage_error(
                "the prompt is empty, and this model has no token to begin a text with; give -p",
            ));
        }
        Ok(ids)
    }

    /// The text of tokens, control tokens written out.
    pub(super) fn decode(&self, ids: &[TokenId]) -> String {
        let options = DecodeOptions {
            unparse_special: true,
            ..DecodeOptions::default()
        };
        self.tokenizer.decode(ids, options)
    }

    /// Answers a prompt. What the sequence holds of it is used again.
    pub(super) fn answer(
        &mut self,
        prompt: Vec<TokenId>,
        listener: &mut dyn Listener,
    ) -> Result<Answer> {
        let mut options = self.options.clone();
        options.max_tokens = match self.predict {
            Predict::Unlimited => None,
            Predict::Limit(n) => Some(n),
            Predict::FillContext => Some(self.engine.context().saturating_sub(prompt.len())),
        };
        let start = Instant::now();
        let mut generation = Generation::new(&mut self.engine, self.sequence, &prompt, &options)?;
        let mut answer = Answer {
            ids: Vec::new(),
            text: String::new(),
            finish: Finish::Interrupted,
            seed: generation.seed(),
            reused: generation.reused(),
            prompt_time: Duration::ZERO,
            predicted_time: Duration::ZERO,
            prompt,
        };
        let mut finish = FinishReason::Length;
        while let Some(step) = generation.step(&mut self.engine)? {
            let Step::Token {
                token,
                text,
                finish: reason,
            } = step
            else {
                answer.prompt_time = start.elapsed();
                if listener.interrupted() {
                    return Ok(answer);
                }
                continue;
            };
            if answer.ids.is_empty() {
                answer.prompt_time = start.elapsed();
            }
            answer.ids.push(token);
            answer.text.push_str(&text);
            listener.text(&text)?;
            answer.predicted_time = start.elapsed().saturating_sub(answer.prompt_time);
            finish = reason.unwrap_or(finish);
            if reason.is_none() && listener.interrupted() {
                return Ok(answer);
            }
        }
        if answer.ids.is_empty() {
            answer.prompt_time = start.elapsed();
        }
        if self.predict == Predict::FillContext && finish == FinishReason::Length {
            finish = FinishReason::Context;
        }
        answer.finish = Finish::Reason(finish);
        Ok(answer)
    }

    /// The answer for programs.
    pub(super) fn json(&self, answer: &Answer) -> Value {
        let ids = |tokens: &[TokenId]| tokens.iter().map(|t| t.0).collect::<Vec<_>>();
        let prompt_n = answer.prompt.len() - answer.reused;
        json!({
            "model": self.model.to_string_lossy(),
            "prompt_ids": ids(&answer.prompt),
            "ids": ids(&answer.ids),
            "text": answer.text,
            "finish_reason": answer.finish.name(),
            "seed": answer.seed,
            "timings": {
                "load_ms": milliseconds(self.load),
                "prompt_n": prompt_n,
                "prompt_ms": milliseconds(answer.prompt_time),
                "prompt_per_second": rate(prompt_n, answer.prompt_time),
                "predicted_n": answer.ids.len(),
                "predicted_ms": milliseconds(answer.predicted_time),
                "predicted_per_second": rate(answer.ids.len(), answer.predicted_time),
            },
        })
    }

    /// The answer's times, for people.
    pub(super) fn speeds(&self, answer: &Answer) -> String {
        let line = |name: &str, n: usize, time: Duration, more: String| {
            let rate = rate(n, time);
            let ms = milliseconds(time);
            format!("{name:<11} {n:>6} tokens {ms:>10.1} ms {rate:>9.1} tokens/s{more}\n")
        };
        let from_cache = match answer.reused {
            0 => String::new(),
            n => format!(" ({n} more from the cache)"),
        };
        let prompt_n = answer.prompt.len() - answer.reused;
        let load = milliseconds(self.load);
        format!(
            "{:<11} {load:>24.1} ms\n{}{}finished    {}, seed {}\n",
            "load",
            line("prompt", prompt_n, answer.prompt_time, from_cache),
            line(
                "generation",
                answer.ids.len(),
                answer.predicted_time,
                String::new()
            ),
            answer.finish.name(),
            answer.seed,
        )
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn rate(n: usize, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        n as f64 / time.as_secs_f64()
    }
}

/// The template that the arguments or the model give; `None` where the prompt is to be continued as it is.
fn chat(args: &Args, engine: &Engine, tokenizer: &Arc<Tokenizer>) -> Result<Option<Chat>> {
    let chat = &args.chat;
    if chat.raw {
        return Ok(None);
    }
    let gguf = engine.gguf();
    if let Some(path) = &chat.chat_template_file {
        let place = || format!("`{}`", path.display());
        let source = crate::files::read_text(path).with_context(place)?;
        return Chat::new(&source, tokenizer).with_context(place).map(Some);
    }
    if let Some(template) = &chat.chat_template {
        // Template sources have braces, names do not.
        if template.contains('{') {
            return Ok(Some(Chat::new(template, tokenizer)?));
        }
        let found = Chat::from_gguf(gguf, Some(template), tokenizer)?;
        return found.map(Some).ok_or_else(|| {
            let names = Chat::names(gguf.metadata());
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            anyhow!("--chat-template {template}: the model has no such template ({names}); give one of these, or Jinja source")
        });
    }
    let found = Chat::from_gguf(gguf, None, tokenizer)?;
    if found.is_none() && chat.chat {
        bail!(
            "--chat: the model has no chat template; give one with --chat-template or --chat-template-file, or use --raw"
        );
    }
    if found.is_none() && (chat.system_prompt.is_some() || chat.system_prompt_file.is_some()) {
        bail!(
            "a system message needs a chat template, which the model does not have; give one with --chat-template-file"
        );
    }
    Ok(found)
}
