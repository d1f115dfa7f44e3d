//! What a user types after `-m`, taken apart.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::HubError;
use crate::split::strip_gguf;

/// A model, as the user named it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSpec {
    /// No name was given: [`DEFAULT_MODEL`](crate::DEFAULT_MODEL).
    Default,
    /// A file on this machine.
    Path(PathBuf),
    /// A repository on the hub.
    Hub(HubName),
    /// A file anywhere on the web.
    Url(String),
}

/// A model in a hub repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubName {
    /// The account.
    pub owner: String,
    /// The repository in it.
    pub repo: String,
    /// A branch, tag or commit.
    pub revision: String,
    /// Which of the repository's files.
    pub wanted: Wanted,
}

/// Which file of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// The one that suits most users.
    Best,
    /// The one quantized like this, such as `Q4_K_M`.
    Quant(String),
    /// The one with this path in the repository.
    File(String),
}

impl ModelSpec {
    /// Takes a name apart, in this order: the empty name is the default model; what exists on this machine is a path;
    /// `hf:owner/repo[@revision][:quant]` and `hf:owner/repo[@revision]/file.gguf` are on the hub (`hf.co/` and
    /// `huggingface.co/` are understood like `hf:`, with or without `https://`); `http://` and `https://` are URLs; `owner/repo[:quant]`
    /// that cannot be a file name is on the hub too; all else is a path.
    ///
    /// # Errors
    /// [`HubError::BadName`] for a hub name that is none.
    pub fn parse(name: impl AsRef<OsStr>) -> Result<Self, HubError> {
        let name = name.as_ref();
        let path = Path::new(name);
        if name.is_empty() {
            return Ok(Self::Default);
        }
        if path.exists() {
            return Ok(Self::Path(path.to_owned()));
        }
        let Some(text) = name.to_str() else {
            return Ok(Self::Path(path.to_owned()));
        };
        if let Some(rest) = text.strip_prefix("hf:") {
            return HubName::parse(rest.trim_start_matches('/'))
                .map_err(|reason| bad(text, reason))
                .map(Self::Hub);
        }
        if let Some(rest) = web_page(text) {
            return HubName::parse_page(rest)
                .map_err(|reason| bad(text, reason))
                .map(Self::Hub);
        }
        if ["http://", "https://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
        {
            return Ok(Self::Url(text.to_owned()));
        }
        let looks_local = strip_gguf(text).is_some()
            || text.starts_with(['.', '/', '~'])
            || text.matches('/').count() != 1;
        match HubName::parse(text) {
            Ok(hub) if !looks_local => Ok(Self::Hub(hub)),
            _ => Ok(Self::Path(path.to_owned())),
        }
    }
}

fn bad(name: &str, reason: &'static str) -> HubError {
    HubError::BadName {
        name: name.to_owned(),
        reason,
    }
}

/// What follows the hub's host in a name copied from a browser or from another program.
fn web_page(text: &str) -> Option<&str> {
    let text = text.strip_prefix("https://").unwrap_or(text);
    text.strip_prefix("hf.co/")
        .or_else(|| text.strip_prefix("huggingface.co/"))
}

impl HubName {
    /// `owner/repo` for messages.
    pub(crate) fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let (owner, rest) = text
            .split_once('/')
            .ok_or("the repository lacks its owner")?;
        let (head, file) = match rest.split_once('/') {
            Some((head, file)) => (head, Some(file)),
            None => (rest, None),
        };
        let (head, quant) = match head.split_once(':') {
            Some((head, quant)) => (head, Some(quant)),
            None => (head, None),
        };
        let (repo, revision) = head.split_once('@').unwrap_or((head, "main"));
        let wanted = match (file, quant) {
            (Some(_), Some(_)) => return Err("both a quantization and a file"),
            (Some(file), None) => Wanted::File(file.to_owned()),
            (None, Some(quant)) if !is_word(quant) => {
                return Err("the quantization is not a plain word");
            }
            (None, Some(quant)) if quant.eq_ignore_ascii_case("latest") => Wanted::Best,
            (None, Some(quant)) => Wanted::Quant(quant.to_owned()),
            (None, None) => Wanted::Best,
        };
        Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            revision: revision.to_owned(),
            wanted,
        }
        .checked()
    }

    /// `owner/repo`, or `owner/repo/blob/REVISION/FILE` and `.../resolve/...` as in the address bar.
    fn parse_page(text: &str) -> Result<Self, &'static str> {
        let text = text
            .split(['?', '#'])
            .next()
            .unwrap_or(text)
            .trim_end_matches('/');
        let pieces: Vec<&str> = text.splitn(5, '/').collect();
        match pieces[..] {
            [owner, repo, "blob" | "resolve", revision, file] => Self {
                owner: owner.to_owned(),
                repo: repo.to_owned(),
                revision: revision.to_owned(),
                wanted: Wanted::File(file.to_owned()),
            }
            .checked(),
            [owner, repo, "tree", revision] => Self::parse(&format!("{owner}/{repo}@{revision}")),
            _ => Self::parse(text),
        }
    }

    fn checked(self) -> Result<Self, &'static str> {
        if !is_word(&self.owner) || !is_word(&self.repo) {
            return Err("owner and repository are letters, digits, `-`, `_` and `.`");
        }
        if !is_word(&self.revision) {
            return Err("the revision is not a plain word");
        }
        match &self.wanted {
            Wanted::File(file) if !is_safe_file(file) => {
                Err("the file is not a plain path inside the repository")
            }
            Wanted::File(file) if strip_gguf(file).is_none() => {
                Err("the file does not end in .gguf")
            }
            _ => Ok(self),
        }
    }
}

