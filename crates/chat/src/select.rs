//! Finds a template among the metadata of a model file.

/// The key of the default template.
const KEY: &str = "tokenizer.chat_template";

/// The template called `name` (`tool_use`, `rag`, ...), or the default one for `None`. `lookup` gives the string of a metadata key.
///
/// GGUF holds the default one under `tokenizer.chat_template` and the others under that key followed by a dot and the name.
pub fn named_template<'a>(
    name: Option<&str>,
    lookup: impl Fn(&str) -> Option<&'a str>,
) -> Option<&'a str> {
    match name {
        None | Some("default") => lookup(KEY).or_else(|| lookup(&format!("{KEY}.default"))),
        Some(name) => lookup(&format!("{KEY}.{name}")),
    }
}

/// The names of the templates among the keys of the metadata, `default` for the unnamed one.
pub fn template_names<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = |key: &'a str| match key.strip_prefix(KEY)? {
        "" => Some("default"),
        rest => rest.strip_prefix('.'),
    };
    keys.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_found_by_name_and_never_mistaken_for_each_other() {
        let metadata = [
            ("tokenizer.chat_template", "plain"),
            ("tokenizer.chat_template.tool_use", "tools"),
            ("tokenizer.chat_templates", "a list"),
        ];
        let lookup = |key: &str| metadata.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        assert_eq!(named_template(None, lookup), Some("plain"));
        assert_eq!(named_template(Some("tool_use"), lookup), Some("tools"));
        assert_eq!(named_template(Some("rag"), lookup), None);
        assert_eq!(
            template_names(metadata.iter().map(|(k, _)| *k)),
            ["default", "tool_use"]
        );
    }
}
