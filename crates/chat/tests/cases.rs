//! Cases from public bug reports, and limits.

use puna_chat::{ChatError, ChatTemplate, Conversation, Message, SpecialTokens};
use serde_json::json;
use std::path::Path;

fn template(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/templates")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn tokens() -> SpecialTokens {
    SpecialTokens {
        bos: Some("<s>".into()),
        eos: Some("</s>".into()),
        ..SpecialTokens::default()
    }
}

fn compile(source: &str) -> Result<ChatTemplate, ChatError> {
    ChatTemplate::compile(source, tokens())
}

fn user() -> Conversation {
    Conversation::new(vec![Message::new("user", "hi")])
}

fn render(source: &str) -> Result<String, ChatError> {
    compile(source)?
        .render(&user())
        .map(|rendered| rendered.text())
}

#[test]
fn b080_selectattr_and_rejectattr_work_on_the_messages() {
    let text = render(&template("mistralai-Mistral-Nemo-Instruct-2407.jinja")).unwrap();
    assert_eq!(text, "<s>[INST]hi[/INST]");
}

#[test]
fn b080_an_unknown_filter_or_test_is_an_error_at_load_that_names_it() {
    for (source, place, problem) in [
        (
            "{% if x %}\n  {{ x | selectit }}{% endif %}",
            (2, 10),
            "unknown filter `selectit`",
        ),
        ("{{ x is not pretty }}", (1, 13), "unknown test `pretty`"),
    ] {
        match compile(source) {
            Err(ChatError::Syntax {
                line,
                column,
                problem: found,
                ..
            }) => {
                assert_eq!(((line, column), found.as_str()), (place, problem));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn b081_break_and_continue_work_inside_of_loops() {
    assert_eq!(
        render(
            "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"
        ),
        Ok("02".into())
    );
    assert!(
        compile(&template(
            "CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja"
        ))
        .is_ok()
    );
}

#[test]
fn b082_generation_tags_are_ignored() {
    let source = "{% for m in messages %}{%- generation -%} {{ m.content }} {%- endgeneration -%}{% endfor %}!";
    assert_eq!(render(source), Ok("hi!".into()));
}

#[test]
fn b086_a_template_that_is_still_json_escaped_is_an_error_with_line_and_column() {
    let source = r#"{{ bos_token }}\n{% for m in messages %}{{ m[\"content\"] }}{% endfor %}"#;
    let error = compile(source).unwrap_err();
    let ChatError::Syntax {
        line: 1, column, ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(source.chars().nth(column - 1), Some('\\'), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("chat template, line 1, column 46: "),
        "{error}"
    );
    assert!(
        error.to_string().contains(r#"{{ m[\"content\"] }}"#),
        "{error}"
    );
}

#[test]
fn an_error_names_line_and_column_and_shows_the_line() {
    let error = compile("a\nb {% if x %}\n  ü {{ 1 + }}\n").unwrap_err();
    let ChatError::Syntax {
        line, column, text, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!((*line, *column, text.as_str()), (3, 12, "ü {{ 1 + }}"));
}

#[test]
fn b087_a_refusal_carries_the_templates_own_message() {
    let source = template("google-gemma-2-2b-it.jinja");
    let messages = vec![Message::new("system", "x"), Message::new("user", "hi")];
    let error = compile(&source)
        .unwrap()
        .render(&Conversation::new(messages))
        .unwrap_err();
    assert_eq!(
        error,
        ChatError::Refused("System role not supported".into())
    );
    assert_eq!(error.to_string(), "System role not supported");
}

#[test]
fn b088_there_are_no_python_attributes_to_walk() {
    for source in [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ raise_exception.__globals__['os'] }}",
        "{{ (messages | attr('__class__')).x }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
    ] {
        let result = render(source);
        assert!(result.is_err(), "{source}: {result:?}");
    }
    for source in [
        "{{ ''.__class__ }}",
        "{{ messages[0].__class__ }}",
        "{{ namespace().__init__ }}",
    ] {
        assert_eq!(render(source).unwrap_or_default(), "", "{source}");
    }
}

/// An assistant's call as the `OpenAI` API gives it: no content, and arguments as a string.
fn calling(content: Option<serde_json::Value>) -> Conversation {
    let mut call = json!({"role": "assistant", "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": "{\"place\": \"Kraków\"}"}},
    ]});
    if let Some(content) = content {
        call["content"] = content;
    }
    let result = json!({"role": "tool", "tool_call_id": "abcdefghi", "name": "get_weather", "content": "sunny"});
    let messages = vec![
        Message::new("user", "hi"),
        Message::from_json(call).unwrap(),
        Message::from_json(result).unwrap(),
    ];
    let tool = json!({"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {"type": "object", "properties": {}}}});
    Conversation {
        tools: vec![tool],
        ..Conversation::new(messages)
    }
}

#[test]
fn b090_a_call_without_content_is_rendered_by_every_template_that_knows_calls() {
    // These know no calls at all, want a variable `functions`, or fail in Python too (`list.append`).
    let without = [
        "google-gemma-2",
        "microsoft-Phi-3.5",
        "HuggingFaceTB-SmolLM3",
        "LFM2",
        "ibm-granite-granite-3.3",
        "Apertus",
        "fireworks-ai",
        "Kimi-K2",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates");
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if without.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        let template = compile(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let count = |text: &str| text.matches("None").count() + text.matches("null").count();
        let empty = template
            .render(&calling(Some(json!(""))))
            .map_or(0, |rendered| count(&rendered.text()));
        for content in [None, Some(json!(null))] {
            match template.render(&calling(content)) {
                Ok(rendered) => {
                    let text = rendered.text();
                    let garbled = text.contains("'place'") || text.contains("\\\"place");
                    if garbled || !text.contains("Kraków") || count(&text) > empty {
                        problems.push(format!("{name}: {}", &text[text.len() / 2..]));
                    }
                }
                Err(error) => problems.push(format!("{name}: {error}")),
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} of them\n{}",
        problems.len(),
        problems.join("\n\n")
    );
}

#[test]
fn a_message_of_the_wrong_form_is_an_error_that_names_the_field() {
    for (value, place) in [
        (json!("hi"), "message"),
        (json!({"content": "hi"}), "message.role"),
        (json!({"role": 1}), "message.role"),
        (json!({"role": "user", "content": 5}), "message.content"),
        (
            json!({"role": "user", "content": ["a"]}),
            "message.content[]",
        ),
        (
            json!({"role": "assistant", "tool_calls": {}}),
            "message.tool_calls",
        ),
    ] {
        match Message::from_json(value.clone()) {
            Err(ChatError::Message { place: found, .. }) => assert_eq!(found, place),
            other => panic!("{value}: {other:?}"),
        }
    }
}

#[test]
fn hostile_templates_meet_limits() {
    let many = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(matches!(render(many), Err(ChatError::TooManySteps { .. })));
    assert!(matches!(
        render("{{ 'x' * 9000000 }}"),
        Err(ChatError::TooLong { .. })
    ));
    for source in [
        "{{ {'a': 1} | tojson(indent=1000000) }}",
        "{{ 'x'.center(10 ** 12) }}",
        "{{ 'x'.ljust(10 ** 30) }}",
        "{{ '\t'.expandtabs(10 ** 12) }}",
        "{{ 'x' * (10 ** 12) }}",
        "{{ '{:>1000000000}'.format('x') | length }}",
        "{{ ('%1000000000d' | format(1)) | length }}",
        "{{ 'aaaaaaaaaa'.replace('', 'b' * 99999999) }}",
        "{%- macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(200) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    ] {
        let result = render(source);
        assert!(
            result.is_err(),
            "{source}: {:?}",
            result.map(|text| text.len())
        );
    }
    for open in [
        "(",
        "[",
        "{",
        "{% if x %}",
        "{% for x in y %}",
        "{{ (",
        "not ",
        "-",
        "{{ x(",
        "x|x",
        "x.x",
        "{{ [",
    ] {
        assert!(render(&format!("{{{{ {}", open.repeat(20_000))).is_err());
        let _ = render(&open.repeat(20_000));
    }
}

/// Loops whose output, or whose values, explode.
#[test]
fn a_loop_bomb_ends_soon_and_within_bounded_memory() {
    const BIG: &str = "{{ 'x' * 100000 }}";
    let loops = |inside: &str| {
        format!(
            "{{% for a in range(99999) %}}{{% for b in range(99999) %}}{inside}{{% endfor %}}{{% endfor %}}"
        )
    };
    let set = |value: &str| loops(&format!("{{% set ns.x = {value} %}}"));
    let sources = [
        loops(""),
        loops("hello"),
        loops(BIG),
        format!(
            "{{% set s %}}{}{{% endset %}}{{{{ s | length }}}}",
            loops(BIG)
        ),
        format!(
            "{{% macro f() %}}{}{{% endmacro %}}{{{{ f() | length }}}}",
            loops(BIG)
        ),
        format!("{{% filter upper %}}{}{{% endfilter %}}", loops(BIG)),
        set("ns.x ~ ns.x"),
        set("ns.x + 'x' * 100000"),
        set("[ns.x, ns.x] | join('x' * 100000)"),
        set("(ns.x ~ ',').split('x') | join('xx')"),
        set("ns.x | replace('x', 'xx')"),
        set("ns.x.replace('x', 'xx')"),
    ];
    for source in sources {
        let source = format!("{{% set ns = namespace(x='x') %}}{source}");
        let before = peak_memory();
        let start = std::time::Instant::now();
        let error = render(&source).unwrap_err();
        assert!(
            matches!(
                error,
                ChatError::TooManySteps { .. } | ChatError::TooLong { .. }
            ),
            "{source}: {error}"
        );
        assert!(start.elapsed().as_secs() < 10, "{source}");
        if let (Some(before), Some(after)) = (before, peak_memory()) {
            assert!(
                after - before < 256 << 10,
                "{source}: {before} to {after} KiB"
            );
        }
    }
}

/// The most memory that this process has ever had, in KiB; `None` where the system does not tell.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_long_conversation_has_steps_enough() {
    let source = "{% for m in messages %}{% if m.role == 'user' %}U{% elif m.role == 'assistant' %}A{% endif %}\
                  {{ m.content | trim }}{% for c in m.content.split(' ') %}{{ loop.index }}{% endfor %}{% endfor %}";
    let messages: Vec<_> = (0..2000)
        .map(|i| {
            Message::new(
                ["user", "assistant"][i % 2],
                "some words of a message ".repeat(20),
            )
        })
        .collect();
    let template = compile(source).unwrap();
    assert!(template.render(&Conversation::new(messages)).is_ok());
}

/// What random templates are put together from.
const PARTS: &[&str] = &[
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{%- ",
    " -%}",
    "{#",
    "#}",
    "{% if x %}",
    "{% else %}",
    "{% endif %}",
    "{% for m in messages %}",
    "{% endfor %}",
    "{% set a = ",
    "{% generation %}",
    "{% endgeneration %}",
    "{% raw %}",
    "{% endraw %}",
    "messages",
    "m.content",
    "| tojson",
    "| trim",
    "(indent=",
    ")",
    "[",
    "]",
    "[::-1]",
    "'",
    "\"",
    "\\",
    "\\u00",
    "<|im_end|>",
    "<|",
    "|>",
    "ü🦙",
    "\n",
    " is ",
    "not ",
    " in ",
    "none",
    "1e999",
    "-1",
    "9999999999999999999999",
    "namespace(",
    ".split(",
    ".center(",
    "* ",
    "% ",
    "~",
    "+",
    ",",
    "raise_exception(",
    "strftime_now('%Q%-')",
    "{% macro f(x) %}",
    "{% endmacro %}",
    "f(",
    "{% break %}",
    "\u{e000}",
    "",
    "loop",
    ".",
];

#[test]
fn a_namespace_that_would_hold_itself_is_an_error() {
    for source in [
        "{% set a = namespace() %}{% set a.x = a %}{{ a }}",
        "{% set a = namespace() %}{% set b = namespace() %}{% set a.x = a %}{% set b.x = b %}{{ a == b }}",
        "{% set a = namespace() %}{% set a.x = [a] %}{{ a in [a] }}",
        "{% set a = namespace() %}{% set a.x = {'q': a} %}{{ {'q': a} | string | length }}",
        "{% set a = namespace() %}{% set b = [a] %}{% set a.x = b %}{{ a }}",
    ] {
        let error = render(source).unwrap_err().to_string();
        assert!(error.contains("namespace"), "{source}: {error}");
    }
    let fine = "{% set a = namespace(n=0) %}{% for i in [1, 2] %}{% set a.n = a.n + i %}{% endfor %}{{ a.n }}";
    assert_eq!(render(fine).unwrap(), "3");
}

#[test]
fn random_templates_never_panic() {
    let texts = ["<|im_end|>", "<|im_start|>"].map(str::to_owned).to_vec();
    let tokens = SpecialTokens { texts, ..tokens() };
    let real: Vec<String> = [
        "Qwen-Qwen3-0.6B.jinja",
        "meta-llama-Llama-3.2-3B-Instruct.jinja",
    ]
    .map(template)
    .to_vec();
    let conversation = calling(None);
    let mut state = 88_172_645_463_325_252_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let mut compiled = 0;
    for round in 0..3000 {
        let mut source: String = if round % 3 == 0 {
            real[below(2)].clone()
        } else {
            String::new()
        };
        for _ in 0..=below(12) {
            let mut at = below(source.len() + 1);
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            if round % 3 == 0 && below(2) == 0 {
                let end = (at..source.len())
                    .filter(|&end| source.is_char_boundary(end))
                    .nth(below(20));
                source.replace_range(at..end.unwrap_or(source.len()), "");
            } else {
                let at = if round % 3 == 0 { at } else { source.len() };
                source.insert_str(at, PARTS[below(PARTS.len())]);
            }
        }
        if let Ok(template) = ChatTemplate::compile(&source, tokens.clone()) {
            compiled += 1;
            if let Ok(rendered) = template.render(&conversation) {
                assert!(
                    rendered
                        .segments
                        .iter()
                        .all(|segment| !segment.text.is_empty())
                );
            }
        }
    }
    assert!(compiled > 250, "{compiled}");
}
