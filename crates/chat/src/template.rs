//! A compiled template, and rendering it.

use crate::habits::Habits;
use crate::marks::{MarkedSource, Segment, mark_all, segments, strip, unused_mark};
use crate::source::{SpanKind, adapted, bounded, excess, scan};
use crate::specials::SpecialIndex;
use crate::stack::with_deep_stack;
use crate::{ChatError, ContentTrust, Conversation, SpecialTokens, python};
use jiff::ZonedDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, Value};
use std::io::{self, Write};
use std::sync::OnceLock;

const NAME: &str = "chat template";
/// Steps of the engine that every render may take, and those that its input adds. Real templates take less than 2,000 for a short
/// conversation. A step pays for 64 bytes too, so this bounds the memory of values.
const BASE_STEPS: u64 = 500_000;
const STEPS_PER_MESSAGE: u64 = 2_000;
/// Bytes of output that every render may produce, and those that its input adds.
const BASE_OUTPUT: usize = 4 << 20;
const OUTPUT_PER_INPUT: usize = 8;
/// How often a template is rendered at most to find the literals that must not be marked.
const MAX_TRIES: usize = 32;

/// A model's chat template: compiled once, rendered for each conversation, from any thread.
#[derive(Debug)]
pub struct ChatTemplate {
    source: String,
    plain: Engine,
    tokens: SpecialTokens,
    specials: SpecialIndex,
    places: MarkedSource,
    marked: OnceLock<Option<(char, Engine)>>,
    habits: OnceLock<Habits>,
}

/// A finished prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The pieces, in order.
    pub segments: Vec<Segment>,
    /// Whether the prompt begins with the BOS token, so that the tokenizer must not add another.
    pub begins_with_bos: bool,
}

impl Rendered {
    /// The whole text, as `transformers` would give it.
    pub fn text(&self) -> String {
        self.segments
            .iter()
            .map(|segment| segment.text.as_str())
            .collect()
    }
}

impl ChatTemplate {
    /// Compiles a template. `tokens` are those of the model's vocabulary.
    ///
    /// # Errors
    /// [`ChatError::Syntax`], with line, column and the line itself.
    pub fn compile(source: &str, tokens: SpecialTokens) -> Result<Self, ChatError> {
        if let Some((at, problem)) = excess(source) {
            return Err(ChatError::syntax(source, at, problem));
        }
        let adapted = adapted(source);
        let (rewritten, plain) = with_deep_stack(|| {
            // This one only for its errors, which are to name the columns of the source as it was given.
            Engine::new(adapted.clone())?.check_names()?;
            let rewritten = bounded(&adapted);
            Ok((rewritten.clone(), Engine::new(rewritten)?))
        })?;
        let specials = SpecialIndex::new(&tokens);
        let places = MarkedSource::new(&rewritten, &specials);
        let (marked, habits) = (OnceLock::new(), OnceLock::new());
        Ok(Self {
            source: source.to_owned(),
            plain,
            tokens,
            specials,
            places,
            marked,
            habits,
        })
    }

    /// The template as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The prompt of a conversation.
    ///
    /// # Errors
    /// [`ChatError::Refused`] with the template's own words if it raises an exception; the others tell what the template did wrong.
    pub fn render(&self, conversation: &Conversation) -> Result<Rendered, ChatError> {
        with_deep_stack(|| self.render_here(conversation))
    }

    fn render_here(&self, conversation: &Conversation) -> Result<Rendered, ChatError> {
        let calls = conversation
            .messages
            .iter()
            .any(|message| message.fields().contains_key("tool_calls"));
        let habits = if calls {
            *self.habits.get_or_init(|| Habits::probe(&self.plain))
        } else {
            Habits::default()
        };
        let run = Run::new(self, conversation, habits);
        let text = self.plain.render(run.values(None), &run.limits)?;
        let segments = self.separate(&run, text)?;
        let begins_with_bos = match (&self.tokens.bos, segments.first()) {
            (Some(bos), Some(first)) => {
                first.special && !bos.is_empty() && first.text.starts_with(bos)
            }
            _ => false,
        };
        Ok(Rendered {
            segments,
            begins_with_bos,
        })
    }

