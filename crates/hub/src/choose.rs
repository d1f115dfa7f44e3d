//! Which of a repository's files is meant.

use crate::listing::RemoteFile;
use crate::split::{PartName, strip_gguf};
use crate::{HubError, HubName, Wanted};

/// Quantizations in the order in which they are taken when none is asked for: good answers for little memory first.
const PREFERRED: [&str; 14] = [
    "Q4_K_M", "Q4_0", "Q8_0", "Q4_K_S", "Q5_K_M", "Q6_K", "Q4_1", "Q5_0", "Q5_K_S", "IQ4_NL",
    "IQ4_XS", "MXFP4", "F16", "BF16",
];

/// One model: a file, or all parts of a split one.
struct Candidate<'a> {
    /// Name without part numbers and ending.
    stem: &'a str,
    parts: Vec<&'a RemoteFile>,
    count: u32,
}

/// The files to fetch, in order of their parts. All are known to be listed.
pub(crate) fn choose(files: &[RemoteFile], name: &HubName) -> Result<Vec<RemoteFile>, HubError> {
    let candidates = group(files);
    if candidates.is_empty() {
        return Err(HubError::NoGguf {
            repo: name.repository(),
        });
    }
    let chosen = match &name.wanted {
        Wanted::Best => {
            let preferred = PREFERRED
                .iter()
                .find_map(|quant| candidates.iter().find(|c| has_word(c.stem, quant)));
            preferred.or(candidates.first())
        }
        Wanted::Quant(quant) => {
            let exact = candidates.iter().find(|c| has_word(c.stem, quant));
            exact.or_else(|| candidates.iter().find(|c| has_word_start(c.stem, quant)))
        }
        Wanted::File(file) => candidates
            .iter()
            .find(|c| c.parts.iter().any(|part| part.name == *file)),
    };
    let Some(chosen) = chosen else {
        let wanted = match &name.wanted {
            Wanted::File(text) | Wanted::Quant(text) => text.clone(),
            Wanted::Best => String::new(),
        };
        let available = candidates
            .iter()
            .take(40)
            .map(|c| label(c).to_owned())
            .collect();
        return Err(HubError::NotOffered {
            repo: name.repository(),
            wanted,
            available,
        });
    };
    complete(chosen, name)
}

fn group(files: &[RemoteFile]) -> Vec<Candidate<'_>> {
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for file in files {
        let Some(plain) = strip_gguf(&file.name) else {
            continue;
        };
        let lower = plain.to_lowercase();
        // Vision encoders and importance matrices are no language models.
        if lower.contains("mmproj") || lower.contains("imatrix") {
            continue;
        }
        let (stem, count) =
            PartName::parse(&file.name).map_or((plain, 1), |part| (part.stem, part.count));
        match candidates
            .iter_mut()
            .find(|c| c.stem == stem && c.count == count)
        {
            Some(candidate) => candidate.parts.push(file),
            None => candidates.push(Candidate {
                stem,
                parts: vec![file],
                count,
            }),
        }
    }
    // The plainest name first: `m-Q4_K_M` before `m-UD-Q4_K_M` and before a variant in a folder.
    candidates.sort_by_key(|c| (c.stem.len(), c.stem));
    candidates
}

fn complete(candidate: &Candidate<'_>, name: &HubName) -> Result<Vec<RemoteFile>, HubError> {
    let Some(part) = candidate
        .parts
        .first()
        .and_then(|file| PartName::parse(&file.name))
    else {
        return Ok(candidate.parts.iter().map(|&file| file.clone()).collect());
    };
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for expected in part.all() {
        match candidate
            .parts
            .iter()
            .find(|file| file.name.eq_ignore_ascii_case(&expected))
        {
            Some(&file) => found.push(file.clone()),
            None => missing.push(expected),
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(HubError::MissingParts {
            place: name.repository(),
            missing,
        })
    }
}

/// The quantization as the file name tells it, or the file name.
fn label<'a>(candidate: &Candidate<'a>) -> &'a str {
    let base = candidate.stem.rsplit('/').next().unwrap_or(candidate.stem);
    let is_quant = |word: &str| {
        let word = word.to_uppercase();
        let digit_follows = |prefix: &str| {
            word.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        ["Q", "IQ", "TQ", "F", "BF", "MXFP"]
            .into_iter()
            .any(digit_follows)
    };
    base.rsplit(['-', '.'])
        .next()
        .filter(|word| is_quant(word))
        .unwrap_or(base)
}

