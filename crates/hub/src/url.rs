//! A file anywhere on the web.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::download::{Wish, download};
use crate::http::Client;
use crate::spec::is_safe_file;
use crate::split::PartName;
use crate::{Freshness, HubConfig, HubError, Progress, Sha256Digest, Ways};

/// Fetches a URL; one of a part of a split model stands for all its parts.
pub(crate) fn resolve(
    url: &str,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    let (place, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let (base, file) = place.rsplit_once('/').unwrap_or(("", place));
    let names: Vec<String> = match PartName::parse(file) {
        Some(part) => part.all().collect(),
        None => vec![file.to_owned()],
    };
    let folder = folder(base, query, config)?;
    let targets: Vec<PathBuf> = names
        .iter()
        .map(|name| folder.join(safe_name(name)))
        .collect();
    let first = targets.first().cloned().unwrap_or_default();
    if config.freshness != Freshness::Latest && targets.iter().all(|target| target.is_file()) {
        return Ok(first);
    }
    if config.freshness == Freshness::Offline {
        return Err(HubError::Offline {
            name: url.to_owned(),
            cache: folder,
        });
    }
    let files: Vec<_> = names
        .iter()
        .map(|name| format!("{base}/{name}{query}"))
        .zip(&targets)
        .collect();
    fetch(base, &files, config, progress)
        .map_err(|error| error.or_elsewhere("the model", url, Ways::Web))?;
    Ok(first)
}

/// Fetches files to their places, all of them or none.
fn fetch(
    base: &str,
    files: &[(String, &PathBuf)],
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<(), HubError> {
    let client = Client::new(config)?;
    if files.len() > 1 {
        let mut missing = Vec::new();
        for (url, target) in files {
            if !client.exists(url)? {
                let name = target.file_name().unwrap_or_default();
                missing.push(name.to_string_lossy().into_owned());
            }
        }
        if !missing.is_empty() {
            return Err(HubError::MissingParts {
                place: base.to_owned(),
                missing,
            });
        }
    }
    for (url, target) in files {
        let wish = Wish {
            url,
            target,
            size: None,
            sha256: None,
            replace: config.freshness == Freshness::Latest,
        };
        download(&wish, &client, config, progress)?;
    }
    Ok(())
}

/// One folder per place on the web, so that files of one name from two places are kept apart.
fn folder(base: &str, query: &str, config: &HubConfig) -> Result<PathBuf, HubError> {
    let cache = config.cache.as_ref().ok_or_else(|| HubError::Setting {
        setting: "HOME",
        reason: "no home folder is known; set HF_HOME to the folder that downloads shall go to"
            .to_owned(),
    })?;
    let digest =
        Sha256Digest::from_bytes(Sha256::digest(format!("{base}{query}")).into()).to_string();
    Ok(cache.join("url").join(&digest[..16]))
}

fn safe_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let plain: String = plain.chars().take(200).collect();
    if is_safe_file(&plain) {
        plain
    } else {
        "model.gguf".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_urls_are_safe_file_names() {
        for (name, expected) in [
            ("m-Q4_0.gguf", "m-Q4_0.gguf"),
            ("", "model.gguf"),
            ("..", "model.gguf"),
            ("a%20b\\c", "a_20b_c"),
        ] {
            assert_eq!(safe_name(name), expected);
        }
    }
}