/// One path component that is safe on every system.
fn is_word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty()
        && text.len() <= 128
        && !text.starts_with('.')
        && !text.ends_with('.')
        && text.bytes().all(plain)
}

/// A relative path that stays inside its folder on every system: what a hub lists is not trusted.
pub(crate) fn is_safe_file(path: &str) -> bool {
    let forbidden =
        |c: char| c.is_control() || matches!(c, '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*');
    path.len() <= 512
        && !path.contains(forbidden)
        && path.split('/').all(|piece| {
            !piece.is_empty() && !piece.starts_with('.') && !piece.ends_with(['.', ' '])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(owner: &str, repo: &str, revision: &str, wanted: Wanted) -> ModelSpec {
        ModelSpec::Hub(HubName {
            owner: owner.into(),
            repo: repo.into(),
            revision: revision.into(),
            wanted,
        })
    }

    #[test]
    fn names_are_taken_apart() {
        let quant = |q: &str| Wanted::Quant(q.to_owned());
        let file = |f: &str| Wanted::File(f.to_owned());
        let cases = [
            ("", ModelSpec::Default),
            ("hf:o/r", hub("o", "r", "main", Wanted::Best)),
            ("hf:o/r:Q4_K_M", hub("o", "r", "main", quant("Q4_K_M"))),
            ("hf:o/r:latest", hub("o", "r", "main", Wanted::Best)),
            ("hf:o/r@v1.0:Q8_0", hub("o", "r", "v1.0", quant("Q8_0"))),
            (
                "hf:o/r/sub dir/m.gguf",
                hub("o", "r", "main", file("sub dir/m.gguf")),
            ),
            ("hf:o/r@dev/m.GGUF", hub("o", "r", "dev", file("m.GGUF"))),
            ("o/r", hub("o", "r", "main", Wanted::Best)),
            (
                "o/r-1.5B.v2:IQ4_XS",
                hub("o", "r-1.5B.v2", "main", quant("IQ4_XS")),
            ),
            ("hf.co/o/r:Q4_0", hub("o", "r", "main", quant("Q4_0"))),
            (
                "https://huggingface.co/o/r",
                hub("o", "r", "main", Wanted::Best),
            ),
            (
                "https://huggingface.co/o/r/blob/main/a/m.gguf?x=1",
                hub("o", "r", "main", file("a/m.gguf")),
            ),
            (
                "https://huggingface.co/o/r/tree/dev",
                hub("o", "r", "dev", Wanted::Best),
            ),
            (
                "https://example.org/m.gguf",
                ModelSpec::Url("https://example.org/m.gguf".into()),
            ),
            ("no/such.gguf", ModelSpec::Path("no/such.gguf".into())),
            ("./o/r", ModelSpec::Path("./o/r".into())),
            ("/o/r", ModelSpec::Path("/o/r".into())),
            ("a/b/c", ModelSpec::Path("a/b/c".into())),
            ("no-such-file", ModelSpec::Path("no-such-file".into())),
        ];
        for (name, expected) in cases {
            assert_eq!(ModelSpec::parse(name).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn names_that_would_leave_the_cache_folder_are_refused() {
        for name in [
            "hf:r",
            "hf:",
            "hf:../r",
            "hf:o/..",
            "hf:o/r@../x",
            "hf:o/r/../../x.gguf",
            "hf:o/r//x.gguf",
            "hf:o/r/a\\..\\x.gguf",
            "hf:o/r/C:x.gguf",
            "hf:o/r:../x",
            "hf:o/r:",
            "hf:o/r:Q4_0/x.gguf",
            "hf:o/r/readme.md",
            "hf:o/r/.hidden.gguf",
        ] {
            assert!(
                matches!(ModelSpec::parse(name), Err(HubError::BadName { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn b243_a_path_with_spaces_and_other_scripts_opens() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "Žluťoučký model.gguf",
            "モデル 一.gguf",
            "owner:Q4_0",
            "hf:o",
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"GGUF").unwrap();
            let spec = ModelSpec::parse(&path).unwrap();
            assert_eq!(spec, ModelSpec::Path(path.clone()));
            let found = crate::resolve(
                &spec,
                &crate::HubConfig::new(folder.path()),
                &mut crate::NoProgress,
            )
            .unwrap();
            assert_eq!(found, path);
        }
    }
}
