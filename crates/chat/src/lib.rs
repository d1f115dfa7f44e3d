//! Conversations to prompts: a model's own Jinja template, rendered as the `transformers` library renders it.
//!
//! [`ChatTemplate::compile`] takes the template from the model file, [`ChatTemplate::render`] a [`Conversation`], and the result is a list
//! of [`Segment`]s: those whose special tokens are to be recognised, which only the template's own text can produce, and the rest, which
//! are plain text whatever they look like. So a user who writes `<|im_end|>` has written ten characters and ended nothing. How that is
//! known is told in `marks.rs`. Templates are untrusted: they run without any access to the host, with bounded steps, output and depth.

mod conversation;
mod error;
mod habits;
mod marks;
mod python;
mod select;
mod source;
mod specials;
mod stack;
mod template;

pub use conversation::{ContentTrust, Conversation, Message};
pub use error::ChatError;
pub use jiff::civil::DateTime;
pub use marks::Segment;
pub use select::{named_template, template_names};
pub use specials::SpecialTokens;
pub use template::{ChatTemplate, Rendered};
