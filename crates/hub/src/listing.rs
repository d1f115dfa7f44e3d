//! What a hub says a repository holds.

use serde::{Deserialize, Serialize};

use crate::http::{Client, encode_path};
use crate::spec::is_safe_file;
use crate::split::strip_gguf;
use crate::{HubError, HubName, Sha256Digest};

/// A model file in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteFile {
    /// Path in the repository; checked to stay inside a folder.
    pub(crate) name: String,
    pub(crate) size: Option<u64>,
    /// 64 hex digits.
    pub(crate) sha256: Option<String>,
}

impl RemoteFile {
    pub(crate) fn digest(&self) -> Option<Sha256Digest> {
        Sha256Digest::parse(self.sha256.as_deref()?)
    }
}

pub(crate) struct Listing {
    /// The commit that the revision stands for, where the hub tells.
    pub(crate) commit: Option<String>,
    /// The `.gguf` files.
    pub(crate) files: Vec<RemoteFile>,
}

#[derive(Deserialize)]
struct Model {
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    #[serde(alias = "oid")]
    sha256: Option<String>,
    size: Option<u64>,
}

/// Asks the hub.
pub(crate) fn list(name: &HubName, client: &Client) -> Result<Listing, HubError> {
    let repository = name.repository();
    let url = format!(
        "{}/api/models/{repository}/revision/{}?blobs=true",
        client.endpoint(),
        name.revision
    );
    let text = client.text(&url)?;
    let model: Model = serde_json::from_str(&text).map_err(|error| HubError::Answer {
        url: url.clone(),
        reason: format!("the listing is not understood: {error}"),
    })?;
    let mut files = Vec::new();
    for sibling in model.siblings {
        if strip_gguf(&sibling.rfilename).is_none() || !is_safe_file(&sibling.rfilename) {
            continue;
        }
        let lfs = sibling.lfs.unwrap_or(Lfs {
            sha256: None,
            size: None,
        });
        if let Some(digest) = &lfs.sha256
            && Sha256Digest::parse(digest).is_none()
        {
            return Err(HubError::Digest {
                url,
                digest: digest.chars().take(100).collect(),
            });
        }
        files.push(RemoteFile {
            name: sibling.rfilename,
            size: lfs.size.or(sibling.size),
            sha256: lfs.sha256,
        });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let commit = model
        .sha
        .filter(|sha| sha.len() == 40 && sha.bytes().all(|b| b.is_ascii_hexdigit()));
    Ok(Listing { commit, files })
}

/// Where a file of a repository is fetched from.
pub(crate) fn file_url(name: &HubName, revision: &str, file: &str, client: &Client) -> String {
    format!(
        "{}/{}/resolve/{revision}/{}",
        client.endpoint(),
        name.repository(),
        encode_path(file)
    )
}
