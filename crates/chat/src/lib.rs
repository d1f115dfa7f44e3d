//! puna-chat