/// Whether `word` stands in `text` between separators: `Q4_K` is not in `m-Q4_K_M`, nor `Q4_0` in `m-IQ4_0`.
fn has_word(text: &str, word: &str) -> bool {
    positions(text, word).any(|(before, after)| !is_inside(before) && !is_inside(after))
}

/// Like [`has_word`], for the beginning of a word: `Q4_K` is in `m-Q4_K_M`.
fn has_word_start(text: &str, word: &str) -> bool {
    positions(text, word).any(|(before, after)| {
        !is_inside(before) && after.is_none_or(|c| c == '_' || !c.is_alphanumeric())
    })
}

fn is_inside(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|c| c == '_' || c.is_alphanumeric())
}

/// The characters before and after each place of `word` in `text`, whatever the case.
fn positions(text: &str, word: &str) -> impl Iterator<Item = (Option<char>, Option<char>)> {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let found: Vec<_> = text
        .match_indices(&word)
        .map(|(at, found)| {
            (
                text[..at].chars().next_back(),
                text[at + found.len()..].chars().next(),
            )
        })
        .collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(files: &[&str], wanted: Wanted) -> Result<Vec<String>, HubError> {
        let files: Vec<_> = files
            .iter()
            .map(|name| RemoteFile {
                name: (*name).to_owned(),
                size: None,
                sha256: None,
            })
            .collect();
        let name = HubName {
            owner: "o".into(),
            repo: "r".into(),
            revision: "main".into(),
            wanted,
        };
        choose(&files, &name).map(|chosen| chosen.into_iter().map(|file| file.name).collect())
    }

    #[test]
    fn the_asked_for_quantization_is_found_as_a_word() {
        let files = [
            "m-IQ4_0.gguf",
            "m-Q4_K_M.gguf",
            "m-Q4_K_S.gguf",
            "m.q8_0.gguf",
            "UD/m-UD-Q6_K.gguf",
            "mmproj-Q5_0.gguf",
        ];
        let cases = [
            ("Q4_K_M", "m-Q4_K_M.gguf"),
            ("q4_k_s", "m-Q4_K_S.gguf"),
            ("Q4_K", "m-Q4_K_M.gguf"),
            ("Q8_0", "m.q8_0.gguf"),
            ("IQ4_0", "m-IQ4_0.gguf"),
            ("Q6_K", "UD/m-UD-Q6_K.gguf"),
            ("UD-Q6_K", "UD/m-UD-Q6_K.gguf"),
        ];
        for (quant, expected) in cases {
            assert_eq!(
                pick(&files, Wanted::Quant(quant.to_owned())).unwrap(),
                [expected],
                "{quant}"
            );
        }
        for absent in ["Q4_0", "Q5_0", "K_M", "Q4"] {
            let error = pick(&files, Wanted::Quant(absent.to_owned()));
            if absent == "Q4" {
                assert_eq!(error.unwrap(), ["m-Q4_K_M.gguf"]);
            } else {
                let error = error.unwrap_err().to_string();
                assert!(
                    error.contains(&format!("no {absent}; it has q8_0, IQ4_0, Q4_K_M")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn without_a_wish_the_best_for_most_is_taken() {
        let cases: [(&[&str], &str); 4] = [
            (
                &["m-F16.gguf", "m-Q4_0.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"],
                "m-Q4_K_M.gguf",
            ),
            (&["m-F16.gguf", "m-Q4_0.gguf", "m-Q8_0.gguf"], "m-Q4_0.gguf"),
            (&["m-Q2_K.gguf", "m-Q8_0.gguf"], "m-Q8_0.gguf"),
            (&["zz.gguf", "model.gguf"], "zz.gguf"),
        ];
        for (files, expected) in cases {
            assert_eq!(pick(files, Wanted::Best).unwrap(), [expected]);
        }
        assert!(matches!(
            pick(&["mmproj-F16.gguf"], Wanted::Best),
            Err(HubError::NoGguf { .. })
        ));
    }

    #[test]
    fn b052_a_listing_that_lacks_a_part_is_an_error_that_names_it() {
        let all = [
            "q/m-Q8_0-00001-of-00003.gguf",
            "q/m-Q8_0-00002-of-00003.gguf",
            "q/m-Q8_0-00003-of-00003.gguf",
        ];
        assert_eq!(pick(&all, Wanted::Quant("Q8_0".into())).unwrap(), all);
        assert_eq!(pick(&all, Wanted::File(all[1].into())).unwrap(), all);
        let error = pick(&[all[0], all[2]], Wanted::Best).unwrap_err();
        assert!(matches!(&error, HubError::MissingParts { missing, .. } if missing == &[all[1]]));
        assert!(error.to_string().contains("nothing was downloaded"));
    }
}