    /// Cuts the prompt `text` into what the template wrote and what came from outside.
    fn separate(&self, run: &Run<'_>, text: String) -> Result<Vec<Segment>, ChatError> {
        let whole = |text: String| {
            let segment = Segment {
                text,
                special: true,
            };
            if segment.text.is_empty() {
                Vec::new()
            } else {
                vec![segment]
            }
        };
        if run.conversation.trust == ContentTrust::Trusted || self.specials.is_empty() {
            return Ok(whole(text));
        }
        let strings = run.conversation.strings();
        // Every render gives the same own text, so the one with marks everywhere is compiled once.
        let usual = self.marked.get_or_init(|| {
            let mark = unused_mark(&[self.source.as_str()])?;
            let source = self.places.with_marks(mark, |_| true);
            Some((mark, Engine::new(source).ok()?))
        });
        let clashes = |mark: char| text.contains(mark) || strings.iter().any(|s| s.contains(mark));
        if let Some((mark, engine)) = usual
            && !clashes(*mark)
            && let Some(segments) = self.try_marked(run, engine, *mark, &text)
        {
            return Ok(segments);
        }
        let texts = [&strings[..], &[self.source.as_str(), text.as_str()]].concat();
        if let Some(mark) = unused_mark(&texts)
            && let Some(segments) = self.search(run, mark, &text)
        {
            return Ok(segments);
        }
        // A token may also come about where a string meets another or the template's own text.
        let found = |s: &str| -> Vec<String> {
            let ranges = self.specials.occurrences(s).into_iter();
            ranges.filter_map(|r| s.get(r).map(str::to_owned)).collect()
        };
        let of_strings = strings.iter().find_map(|s| found(s).into_iter().next());
        let forged = of_strings.or_else(|| {
            let mut tokens = found(&text).into_iter();
            tokens.find(|token| !self.source.contains(token))
        });
        match forged {
            Some(token) => Err(ChatError::Inseparable { token }),
            None => Ok(whole(text)),
        }
    }

    /// The segments, if the marked template gives the same text.
    fn try_marked(
        &self,
        run: &Run<'_>,
        engine: &Engine,
        mark: char,
        text: &str,
    ) -> Option<Vec<Segment>> {
        let marked = engine.render(run.values(Some(mark)), &run.limits).ok()?;
        let (stripped, own) = strip(&marked, mark);
        (stripped == text).then(|| segments(text, &own, &self.specials))
    }

    /// Finds the places where marks change nothing, by halves, and uses only those.
    fn search(&self, run: &Run<'_>, mark: char, text: &str) -> Option<Vec<Segment>> {
        let mut fine = vec![false; self.places.units()];
        let mut open: Vec<_> = std::iter::once(0..fine.len()).collect();
        let mut tries = 0;
        let attempt = |chosen: &dyn Fn(usize) -> bool| {
            let engine = Engine::new(self.places.with_marks(mark, chosen)).ok()?;
            self.try_marked(run, &engine, mark, text)
        };
        while let Some(range) = open.pop() {
            if tries == MAX_TRIES {
                break;
            }
            tries += 1;
            if attempt(&|i| range.contains(&i) || fine.get(i) == Some(&true)).is_some() {
                fine.get_mut(range)?.fill(true);
            } else if range.len() > 1 {
                let middle = range.start + range.len() / 2;
                open.push(middle..range.end);
                open.push(range.start..middle);
            }
        }
        attempt(&|i| fine.get(i) == Some(&true))
    }
}

/// A conversation on its way through a template.
struct Run<'a> {
    conversation: &'a Conversation,
    tokens: &'a SpecialTokens,
    messages: Value,
    tools: Value,
    documents: Value,
    strftime_now: Value,
    limits: Limits,
}

impl<'a> Run<'a> {
    fn new(template: &'a ChatTemplate, conversation: &'a Conversation, habits: Habits) -> Self {
        let list = |values: &[serde_json::Value]| {
            if values.is_empty() {
                Value::from(())
            } else {
                values.iter().map(python::from_json).collect()
            }
        };
        let now = conversation
            .now
            .unwrap_or_else(|| ZonedDateTime::now().datetime());
        let input: usize = conversation.strings().iter().map(|text| text.len()).sum();
        let steps = (conversation.messages.len() as u64).saturating_mul(STEPS_PER_MESSAGE);
        Self {
            conversation,
            tokens: &template.tokens,
            messages: conversation
                .messages
                .iter()
                .map(|message| habits.message(message))
                .collect(),
            tools: list(&conversation.tools),
            documents: list(&conversation.documents),
            strftime_now: python::strftime_at(now),
            limits: Limits {
                steps: BASE_STEPS
                    .saturating_add(steps)
                    .saturating_add(input as u64),
                output: BASE_OUTPUT.saturating_add(input.saturating_mul(OUTPUT_PER_INPUT)),
            },
        }
    }

