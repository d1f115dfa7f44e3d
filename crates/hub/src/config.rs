//! Settings: which hub, which folders, how long to wait. The program reads its environment and hands it down.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const HUGGING_FACE: &str = "https://huggingface.co";

/// An access token, kept out of debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// How much the cache is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// What is in the cache is used without asking anybody.
    #[default]
    CacheFirst,
    /// The hub is asked whether it has a newer file.
    Latest,
    /// Only what is in the cache; no network.
    Offline,
}

/// Everything [`resolve`](crate::resolve) needs to know about the machine and the user's wishes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HubConfig {
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    /// Sent to the hub at `endpoint` and to nobody else.
    pub token: Option<Token>,
    /// Where downloads go; `None` where no home folder is known.
    pub cache: Option<PathBuf>,
    /// The Hugging Face tools' own cache, read but never written.
    pub hugging_face_cache: Option<PathBuf>,
    /// How much the cache is trusted.
    pub freshness: Freshness,
    /// The proxy for all requests, as a URL.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// PEM file of the certificate authorities to trust in place of the built-in list.
    pub certificates: Option<PathBuf>,
    /// Limit for finding and connecting to a host.
    pub connect_timeout: Duration,
    /// A connection that brings no byte for so long is given up.
    pub stall_timeout: Duration,
    /// How often in a row a broken transfer is taken up again.
    pub retries: u32,
    /// Pause before the first retry; doubled each time.
    pub retry_delay: Duration,
    /// The command that `download ...` is appended to.
    pub pip_command: Vec<String>,
    /// Pip is ended when it brings no byte for so long.
    pub pip_stall_timeout: Duration,
}

impl HubConfig {
    /// The defaults with downloads in the folder `cache`.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: Some(cache.into()),
            ..Self::bare()
        }
    }

    fn bare() -> Self {
        let python = if cfg!(windows) { "python" } else { "python3" };
        Self {
            endpoint: HUGGING_FACE.to_owned(),
            token: None,
            cache: None,
            hugging_face_cache: None,
            freshness: Freshness::CacheFirst,
            proxy: None,
            no_proxy: None,
            certificates: None,
            connect_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(30),
            retries: 5,
            retry_delay: Duration::from_millis(500),
            pip_command: [python, "-m", "pip"].map(str::to_owned).to_vec(),
            pip_stall_timeout: Duration::from_mins(3),
        }
    }

    /// Reads the variables that Hugging Face's own tools read, through `lookup` (a program passes `std::env::var`):
    ///
    /// | variable | meaning |
    /// | --- | --- |
    /// | `HF_ENDPOINT` | the hub's address |
    /// | `HF_TOKEN`, `HF_TOKEN_PATH`, `$HF_HOME/token` | access token, or the file that holds it |
    /// | `HF_HOME` | downloads go to `$HF_HOME/puna`; what Hugging Face's tools have fetched is found |
    /// | `HF_HUB_CACHE` | where Hugging Face's tools keep models |
    /// | `HF_HUB_OFFLINE` | no network |
    /// | `XDG_CACHE_HOME` | downloads go to `$XDG_CACHE_HOME/puna`, else to `~/.cache/puna` |
    /// | `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` | proxy, in either case |
    /// | `SSL_CERT_FILE` | certificate authorities |
    ///
    /// Empty variables count as unset.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| {
            lookup(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let either = |name: &str| text(name).or_else(|| text(&name.to_lowercase()));
        let folder = |name: &str| text(name).map(PathBuf::from);

        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let caches =
            folder("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
        let own_hf_home = folder("HF_HOME");
        let hf_home = own_hf_home
            .clone()
            .or_else(|| caches.as_ref().map(|caches| caches.join("huggingface")));
        let token_file =
            folder("HF_TOKEN_PATH").or_else(|| hf_home.as_ref().map(|home| home.join("token")));
        let offline = text("HF_HUB_OFFLINE").is_some_and(|value| {
            matches!(value.to_lowercase().as_str(), "1" | "true" | "yes" | "on")
        });

        Self {
            endpoint: text("HF_ENDPOINT").map_or_else(
                || HUGGING_FACE.to_owned(),
                |endpoint| with_scheme(&endpoint),
            ),
            token: text("HF_TOKEN")
                .or_else(|| token_file.as_deref().and_then(read_token))
                .map(Token),
            cache: own_hf_home.or(caches).map(|folder| folder.join("puna")),
            hugging_face_cache: folder("HF_HUB_CACHE")
                .or_else(|| hf_home.map(|home| home.join("hub"))),
            freshness: if offline {
                Freshness::Offline
            } else {
                Freshness::CacheFirst
            },
            proxy: ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"]
                .into_iter()
                .find_map(either),
            no_proxy: either("NO_PROXY"),
            certificates: folder("SSL_CERT_FILE"),
            ..Self::bare()
        }
    }
}

fn with_scheme(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.contains("://") {
        endpoint.to_owned()
    } else {
        format!("https://{endpoint}")
    }
}

fn read_token(path: &Path) -> Option<String> {
    let token = std::fs::read_to_string(path).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> HubConfig {
        HubConfig::from_env(|name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_cache_folder_follows_hf_home_then_xdg_then_home() {
        type Variables = [(&'static str, &'static str)];
        let cases: [(&Variables, Option<&str>); 5] = [
            (
                &[
                    ("HF_HOME", "/big/hf"),
                    ("XDG_CACHE_HOME", "/x"),
                    ("HOME", "/h"),
                ],
                Some("/big/hf/puna"),
            ),
            (&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/x/puna")),
            (&[("HOME", "/h"), ("HF_HOME", "")], Some("/h/.cache/puna")),
            (&[("USERPROFILE", "/u")], Some("/u/.cache/puna")),
            (&[], None),
        ];
        for (variables, expected) in cases {
            assert_eq!(
                config(variables).cache,
                expected.map(PathBuf::from),
                "{variables:?}"
            );
        }
    }

    #[test]
    fn the_endpoint_gets_a_scheme_and_loses_its_slash() {
        assert_eq!(config(&[]).endpoint, "https://huggingface.co");
        assert_eq!(
            config(&[("HF_ENDPOINT", "http://127.0.0.1:9/")]).endpoint,
            "http://127.0.0.1:9"
        );
        assert_eq!(
            config(&[("HF_ENDPOINT", "hub.example")]).endpoint,
            "https://hub.example"
        );
    }

    #[test]
    fn the_token_comes_from_the_variable_or_from_the_file_and_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(
            config(&[("HF_HOME", home)]).token,
            Some(Token("hf_file".to_owned()))
        );
        let both = config(&[("HF_HOME", home), ("HF_TOKEN", "hf_variable")]);
        assert_eq!(both.token, Some(Token("hf_variable".to_owned())));
        assert!(!format!("{both:?}").contains("hf_variable"));
    }

    #[test]
    fn offline_and_proxies_are_read() {
        assert_eq!(
            config(&[("HF_HUB_OFFLINE", "1")]).freshness,
            Freshness::Offline
        );
        assert_eq!(
            config(&[("HF_HUB_OFFLINE", "0")]).freshness,
            Freshness::CacheFirst
        );
        assert_eq!(
            config(&[("https_proxy", "http://p:1")]).proxy.as_deref(),
            Some("http://p:1")
        );
    }
}
