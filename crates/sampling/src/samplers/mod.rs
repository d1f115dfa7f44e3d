//! The samplers: one file each, listed once below in llama.cpp's default order.
//!
//! A further sampler is a file here that holds a `SPEC` and a line in the list at its place in the order, and its options in
//! `SamplerOptions`.

mod min_p;
mod penalties;
mod temperature;
mod top_k;
mod top_p;

use crate::{Candidates, SamplerOptions, SamplingError};

/// One step of the chain.
pub trait Sampler: std::fmt::Debug + Send {
    /// Changes or removes candidates; at least one stays.
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError>;

    /// Learns which token came next: one of the prompt, or the one that was drawn.
    fn accept(&mut self, token: u32) {
        let _ = token;
    }

    /// Forgets everything that `accept` told.
    fn reset(&mut self) {}
}

/// What a sampler's file says about it.
struct Spec {
    /// llama.cpp's name, as in `--samplers`.
    name: &'static str,
    /// llama.cpp's letter, as in `--sampler-seq`.
    letter: char,
    /// Other accepted names, in lower case without `-` and `_`.
    aliases: &'static [&'static str],
    /// The sampler with these options, or `None` if they turn it off.
    build: fn(&SamplerOptions) -> Option<Box<dyn Sampler>>,
}

macro_rules! samplers {
    ($($module:ident $kind:ident),* $(,)?) => {
        /// A sampler that can stand in an order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SamplerKind {
            $(#[doc = concat!("The sampler of `samplers/", stringify!($module), ".rs`.")] $kind),*
        }

        impl SamplerKind {
            /// Every sampler, in the default order.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$kind => &$module::SPEC),*
                }
            }
        }
    };
}

samplers! {
    penalties Penalties,
    top_k TopK,
    top_p TopP,
    min_p MinP,
    temperature Temperature,
}

mod logit_bias;
pub(crate) use logit_bias::LogitBias;

/// Samplers of llama.cpp that are not here yet: refused by name, so that none is left out silently.
const NOT_YET: &[(&str, char)] = &[
    ("dry", 'd'),
    ("top_n_sigma", 's'),
    ("typ_p", 'y'),
    ("xtc", 'x'),
    ("infill", 'i'),
    ("adaptive_p", 'a'),
];

impl SamplerKind {
    /// llama.cpp's name of it.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// llama.cpp's letter for it.
    pub fn letter(self) -> char {
        self.spec().letter
    }

    pub(crate) fn build(self, options: &SamplerOptions) -> Option<Box<dyn Sampler>> {
        (self.spec().build)(options)
    }

    /// The sampler of a name: `top_k`, `top-k`, `topk`, `Top_K`, and the usual synonyms such as `nucleus` and `temp`.
    pub fn from_name(name: &str) -> Result<Self, SamplingError> {
        let squash = |name: &str| name.trim().to_lowercase().replace(['-', '_'], "");
        let wanted = squash(name);
        let is = |kind: &&Self| {
            let spec = kind.spec();
            squash(spec.name) == wanted || spec.aliases.contains(&wanted.as_str())
        };
        if let Some(kind) = Self::ALL.iter().find(is) {
            return Ok(*kind);
        }
        let found = name.trim().to_owned();
        let known = Self::ALL
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ");
        let known_elsewhere = NOT_YET.iter().any(|(other, _)| squash(other) == wanted)
            || ["typicalp", "typical", "typ"].contains(&wanted.as_str());
        Err(if known_elsewhere {
            SamplingError::NotImplemented { found, known }
        } else {
            SamplingError::UnknownSampler { found, known }
        })
    }

    /// The sampler of a letter, as in `--sampler-seq`.
    pub fn from_letter(letter: char) -> Result<Self, SamplingError> {
        if let Some(kind) = Self::ALL.iter().find(|kind| kind.letter() == letter) {
            return Ok(*kind);
        }
        let known = Self::ALL
            .iter()
            .map(|kind| kind.letter().to_string())
            .collect::<Vec<_>>()
            .join(", ");
        let elsewhere = NOT_YET.iter().find(|(_, other)| *other == letter);
        Err(match elsewhere {
            Some((name, _)) => SamplingError::NotImplemented {
                found: format!("{letter} ({name})"),
                known,
            },
            None => SamplingError::UnknownSampler {
                found: letter.to_string(),
                known,
            },
        })
    }

    /// An order written as names between semicolons: `penalties;top_k;temperature`. Empty text is an empty order.
    pub fn order_from_names(names: &str) -> Result<Vec<Self>, SamplingError> {
        names
            .split(';')
            .filter(|name| !name.trim().is_empty())
            .map(Self::from_name)
            .collect()
    }

    /// An order written as letters: `ekpmt`.
    pub fn order_from_letters(letters: &str) -> Result<Vec<Self>, SamplingError> {
        letters.trim().chars().map(Self::from_letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_every_usual_spelling() {
        for (name, kind) in [
            ("penalties", SamplerKind::Penalties),
            ("top_k", SamplerKind::TopK),
            ("top-k", SamplerKind::TopK),
            ("TOPK", SamplerKind::TopK),
            ("top_p", SamplerKind::TopP),
            ("nucleus", SamplerKind::TopP),
            (" min-p ", SamplerKind::MinP),
            ("temp", SamplerKind::Temperature),
            ("temperature", SamplerKind::Temperature),
        ] {
            assert_eq!(SamplerKind::from_name(name), Ok(kind), "{name}");
        }
    }

    #[test]
    fn the_default_order_is_that_of_llama_cpp() {
        let letters: String = SamplerKind::ALL.iter().map(|kind| kind.letter()).collect();
        assert_eq!(letters, "ekpmt");
        assert_eq!(
            SamplerKind::order_from_letters("ekpmt").as_deref(),
            Ok(SamplerKind::ALL)
        );
        let names = "penalties;top_k;top_p;min_p;temperature";
        assert_eq!(
            SamplerKind::order_from_names(names).as_deref(),
            Ok(SamplerKind::ALL)
        );
    }

    #[test]
    fn a_sampler_that_is_not_here_is_an_error_that_lists_the_known_ones() {
        let error = SamplerKind::order_from_letters("edskypmxt").unwrap_err();
        assert_eq!(
            error.to_string(),
            "sampler `d (dry)` is not implemented yet, expected some of e, k, p, m, t"
        );
        let error = SamplerKind::order_from_names("top_k;typical-p").unwrap_err();
        assert_eq!(
            error.to_string(),
            "sampler `typical-p` is not implemented yet, expected some of penalties, top_k, top_p, min_p, temperature"
        );
        let error = SamplerKind::from_name("top_q").unwrap_err();
        assert!(matches!(error, SamplingError::UnknownSampler { .. }));
        assert!(SamplerKind::from_letter('?').is_err());
    }
}
