//! A model's chat template together with its tokenizer: conversations to token ids.

use puna_chat::{ChatError, ChatTemplate, Conversation, SpecialTokens, named_template};
use puna_gguf::{Gguf, GgufError, Metadata};
use puna_tokenizer::{Segment, TokenId, TokenKind, Tokenizer, TokenizerError};
use std::sync::Arc;

/// Turns conversations into prompts for one model.
#[derive(Debug)]
pub struct Chat {
    template: ChatTemplate,
    tokenizer: Arc<Tokenizer>,
}

/// Why a conversation did not become a prompt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatPromptError {
    /// The template cannot be used, or refused the conversation.
    #[error(transparent)]
    Template(#[from] ChatError),
    /// The text cannot be encoded.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The template's metadata cannot be read.
    #[error(transparent)]
    Metadata(#[from] GgufError),
}

impl Chat {
    /// The template of a model file: the one called `name` (`tool_use`, ...), or the default one. `None` where the file has no such
    /// template.
    ///
    /// # Errors
    /// A template that does not parse, with line and column; metadata of the wrong type.
    pub fn from_gguf(
        gguf: &Gguf,
        name: Option<&str>,
        tokenizer: &Arc<Tokenizer>,
    ) -> Result<Option<Self>, ChatPromptError> {
        // A key of the wrong type is an error and not an absent template.
        gguf.metadata().str("tokenizer.chat_template")?;
        let source = named_template(name, |key| gguf.metadata().str(key).ok().flatten());
        source
            .map(|source| Self::new(source, tokenizer))
            .transpose()
    }

    /// A template given as Jinja source.
    ///
    /// # Errors
    /// As [`Self::from_gguf`].
    pub fn new(source: &str, tokenizer: &Arc<Tokenizer>) -> Result<Self, ChatPromptError> {
        Ok(Self {
            template: ChatTemplate::compile(source, special_tokens(tokenizer))?,
            tokenizer: Arc::clone(tokenizer),
        })
    }

    /// Names of the templates in a file's metadata, `default` for the unnamed one.
    pub fn names(metadata: &Metadata) -> Vec<&str> {
        puna_chat::template_names(metadata.iter().map(|(key, _)| key))
    }

    /// The template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The prompt of a conversation. What the messages contain never becomes a control token unless the conversation says so; BOS comes
    /// first exactly once where the model wants it, and nothing is put behind the prompt.
    ///
    /// # Errors
    /// The template's refusal in its own words; what cannot be rendered or encoded.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Vec<TokenId>, ChatPromptError> {
        let rendered = self.template.render(conversation)?;
        let segments: Vec<_> = rendered
            .segments
            .iter()
            .map(|segment| Segment {
                text: &segment.text,
                special: segment.special,
            })
            .collect();
        let mut ids = self.tokenizer.encode_segments(&segments, false)?;
        if let Some(bos) = self.tokenizer.bos().filter(|_| self.tokenizer.add_bos())
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        Ok(ids)
    }
}

/// What templates and the separation of content need to know of a vocabulary.
fn special_tokens(tokenizer: &Tokenizer) -> SpecialTokens {
    let text = |id: Option<TokenId>| Some(tokenizer.token_text(id?)?.to_owned());
    let control = (0..tokenizer.len() as u32)
        .map(TokenId)
        .filter(|id| tokenizer.kind(*id) == TokenKind::Control);
    let named = [
        ("unk_token", tokenizer.unk()),
        ("pad_token", tokenizer.pad()),
    ];
    SpecialTokens {
        texts: control.filter_map(|id| text(Some(id))).collect(),
        bos: text(tokenizer.bos()),
        eos: text(tokenizer.eos()),
        named: named
            .into_iter()
            .filter_map(|(name, id)| Some((name.to_owned(), text(id)?)))
            .collect(),
    }
}
