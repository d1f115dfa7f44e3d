//! What Hugging Face's own tools have already fetched: `models--OWNER--REPO/snapshots/COMMIT/FILE`. Only read.

use std::path::PathBuf;

use crate::listing::RemoteFile;
use crate::spec::is_safe_file;
use crate::split::strip_gguf;
use crate::{HubConfig, HubName};

/// A repository's snapshot on this machine.
pub(crate) struct Snapshot {
    folder: PathBuf,
}

impl Snapshot {
    pub(crate) fn find(name: &HubName, config: &HubConfig) -> Option<Self> {
        let cache = config.hugging_face_cache.as_ref()?;
        let repository = cache.join(format!("models--{}--{}", name.owner, name.repo));
        let commit = match std::fs::read_to_string(repository.join("refs").join(&name.revision)) {
            Ok(commit) => commit.trim().to_owned(),
            Err(_) => name.revision.clone(),
        };
        let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let folder = repository.join("snapshots").join(&commit);
        (is_commit && folder.is_dir()).then_some(Self { folder })
    }

    /// The path of a file in it, if it is there and has this size.
    pub(crate) fn file(&self, name: &str, size: Option<u64>) -> Option<PathBuf> {
        let path = self.folder.join(name);
        let found = std::fs::metadata(&path).ok()?;
        (found.is_file() && size.is_none_or(|size| size == found.len())).then_some(path)
    }

    /// All model files in it, at most three folders deep.
    pub(crate) fn files(&self) -> Vec<RemoteFile> {
        let mut files = Vec::new();
        let mut folders = vec![(self.folder.clone(), String::new(), 0)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(folder) else {
                continue;
            };
            for entry in entries.flatten() {
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let (path, name) = (entry.path(), format!("{prefix}{name}"));
                if path.is_dir() && depth < 3 {
                    folders.push((path, format!("{name}/"), depth + 1));
                } else if strip_gguf(&name).is_some() && is_safe_file(&name) && path.is_file() {
                    let size = std::fs::metadata(&path).ok().map(|file| file.len());
                    files.push(RemoteFile {
                        name,
                        size,
                        sha256: None,
                    });
                }
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files
    }
}
