//! `hf:owner/repo...`: choose, then fetch. What was chosen is kept beside the files, so that the next run asks nobody.

use std::path::{Path, PathBuf};

use crate::choose::choose;
use crate::config::HUGGING_FACE;
use crate::download::{Wish, download};
use crate::hf_cache::Snapshot;
use crate::http::Client;
use crate::listing::{RemoteFile, file_url, list};
use crate::lock::{Lock, beside};
use crate::spec::is_safe_file;
use crate::{Freshness, HubConfig, HubError, HubName, NoProgress, Progress, Wanted, Ways};

/// The folder for a repository's files.
pub(crate) fn folder(name: &HubName, config: &HubConfig) -> Result<PathBuf, HubError> {
    let cache = config.cache.as_ref().ok_or_else(|| HubError::Setting {
        setting: "HOME",
        reason: "no home folder is known; set HF_HOME to the folder that downloads shall go to"
            .to_owned(),
    })?;
    let repo = if name.revision == "main" {
        name.repo.clone()
    } else {
        format!("{}@{}", name.repo, name.revision)
    };
    Ok(cache.join("hub").join(&name.owner).join(repo))
}

pub(crate) fn resolve(
    name: &HubName,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    let folder = folder(name, config)?;
    if config.freshness != Freshness::Latest
        && let Some(path) = cached(name, &folder, config)
    {
        return Ok(path);
    }
    if config.freshness == Freshness::Offline {
        return any_cached(name, &folder, config).ok_or_else(|| HubError::Offline {
            name: name.repository(),
            cache: folder,
        });
    }
    match fetch(name, &folder, config, progress) {
        Err(error) if error.is_unreachable() => {
            let Some(path) = any_cached(name, &folder, config) else {
                let place = format!("{HUGGING_FACE}/{}", name.repository());
                return Err(error.or_elsewhere(&name.repository(), &place, Ways::Hub));
            };
            progress.note(&format!(
                "{error}; using {} from an earlier download",
                path.display()
            ));
            Ok(path)
        }
        result => result,
    }
}

fn fetch(
    name: &HubName,
    folder: &Path,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    let client = Client::new(config)?;
    let listing = list(name, &client)?;
    let files = choose(&listing.files, name)?;
    let revision = listing.commit.as_deref().unwrap_or(&name.revision);
    let snapshot =
        Snapshot::find(name, config).filter(|_| config.freshness == Freshness::CacheFirst);
    if let Some(path) = snapshot.and_then(|snapshot| all_in(&snapshot, &files)) {
        return Ok(path);
    }
    let known = read_choice(name, folder).unwrap_or_default();
    for file in &files {
        let url = file_url(name, revision, &file.name, &client);
        let wish = Wish {
            url: &url,
            target: &folder.join(&file.name),
            size: file.size,
            sha256: file.digest(),
            replace: known
                .iter()
                .any(|old| old.name == file.name && old.sha256 != file.sha256),
        };
        download(&wish, &client, config, progress)?;
    }
    write_choice(name, folder, &files)?;
    first_path(folder, &files).ok_or_else(|| HubError::NoGguf {
        repo: name.repository(),
    })
}

/// What the same wish led to before.
fn cached(name: &HubName, folder: &Path, config: &HubConfig) -> Option<PathBuf> {
    let here = |file: &RemoteFile| {
        let found = std::fs::metadata(folder.join(&file.name)).ok()?;
        file.size
            .is_none_or(|size| size == found.len())
            .then_some(())
    };
    let files = read_choice(name, folder).unwrap_or_default();
    if !files.is_empty() && files.iter().all(|file| here(file).is_some()) {
        return first_path(folder, &files);
    }
    if name.wanted == Wanted::Best {
        return None;
    }
    let snapshot = Snapshot::find(name, config)?;
    all_in(&snapshot, &choose(&snapshot.files(), name).ok()?)
}

/// Whatever is here and satisfies the wish, for when nobody can be asked.
fn any_cached(name: &HubName, folder: &Path, config: &HubConfig) -> Option<PathBuf> {
    cached(name, folder, config).or_else(|| {
        let snapshot = Snapshot::find(name, config)?;
        all_in(&snapshot, &choose(&snapshot.files(), name).ok()?)
    })
}

fn all_in(snapshot: &Snapshot, files: &[RemoteFile]) -> Option<PathBuf> {
    let paths: Option<Vec<_>> = files
        .iter()
        .map(|file| snapshot.file(&file.name, file.size))
        .collect();
    paths?.into_iter().next()
}

fn first_path(folder: &Path, files: &[RemoteFile]) -> Option<PathBuf> {
    files.first().map(|file| folder.join(&file.name))
}

fn choice_path(name: &HubName, folder: &Path) -> PathBuf {
    let wish = match &name.wanted {
        Wanted::Best => "best".to_owned(),
        Wanted::Quant(quant) => format!("quant-{}", quant.to_lowercase()),
        Wanted::File(file) => format!("file-{}", file.replace('/', "--")),
    };
    folder.join("chosen").join(wish + ".json")
}

fn read_choice(name: &HubName, folder: &Path) -> Option<Vec<RemoteFile>> {
    let text = std::fs::read_to_string(choice_path(name, folder)).ok()?;
    let files: Vec<RemoteFile> = serde_json::from_str(&text).ok()?;
    files
        .iter()
        .all(|file| is_safe_file(&file.name))
        .then_some(files)
}

fn write_choice(name: &HubName, folder: &Path, files: &[RemoteFile]) -> Result<(), HubError> {
    let path = choice_path(name, folder);
    let text = serde_json::to_string_pretty(files).unwrap_or_default();
    let chosen = folder.join("chosen");
    std::fs::create_dir_all(&chosen).map_err(HubError::io(&chosen))?;
    // Written aside and renamed, since another run may be reading it.
    let _lock = Lock::take(&path, &mut NoProgress)?;
    let aside = beside(&path, "new");
    std::fs::write(&aside, text).map_err(HubError::io(&aside))?;
    std::fs::rename(&aside, &path).map_err(HubError::io(&path))
}