    /// The variables that the template sees; the texts of special tokens with marks, if there is one.
    fn values(&self, mark: Option<char>) -> Value {
        let token = |text: &str| {
            Value::from(mark.map_or_else(|| text.to_owned(), |mark| mark_all(text, mark)))
        };
        let mut values: Vec<(&str, Value)> = vec![
            ("messages", self.messages.clone()),
            ("tools", self.tools.clone()),
            ("documents", self.documents.clone()),
            (
                "add_generation_prompt",
                Value::from(self.conversation.add_generation_prompt),
            ),
            ("strftime_now", self.strftime_now.clone()),
        ];
        let named = self
            .tokens
            .named
            .iter()
            .map(|(name, text)| (name.as_str(), token(text)));
        values.extend(named);
        let known = [
            ("bos_token", &self.tokens.bos),
            ("eos_token", &self.tokens.eos),
        ];
        values.extend(
            known
                .into_iter()
                .filter_map(|(name, text)| Some((name, token(text.as_deref()?)))),
        );
        values.extend(
            self.conversation
                .extra
                .iter()
                .map(|(name, value)| (name.as_str(), python::from_json(value))),
        );
        Value::from_pairs(values)
    }
}

/// What a render may cost.
pub(crate) struct Limits {
    pub(crate) steps: u64,
    pub(crate) output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: BASE_STEPS,
            output: BASE_OUTPUT,
        }
    }
}

/// One source in an engine set up as `transformers` sets up its own.
#[derive(Debug)]
pub(crate) struct Engine {
    env: Environment<'static>,
    source: String,
}

impl Engine {
    fn new(source: String) -> Result<Self, ChatError> {
        let mut env = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        let wrap = |error: &minijinja::Error| ChatError::from_engine(error, &source, 0);
        env.set_syntax(syntax.map_err(|error| wrap(&error))?);
        env.set_debug(true);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_recursion_limit(64);
        env.set_fuel(Some(BASE_STEPS));
        python::install(&mut env);
        env.add_template_owned(NAME, source.clone())
            .map_err(|error| wrap(&error))?;
        Ok(Self { env, source })
    }

    /// Whether every filter and test exists. The engine itself would only tell when it comes to them.
    fn check_names(&self) -> Result<(), ChatError> {
        let mut state = self.env.empty_state();
        for span in scan(&self.source) {
            let name = self.source.get(span.range.clone()).unwrap_or_default();
            let (problem, what) = match span.kind {
                SpanKind::Filter => (state.apply_filter(name, &[]).err(), "filter"),
                SpanKind::Test => (state.perform_test(name, &[]).err(), "test"),
                _ => continue,
            };
            let unknown = [ErrorKind::UnknownFilter, ErrorKind::UnknownTest];
            if problem.is_some_and(|error| unknown.contains(&error.kind())) {
                let problem = format!("unknown {what} `{name}`");
                return Err(ChatError::syntax(&self.source, span.range.start, problem));
            }
        }
        Ok(())
    }

    pub(crate) fn render(&self, values: Value, limits: &Limits) -> Result<String, ChatError> {
        let mut env = self.env.clone();
        env.set_fuel(Some(limits.steps));
        let mut out = Bounded {
            bytes: Vec::new(),
            limit: limits.output,
            full: false,
        };
        let done = env
            .get_template(NAME)
            .and_then(|template| template.render_captured_to(values, &mut out).map(|_| ()));
        if out.full {
            return Err(ChatError::TooLong {
                limit: limits.output,
            });
        }
        done.map_err(|error| ChatError::from_engine(&error, &self.source, limits.steps))?;
        // The engine writes whole strings.
        Ok(String::from_utf8_lossy(&out.bytes).into_owned())
    }
}

/// A buffer that refuses to grow beyond a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.limit - self.bytes.len() {
            self.full = true;
            return Err(io::Error::other("output limit"));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
