//! File names of split models: `NAME-00002-of-00005.gguf`.

/// A name of one part of a split model, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartName<'a> {
    /// Everything before `-00002-of-00005.gguf`.
    pub(crate) stem: &'a str,
    /// Counted from 1.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl<'a> PartName<'a> {
    /// `None` for a name that is no part of a split model.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let rest = strip_gguf(name)?;
        let (rest, count) = rest.rsplit_once("-of-")?;
        let (stem, index) = rest.rsplit_once('-')?;
        let number = |text: &str| -> Option<u32> {
            (text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit()))
                .then(|| text.parse().ok())?
        };
        let (index, count) = (number(index)?, number(count)?);
        (1..=count)
            .contains(&index)
            .then_some(Self { stem, index, count })
    }

    /// The names of all parts, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count).map(|index| format!("{}-{index:05}-of-{:05}.gguf", self.stem, self.count))
    }
}

/// The name without `.gguf` of either case; `None` for other files.
pub(crate) fn strip_gguf(name: &str) -> Option<&str> {
    let at = name.len().checked_sub(5)?;
    let (stem, end) = (name.get(..at)?, name.get(at..)?);
    end.eq_ignore_ascii_case(".gguf").then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_are_taken_apart_and_put_together() {
        let part = PartName::parse("Q8_0/m-00002-of-00003.gguf").unwrap();
        assert_eq!(
            part,
            PartName {
                stem: "Q8_0/m",
                index: 2,
                count: 3
            }
        );
        assert_eq!(part.all().last().unwrap(), "Q8_0/m-00003-of-00003.gguf");
    }

    #[test]
    fn other_names_are_no_parts() {
        for name in [
            "m.gguf",
            "m-00004-of-00003.gguf",
            "m-00000-of-00003.gguf",
            "m-2-of-3.gguf",
            "m-00002-of-00003.bin",
            "é",
            "",
        ] {
            assert_eq!(PartName::parse(name), None, "{name}");
        }
    }
}
