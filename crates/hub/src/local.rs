//! A path on this machine.

use std::path::{Path, PathBuf};

use crate::HubError;
use crate::split::{PartName, strip_gguf};

/// The file itself, or the one model in a folder.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, HubError> {
    let kind = match std::fs::metadata(path) {
        Ok(kind) => kind,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(HubError::NoFile(path.to_owned()));
        }
        Err(error) => return Err(HubError::io(path)(error)),
    };
    if !kind.is_dir() {
        return Ok(path.to_owned());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(HubError::io(path))? {
        let name = entry.map_err(HubError::io(path))?.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_model = strip_gguf(name).is_some() && !name.to_lowercase().contains("mmproj");
        if is_model && PartName::parse(name).is_none_or(|part| part.index == 1) {
            found.push(name.to_owned());
        }
    }
    found.sort();
    match &found[..] {
        [only] => Ok(path.join(only)),
        _ => Err(HubError::Folder {
            path: path.to_owned(),
            found,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_one_model_stands_for_it_and_one_with_several_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(
            resolve(path)
                .unwrap_err()
                .to_string()
                .contains("holds no .gguf file")
        );
        for name in [
            "m-00001-of-00002.gguf",
            "m-00002-of-00002.gguf",
            "mmproj-f16.gguf",
            "readme.md",
        ] {
            std::fs::write(path.join(name), b"x").unwrap();
        }
        assert_eq!(resolve(path).unwrap(), path.join("m-00001-of-00002.gguf"));
        std::fs::write(path.join("n.gguf"), b"x").unwrap();
        assert!(
            resolve(path)
                .unwrap_err()
                .to_string()
                .contains("m-00001-of-00002.gguf, n.gguf")
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = resolve(Path::new("no such/model.gguf"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no file `no such/model.gguf`"), "{error}");
    }
}
