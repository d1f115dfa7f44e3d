//! A lean HTTP client: follows redirects itself, so that the token stays with the hub and what the hub says about a file
//! (its digest and size, on the redirect to the storage host) is not lost.

use std::time::Duration;

use ureq::http::{HeaderMap, Uri, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy, Timeout};

use crate::{HubConfig, HubError, Sha256Digest};

const MOST_REDIRECTS: usize = 10;
/// A listing of a repository longer than this is refused.
const LONGEST_TEXT: u64 = 32 << 20;

pub(crate) struct Client {
    agent: Agent,
    endpoint: String,
    authorization: Option<String>,
    stall_timeout: Duration,
}

/// The part of a file that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    Whole,
    From(u64),
    Only { offset: u64, len: u64 },
}

impl Span {
    fn header(self) -> Option<String> {
        match self {
            Self::Whole | Self::From(0) => None,
            Self::From(offset) => Some(format!("bytes={offset}-")),
            Self::Only { offset, len } => Some(format!("bytes={offset}-{}", offset + len - 1)),
        }
    }

    fn start(self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::From(offset) | Self::Only { offset, .. } => offset,
        }
    }
}

/// A server's answer, with a status of success or 416.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Body,
    /// What the hub, or else the last host, calls the file's content.
    pub(crate) sha256: Option<Sha256Digest>,
    /// The whole file's size, where known.
    pub(crate) size: Option<u64>,
    /// First byte of the body in the file.
    pub(crate) start: u64,
    /// Recognizes the content in a later run.
    pub(crate) identity: Option<String>,
}

