//! One file from a server to its place in the cache, whole or not at all.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use crate::http::{Answer, Client, Span};
use crate::lock::Lock;
use crate::partial::{BLOCK, Partial};
use crate::{HubConfig, HubError, Progress, Sha256Digest};

/// What is known about a file before it is fetched.
#[derive(Debug, Clone)]
pub(crate) struct Wish<'a> {
    pub(crate) url: &'a str,
    pub(crate) target: &'a Path,
    pub(crate) size: Option<u64>,
    pub(crate) sha256: Option<Sha256Digest>,
    /// Fetch even where a file of the right size is there.
    pub(crate) replace: bool,
}

impl Wish<'_> {
    /// A file at the target that arrived whole (it would not have its name otherwise) and has the right size.
    fn is_there(&self) -> bool {
        std::fs::metadata(self.target)
            .is_ok_and(|file| file.is_file() && self.size.is_none_or(|size| size == file.len()))
    }

    fn name(&self) -> String {
        self.target
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Fetches a file unless it is there. Two calls at once, in one process or two, share one transfer.
pub(crate) fn download(
    wish: &Wish<'_>,
    client: &Client,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<(), HubError> {
    if !wish.replace && wish.is_there() {
        return Ok(());
    }
    let before = std::fs::metadata(wish.target)
        .and_then(|file| file.modified())
        .ok();
    if let Some(folder) = wish.target.parent() {
        std::fs::create_dir_all(folder).map_err(HubError::io(folder))?;
    }
    let _lock = Lock::take(wish.target, progress)?;
    let changed = std::fs::metadata(wish.target)
        .and_then(|file| file.modified())
        .ok()
        != before;
    if wish.is_there() && (!wish.replace || changed) {
        return Ok(());
    }
    let mut repair = |identity: &str, offset: u64| fetch_block(wish, client, identity, offset);
    let mut partial = Partial::open(wish.target, &mut repair)?;
    let mut may_restart = partial.is_resumed();
    loop {
        let expected = match fill(wish, client, config, &mut partial, progress) {
            Ok(expected) => expected,
            Err(error) => {
                // An empty beginning is of no use to a later run.
                if partial.len() == 0 {
                    partial.discard()?;
                }
                return Err(error);
            }
        };
        let found = partial.sha256();
        match expected {
            Some(expected) if expected != found && may_restart => {
                progress.note(&format!(
                    "{}: the part from an earlier run was damaged; starting over",
                    wish.name()
                ));
                may_restart = false;
                restart(&mut partial, None)?;
            }
            Some(expected) if expected != found => {
                partial.discard()?;
                return Err(HubError::Hash {
                    url: wish.url.to_owned(),
                    found,
                    expected,
                });
            }
            _ => break,
        }
    }
    partial.finish()?;
    progress.finished();
    Ok(())
}

/// Transfers until all is here, taking up broken connections; gives the digest that the file must have.
fn fill(
    wish: &Wish<'_>,
    client: &Client,
    config: &HubConfig,
    partial: &mut Partial,
    progress: &mut dyn Progress,
) -> Result<Option<Sha256Digest>, HubError> {
    let mut failures = 0;
    let mut was_connected = false;
    loop {
        let before = partial.len();
        let error = match transfer(wish, client, partial, progress, &mut was_connected) {
            Ok(expected) => return Ok(expected),
            Err(error) => error,
        };
        if partial.len() >= before + BLOCK {
            failures = 0;
        }
        // A host that never answered is not asked twice: the next source may be quicker than its recovery.
        let is_hopeless = matches!(error, HubError::Connect { .. }) && !was_connected;
        if !error.is_transient() || is_hopeless || failures >= config.retries {
            return Err(error);
        }
        progress.note(&format!("{error}; trying again"));
        std::thread::sleep(pause(config.retry_delay, failures));
        failures += 1;
    }
}

fn pause(first: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(1 << failures.min(6))
        .min(Duration::from_secs(30))
}

fn transfer(
    wish: &Wish<'_>,
    client: &Client,
    partial: &mut Partial,
    progress: &mut dyn Progress,
    was_connected: &mut bool,
) -> Result<Option<Sha256Digest>, HubError> {
    let mut answer = client.get(wish.url, Span::From(partial.len()));
    if let Ok(found) = &answer
        && partial.len() > 0
        && !continues(found, partial)
    {
        // Another file than the one begun, or a place behind its end: from the start.
        let is_whole = found.status == 200;
        restart(partial, None)?;
        if !is_whole {
            answer = client.get(wish.url, Span::Whole);
        }
    }
    let answer = answer?;
    *was_connected = true;
    if answer.status == 416 {
        return Err(HubError::Answer {
            url: wish.url.to_owned(),
            reason: "HTTP 416 for a whole file".to_owned(),
        });
    }
    let size = agreed_size(wish, &answer)?;
    let expected = agreed_digest(wish, &answer)?;
    if partial.len() == 0 {
        restart(partial, answer.identity.as_deref())?;
    }
    progress.total(&wish.name(), size);
    progress.advanced(partial.len());
    copy(wish, client, answer, size, partial, progress)?;
    Ok(expected)
}

/// Whether an answer goes on where the partial file ends.
fn continues(answer: &Answer, partial: &Partial) -> bool {
    answer.status == 206
        && answer.start == partial.len()
        && answer.identity.is_some()
        && answer.identity.as_deref() == partial.identity()
}

fn agreed_size(wish: &Wish<'_>, answer: &Answer) -> Result<Option<u64>, HubError> {
    match (wish.size, answer.size) {
        (Some(expected), Some(found)) if expected != found => Err(HubError::Size {
            url: wish.url.to_owned(),
            found,
            expected,
        }),
        (wished, offered) => Ok(wished.or(offered)),
    }
}

fn agreed_digest(wish: &Wish<'_>, answer: &Answer) -> Result<Option<Sha256Digest>, HubError> {
    match (wish.sha256, answer.sha256) {
        (Some(expected), Some(found)) if expected != found => Err(HubError::Hash {
            url: wish.url.to_owned(),
            found,
            expected,
        }),
        (wished, offered) => Ok(wished.or(offered)),
    }
}

fn restart(partial: &mut Partial, identity: Option<&str>) -> Result<(), HubError> {
    partial.restart(identity).map_err(|source| HubError::Io {
        path: partial.path().to_owned(),
        source,
    })
}

fn copy(
    wish: &Wish<'_>,
    client: &Client,
    answer: Answer,
    size: Option<u64>,
    partial: &mut Partial,
    progress: &mut dyn Progress,
) -> Result<(), HubError> {
    let mut body = answer.body.into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; 128 << 10];
    loop {
        let got = body
            .read(&mut buffer)
            .map_err(|error| client.read_failure(wish.url, partial.len(), error))?;
        if got == 0 {
            break;
        }
        if let Some(size) = size
            && partial.len() + got as u64 > size
        {
            return Err(HubError::Size {
                url: wish.url.to_owned(),
                found: partial.len() + got as u64,
                expected: size,
            });
        }
        partial
            .write(&buffer[..got])
            .map_err(|source| HubError::Io {
                path: partial.path().to_owned(),
                source,
            })?;
        progress.advanced(partial.len());
    }
    match size {
        Some(size) if partial.len() < size => {
            let cause = format!("{} of {size} bytes came", partial.len());
            Err(HubError::Interrupted {
                url: wish.url.to_owned(),
                position: partial.len(),
                cause,
            })
        }
        _ => Ok(()),
    }
}

fn fetch_block(wish: &Wish<'_>, client: &Client, identity: &str, offset: u64) -> Option<Vec<u8>> {
    let answer = client
        .get(wish.url, Span::Only { offset, len: BLOCK })
        .ok()?;
    let fits = answer.status == 206
        && answer.start == offset
        && answer.identity.as_deref() == Some(identity);
    let mut bytes = Vec::with_capacity(BLOCK as usize);
    answer
        .body
        .into_reader()
        .take(if fits { BLOCK } else { 0 })
        .read_to_end(&mut bytes)
        .ok()?;
    fits.then_some(bytes)
}
