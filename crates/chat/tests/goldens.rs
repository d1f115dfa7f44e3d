//! Every template of `data/templates` with every conversation of `data/conversations.json`, against what Python made of them.

use puna_chat::{ChatError, ChatTemplate, Conversation, DateTime, Message, SpecialTokens};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(path)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn tokens() -> SpecialTokens {
    SpecialTokens {
        texts: [
            "<|im_start|>",
            "<|im_end|>",
            "<|eot_id|>",
            "[INST]",
            "</think>",
        ]
        .map(str::to_owned)
        .to_vec(),
        bos: Some("<BOS>".into()),
        eos: Some("<EOS>".into()),
        named: Vec::new(),
    }
}

fn now() -> DateTime {
    "2025-03-09T14:05:07".parse().unwrap()
}

fn conversation(value: &Value) -> Conversation {
    let list = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut extra: Map<String, Value> = value.as_object().unwrap().clone();
    extra.retain(|key, _| !["messages", "tools", "add_generation_prompt"].contains(&key.as_str()));
    Conversation {
        messages: list("messages")
            .into_iter()
            .map(|m| Message::from_json(m).unwrap())
            .collect(),
        tools: list("tools"),
        add_generation_prompt: value.get("add_generation_prompt") == Some(&Value::Bool(true)),
        extra,
        now: Some(now()),
        ..Conversation::default()
    }
}

fn render(source: &str, conversation: &Conversation) -> Result<String, ChatError> {
    ChatTemplate::compile(source, tokens())?
        .render(conversation)
        .map(|rendered| rendered.text())
}

/// What differs, or nothing.
fn difference(found: &Result<String, ChatError>, golden: &Value) -> Option<String> {
    let text = golden.get("text").and_then(Value::as_str);
    let refusal = golden.get("error").and_then(Value::as_str);
    let same = match (found, text, refusal) {
        (Ok(found), Some(text), _) => found == text,
        (Err(ChatError::Refused(found)), None, Some(message)) => found == message,
        (Err(_), None, None) => true,
        _ => false,
    };
    (!same).then(|| format!("found    {found:?}\nexpected {golden}"))
}

#[test]
fn every_template_gives_the_text_that_python_gives() {
    let conversations = json(&data("conversations.json"));
    let mut names: Vec<_> = std::fs::read_dir(data("templates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() > 25);
    let mut problems = Vec::new();
    for path in names {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let goldens = json(&data(&format!("goldens/{stem}.json")));
        for (name, value) in conversations.as_object().unwrap() {
            let found = render(&source, &conversation(value));
            let problem = difference(&found, &goldens[name]);
            let known = KNOWN_TEMPLATES
                .iter()
                .find(|known| stem.starts_with(known.0) && known.1.contains(&name.as_str()));
            if let Some((_, _, reason)) = known {
                assert!(
                    problem.is_some(),
                    "{stem}, {name}: no longer differs ({reason})"
                );
                continue;
            }
            problems.extend(problem.map(|problem| format!("{stem}, {name}:\n{problem}")));
        }
    }
    assert!(
        problems.is_empty(),
        "{} differ\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Templates and conversations that are known to differ, with the reason.
const KNOWN_TEMPLATES: &[(&str, &[&str], &str)] = &[
    (
        "NousResearch-Hermes-2-Pro",
        &["plain", "system", "turns", "thinking", "odd_order"],
        "iterates over `tools`, which is none: an error in Python, no tools here",
    ),
    (
        "meetkai-functionary-medium-v3.1",
        &["tools", "tool_result"],
        "joins strings marked safe with others, which Python escapes for HTML: surely not meant",
    ),
    (
        "meetkai-functionary-medium-v3.2",
        &["tools"],
        "joins a string with the float 1e16",
    ),
    (
        "meetkai-functionary-medium-v3.2",
        &["tool_result"],
        "wants arguments as a string, which an object is turned into here, and fails in Python",
    ),
];

/// Snippets that are known to differ, with the reason.
const KNOWN: &[(&str, &str)] = &[
    (
        "{{ 'x y' | urlencode }}",
        "no such filter; no template was seen to use it",
    ),
    (
        "{{ [[1, 'a']] | groupby(1) | list | length }}",
        "grouping by position; no template was seen to use it",
    ),
    (
        "{{ 'Hi %s' % 'you' }} {{ '%d-%s' % (3, 'x') }}",
        "the engine has no % for strings",
    ),
    ("{{ [1e16, 1e-5] }}", "exponents inside of printed lists"),
    ("{{ 'x' ~ 1e16 }}", "exponents in joined strings"),
    ("{{ 'a' | safe + '<' }}", "nothing is ever escaped here"),
    (
        "{% for x in none %}{% endfor %}",
        "none is empty here, and an error in Python",
    ),
];

#[test]
fn every_snippet_gives_the_text_that_python_gives() {
    let conversations = json(&data("conversations.json"));
    let conversation = conversation(&conversations["tool_result"]);
    let mut problems = Vec::new();
    for pair in json(&data("goldens/snippets.golden.json"))
        .as_array()
        .unwrap()
    {
        let source = pair[0].as_str().unwrap();
        let problem = difference(&render(source, &conversation), &pair[1]);
        if let Some((_, reason)) = KNOWN.iter().find(|(known, _)| *known == source) {
            assert!(problem.is_some(), "no longer differs ({reason}): {source}");
        } else {
            problems.extend(problem.map(|problem| format!("{source}\n{problem}")));
        }
    }
    assert!(
        problems.is_empty(),
        "{} differ\n{}",
        problems.len(),
        problems.join("\n")
    );
}