impl Client {
    pub(crate) fn new(config: &HubConfig) -> Result<Self, HubError> {
        let authorization = match &config.token {
            Some(token) if !token.0.bytes().all(|b| b.is_ascii_graphic()) => {
                let reason = "the token holds spaces or control characters; expected the word that the hub shows under Access Tokens";
                return Err(HubError::Setting {
                    setting: "HF_TOKEN",
                    reason: reason.to_owned(),
                });
            }
            token => token.as_ref().map(|token| format!("Bearer {}", token.0)),
        };
        let agent = Agent::config_builder()
            .user_agent(concat!("puna/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy(config)?)
            .tls_config(tls(config)?)
            .timeout_resolve(Some(config.connect_timeout))
            .timeout_connect(Some(config.connect_timeout))
            .timeout_recv_response(Some(config.stall_timeout))
            .timeout_per_read(Some(config.stall_timeout))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            endpoint: config.endpoint.clone(),
            authorization,
            stall_timeout: config.stall_timeout,
        })
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Asks for a file or a part of it.
    pub(crate) fn get(&self, url: &str, span: Span) -> Result<Answer, HubError> {
        let (response, linked) = self.follow(url, span, false)?;
        let status = response.status().as_u16();
        let (headers, body) = (response.headers().clone(), response.into_body());
        let linked = &linked.unwrap_or_default();
        let content_range = text(&headers, header::CONTENT_RANGE.as_str());
        let (start, of) = match (status, content_range) {
            (206, Some(range)) => parse_content_range(range).ok_or_else(|| HubError::Answer {
                url: url.to_owned(),
                reason: format!("content-range `{range}` makes no sense"),
            })?,
            (206, None) => (span.start(), None),
            _ => (0, body.content_length()),
        };
        let sha256 = linked_digest(url, linked)?;
        let size = text(linked, "x-linked-size")
            .and_then(|size| size.parse().ok())
            .or(of);
        let identity = match sha256 {
            Some(digest) => Some(format!("sha256:{digest}")),
            None => weak_identity(&headers, size),
        };
        Ok(Answer {
            status,
            body,
            sha256,
            size,
            start,
            identity,
        })
    }

    /// Whether the server has the file; an error other than "not found" is an error.
    pub(crate) fn exists(&self, url: &str) -> Result<bool, HubError> {
        match self.follow(url, Span::Whole, true) {
            Ok(_) => Ok(true),
            Err(HubError::Status {
                status: 404 | 410, ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A short text, such as a listing.
    pub(crate) fn text(&self, url: &str) -> Result<String, HubError> {
        let (mut response, _) = self.follow(url, Span::Whole, false)?;
        let body = response
            .body_mut()
            .with_config()
            .limit(LONGEST_TEXT)
            .read_to_string();
        body.map_err(|error| self.failure(url, 0, &error))
    }

    /// The final response, and the headers of the answer on the way there that told of the file's content.
    fn follow(
        &self,
        url: &str,
        span: Span,
        head: bool,
    ) -> Result<(ureq::http::Response<Body>, Option<HeaderMap>), HubError> {
        let wrong = |reason: String| HubError::Answer {
            url: url.to_owned(),
            reason,
        };
        let mut at: Uri = url
            .parse()
            .map_err(|error| wrong(format!("not a URL: {error}")))?;
        let mut linked = None;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.ask(&at, span, head)?;
            let status = response.status().as_u16();
            if linked.is_none() && response.headers().contains_key("x-linked-etag") {
                linked = Some(response.headers().clone());
            }
            match status {
                200..=299 | 416 => return Ok((response, linked)),
                301 | 302 | 303 | 307 | 308 => {
                    let location = text(response.headers(), header::LOCATION.as_str())
                        .ok_or_else(|| wrong(format!("HTTP {status} without a new location")))?;
                    at = redirected(&at, location).map_err(wrong)?;
                }
                _ => return Err(refusal(&at, status, response.headers())),
            }
        }
        Err(wrong(format!("more than {MOST_REDIRECTS} redirects")))
    }

    /// One request. The token goes to the hub alone.
    fn ask(
        &self,
        at: &Uri,
        span: Span,
        head: bool,
    ) -> Result<ureq::http::Response<Body>, HubError> {
        let mut request = if head {
            self.agent.head(at)
        } else {
            self.agent.get(at)
        };
        if let (Some(authorization), true) = (&self.authorization, same_origin(at, &self.endpoint))
        {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some(range) = span.header() {
            request = request.header(header::RANGE, range);
        }
        request
            .call()
            .map_err(|error| self.failure(&at.to_string(), span.start(), &error))
    }

    fn failure(&self, url: &str, position: u64, error: &ureq::Error) -> HubError {
        let url = url.to_owned();
        match error {
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => HubError::Connect {
                url,
                cause: "no answer in time".to_owned(),
            },
            ureq::Error::Timeout(_) => HubError::Stalled {
                url,
                position,
                after: self.stall_timeout,
            },
            ureq::Error::Io(cause) => HubError::Connect {
                url,
                cause: cause.to_string(),
            },
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Tls(_) => {
                HubError::Connect {
                    url,
                    cause: error.to_string(),
                }
            }
            ureq::Error::ConnectProxyFailed(_) => HubError::Connect {
                url,
                cause: format!("the proxy says: {error}"),
            },
            _ => HubError::Answer {
                url,
                reason: error.to_string(),
            },
        }
    }

    /// What a failed read of a body means.
    pub(crate) fn read_failure(&self, url: &str, position: u64, error: std::io::Error) -> HubError {
        let url = url.to_owned();
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => HubError::Stalled {
                url,
                position,
                after: self.stall_timeout,
            },
            error => HubError::Interrupted {
                url,
                position,
                cause: error.to_string(),
            },
        }
    }
}

fn proxy(config: &HubConfig) -> Result<Option<Proxy>, HubError> {
    let Some(text) = &config.proxy else {
        return Ok(None);
    };
    let bad = |error: ureq::Error| HubError::Setting {
        setting: "HTTPS_PROXY",
        reason: format!("not a proxy address ({error}); expected http://[user:password@]host:port"),
    };
    let plain = Proxy::new(text).map_err(bad)?;
    let Some(exceptions) = &config.no_proxy else {
        return Ok(Some(plain));
    };
    let mut builder = Proxy::builder(plain.protocol())
        .host(plain.host())
        .port(plain.port());
    if let Some(user) = plain.username() {
        builder = builder.username(user);
    }
    if let Some(password) = plain.password() {
        builder = builder.password(password);
    }
    for exception in exceptions
        .split(',')
        .map(str::trim)
        .filter(|exception| !exception.is_empty())
    {
        builder = builder.no_proxy(exception);
    }
    builder.build().map(Some).map_err(bad)
}

fn tls(config: &HubConfig) -> Result<TlsConfig, HubError> {
    let builder = TlsConfig::builder();
    let Some(path) = &config.certificates else {
        return Ok(builder.build());
    };
    let bytes = std::fs::read(path).map_err(HubError::io(path))?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        let reason = format!("`{}` holds no PEM certificate", path.display());
        return Err(HubError::Setting {
            setting: "SSL_CERT_FILE",
            reason,
        });
    }
    Ok(builder.root_certs(RootCerts::from(certificates)).build())
}

/// Where a redirect leads; what is wrong with it is the error.
fn redirected(at: &Uri, location: &str) -> Result<Uri, String> {
    let next =
        join(at, location).ok_or_else(|| format!("redirected to `{location}`, which is no URL"))?;
    if at.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
        return Err(format!(
            "redirected to `{next}`, which is not encrypted; refused"
        ));
    }
    Ok(next)
}

/// A status that is none of success, with what the server says about it.
fn refusal(at: &Uri, status: u16, headers: &HeaderMap) -> HubError {
    let message = text(headers, "x-error-message").unwrap_or_default();
    let message = message.chars().filter(|c| !c.is_control());
    HubError::Status {
        url: at.to_string(),
        status,
        message: message.take(200).collect(),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The sha256 that a hub gives for a large file. Small files have a 40-digit git id there, which says nothing about
/// the bytes alone.
fn linked_digest(url: &str, headers: &HeaderMap) -> Result<Option<Sha256Digest>, HubError> {
    let Some(etag) = text(headers, "x-linked-etag") else {
        return Ok(None);
    };
    let etag = etag.trim_start_matches("W/").trim_matches('"');
    if etag.len() == 40 && etag.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    match Sha256Digest::parse(etag) {
        Some(digest) => Ok(Some(digest)),
        None => Err(HubError::Digest {
            url: url.to_owned(),
            digest: etag.chars().take(100).collect(),
        }),
    }
}

fn weak_identity(headers: &HeaderMap, size: Option<u64>) -> Option<String> {
    let mark = match text(headers, header::ETAG.as_str()) {
        Some(etag) => format!("etag:{etag}"),
        None => format!(
            "modified:{}",
            text(headers, header::LAST_MODIFIED.as_str())?
        ),
    };
    Some(format!("{mark} size:{}", size?))
}

/// `bytes 100-199/1000` gives 100 and 1000.
fn parse_content_range(range: &str) -> Option<(u64, Option<u64>)> {
    let (span, of) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = span.split_once('-')?;
    let of = if of == "*" {
        None
    } else {
        Some(of.parse().ok()?)
    };
    Some((first.parse().ok()?, of))
}

fn same_origin(uri: &Uri, other: &str) -> bool {
    let Ok(other) = other.parse::<Uri>() else {
        return false;
    };
    let origin = |uri: &Uri| {
        let port = uri.port_u16().or(match uri.scheme_str()? {
            "https" => Some(443),
            "http" => Some(80),
            _ => None,
        })?;
        Some((
            uri.scheme_str()?.to_ascii_lowercase(),
            uri.host()?.to_ascii_lowercase(),
            port,
        ))
    };
    origin(uri).is_some_and(|origin_| Some(origin_) == origin(&other))
}

fn join(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?;
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let full = if location.contains("://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = base
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    let uri: Uri = full.parse().ok()?;
    (matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()).then_some(uri)
}

/// Makes a path fit for a URL, keeping its slashes.
pub(crate) fn encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
            out.extend(['%', digit(byte >> 4), digit(byte)]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_joined_to_where_they_came_from() {
        let base: Uri = "https://hub.example/a/b?q=1".parse().unwrap();
        let cases = [
            (
                "https://cdn.example/x?y=z#f",
                Some("https://cdn.example/x?y=z"),
            ),
            ("//cdn.example/x", Some("https://cdn.example/x")),
            ("/x/y", Some("https://hub.example/x/y")),
            ("c", Some("https://hub.example/a/c")),
            ("file:///etc/passwd", None),
        ];
        for (location, expected) in cases {
            assert_eq!(
                join(&base, location).map(|uri| uri.to_string()).as_deref(),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let cases = [
            ("https://huggingface.co/a", true),
            ("https://HuggingFace.co:443/a", true),
            ("http://huggingface.co/a", false),
            ("https://huggingface.co:444/a", false),
            ("https://huggingface.co.evil.example/a", false),
            ("https://evil.example/huggingface.co", false),
        ];
        for (url, expected) in cases {
            assert_eq!(
                same_origin(&url.parse().unwrap(), "https://huggingface.co"),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn paths_are_made_fit_for_urls() {
        assert_eq!(encode_path("a b/é-1_.~.gguf"), "a%20b/%C3%A9-1_.~.gguf");
    }

    #[test]
    fn content_ranges_are_read() {
        assert_eq!(
            parse_content_range("bytes 100-199/1000"),
            Some((100, Some(1000)))
        );
        assert_eq!(parse_content_range("bytes 100-199/*"), Some((100, None)));
        for bad in [
            "",
            "bytes",
            "bytes */1000",
            "items 1-2/3",
            "bytes a-b/c",
            "bytes -1-2/3",
        ] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
