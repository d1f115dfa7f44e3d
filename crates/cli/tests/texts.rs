//! Texts to ids and back, through the program.

mod tiny;

use puna::gguf::{GgufWriter, StringArray};
use std::path::PathBuf;
use tiny::{BOS, Kind, Tiny, ids, success};

/// A vocabulary of Llama's kind, without a model: spaces as `\u{2581}`, and bytes for all that has no piece.
fn sentencepiece(tiny: &Tiny) -> PathBuf {
    const PIECES: [&str; 8] = [
        "\u{2581}",
        "\u{2581}\u{2581}",
        "\u{2581}\u{2581}\u{2581}\u{2581}",
        "h",
        "i",
        "hi",
        "\u{2581}hi",
        "x",
    ];
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    let bytes = tokens.len();
    tokens.extend(PIECES.map(str::to_owned));
    let kind = |id: usize| match id {
        0 => 2,
        1 | 2 => 3,
        id if id < bytes => 6,
        _ => 1,
    };
    let types: Vec<i32> = (0..tokens.len()).map(kind).collect();
    let scores: Vec<f32> = (0..tokens.len())
        .map(|id| bytes as f32 - id as f32)
        .map(|score| score.min(0.0))
        .collect();
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    writer.set("tokenizer.ggml.model", "llama").unwrap();
    writer
        .set(
            "tokenizer.ggml.tokens",
            tokens.iter().collect::<StringArray>(),
        )
        .unwrap();
    writer.set("tokenizer.ggml.token_type", &types[..]).unwrap();
    writer.set("tokenizer.ggml.scores", &scores[..]).unwrap();
    writer.set("tokenizer.ggml.bos_token_id", 1u32).unwrap();
    writer.set("tokenizer.ggml.eos_token_id", 2u32).unwrap();
    let path = tiny.path("sentencepiece.gguf");
    writer.write_file(&path).unwrap();
    path
}

fn comma(ids: &[u32]) -> String {
    let words: Vec<_> = ids.iter().map(ToString::to_string).collect();
    words.join(",")
}

/// B075.
#[test]
fn b075_leading_white_space_comes_back_exactly() {
    let tiny = Tiny::new(Kind::Base);
    let sentencepiece = sentencepiece(&tiny);
    let mut texts: Vec<String> = (0..=8).map(|n| format!("{}hi x", " ".repeat(n))).collect();
    texts.extend(
        [
            "\thi", "\n\nhi", " \t hi\n", "   ", "\n", "hi  ", "\u{a0}hi",
        ]
        .map(str::to_owned),
    );
    for model in [&sentencepiece, &tiny.model] {
        for text in &texts {
            let flags = "tokenize --json --no-bos --no-escape";
            let encoded = success(tiny.run(model, flags, &["-p", text], &[]));
            let encoded: serde_json::Value = serde_json::from_str(&encoded).unwrap();
            let encoded = comma(&ids(&encoded["ids"]));
            let decoded = success(tiny.run(model, "tokenize --no-bos --decode", &[&encoded], &[]));
            assert_eq!(decoded, format!("{text}\n"), "{encoded}");
        }
    }
}

/// B078.
#[test]
fn b078_the_tokens_of_a_character_are_its_bytes_one_by_one() {
    let tiny = Tiny::new(Kind::Base);
    let sentencepiece = sentencepiece(&tiny);
    let llama = "\u{1f999}";
    for model in [&sentencepiece, &tiny.model] {
        let json = |flags: &str, word: &str| -> serde_json::Value {
            let text = success(tiny.run(model, flags, &[word], &[]));
            serde_json::from_str(&text).unwrap()
        };
        let encoded = ids(&json("tokenize --json --no-bos -p", llama)["ids"]);
        let last = &encoded[encoded.len() - 4..];
        let mut bytes = Vec::<u8>::new();
        for id in last {
            let output = tiny.run(model, "tokenize --no-bos --decode", &[&id.to_string()], &[]);
            assert!(output.status.success());
            bytes.extend(output.stdout.strip_suffix(b"\n").unwrap());
            let shown = json("tokenize --json --no-bos --decode", &id.to_string());
            assert_eq!(shown["text"], "\u{fffd}");
        }
        assert_eq!(bytes, llama.as_bytes());
        let whole = json("tokenize --json --no-bos --decode", &comma(&encoded));
        assert_eq!(whole["text"], llama);
        let lines = success(tiny.run(model, "tokenize --no-bos -p", &[llama], &[]));
        assert!(
            lines.contains("\"\\xf0\"") && lines.contains("\"\\x99\""),
            "{lines}"
        );
    }
}

/// B078: an answer that never completes a character.
#[test]
fn b078_an_answer_of_broken_characters_is_text_all_the_same() {
    let tiny = Tiny::new(Kind::Base);
    let flags = "run --raw --ignore-eos -p hello -n 3 -l 240+1000";
    let answer = tiny.json(flags, &["--json"]);
    assert_eq!(ids(&answer["ids"]), [240; 3]);
    let plain = tiny.text(flags, &[]);
    assert_eq!(plain.trim_end_matches('\n'), answer["text"]);
    assert_eq!(answer["text"], "\u{fffd}".repeat(3));
}

/// B072: what `--display-prompt` shows, and `tokenize` gives for it, has one BOS.
#[test]
fn b072_the_one_bos_can_be_seen() {
    let tiny = Tiny::new(Kind::Chat);
    let shown = tiny.text("run --display-prompt -n 0 -p hello", &[]);
    assert!(
        shown.starts_with("<|begin|><|start|>user\nhello<|end|>"),
        "{shown}"
    );
    assert_eq!(shown.matches("<|begin|>").count(), 1);
    for more in [&["-p", "hello"][..], &["-p", "<|begin|>hello"]] {
        let list = ids(&tiny.json("tokenize --json --ids", more));
        assert_eq!(list.iter().filter(|id| **id == BOS).count(), 1, "{more:?}");
    }
}
