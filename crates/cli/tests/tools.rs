//! `puna inspect`, `tokenize`, `eval`, `doctor`, `pull`, `list`, and how the program fails.

mod tiny;

use serde_json::{Value, json};
use std::{io::Read, process::Stdio};
use tiny::{BOS, CONTEXT, END, Kind, Tiny, bare, failure, ids, success};

const TOKENS: &str = "256,104,263,10,65,66,67,68,258,1,2,3,4,5,6,7,8,9,200,201";

/// B242: a choice that is required is left out.
#[test]
fn usage_errors_have_code_2_and_help_has_0() {
    let output = bare::<&str>(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: puna"));
    for arguments in [
        &["frobnicate"][..],
        &["inspect", "--frobnicate"],
        &["run", "-n"],
        &["bench", "-t", "x"],
    ] {
        let error = failure(&bare(arguments), 2);
        assert!(error.contains("--help"), "{error}");
    }
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        assert!(!success(bare(arguments)).is_empty());
    }
}

#[test]
fn files_that_are_no_models_are_named() {
    let tiny = Tiny::new(Kind::Base);
    let bad = tiny.path("bad.gguf");
    std::fs::write(&bad, "no model").unwrap();
    for command in [
        "inspect",
        "tokenize -p x",
        "eval --tokens 1",
        "run -p x",
        "bench",
    ] {
        let error = failure(&tiny.run(&bad, command, &[], &[]), 1);
        assert!(error.contains("bad.gguf"), "{error}");
        let error = failure(&tiny.run("no such.gguf".as_ref(), command, &[], &[]), 1);
        assert!(error.contains("no such.gguf"), "{error}");
    }
}

#[test]
fn inspect_shows_metadata_tensors_and_memory() {
    let tiny = Tiny::new(Kind::Chat);
    let all = tiny.json("inspect --json", &[]);
    assert_eq!(all["architecture"], "llama");
    assert_eq!(all["name"], "Tiny");
    let bits = all["bits_per_weight"].as_f64().unwrap();
    assert!((8.5..8.7).contains(&bits), "{bits}");
    assert_eq!(all["tensors"].as_array().unwrap().len(), 20);
    assert_eq!(all["tensors"][0]["name"], "token_embd.weight");
    assert_eq!(all["metadata"]["llama.context_length"], CONTEXT);
    let tokens = &all["metadata"]["tokenizer.ggml.tokens"];
    assert_eq!(
        (&tokens["array"], &tokens["len"]),
        (&json!("string"), &json!(265))
    );
    assert_eq!(all["memory"]["context"], CONTEXT);
    // Two layers of a key and a value of 32 each, two bytes per element.
    assert_eq!(all["memory"]["cache_bytes"], CONTEXT * 2 * 64 * 2);
    let other = tiny.json("inspect --json -c 64 --kv-type f32", &[]);
    assert_eq!(other["memory"]["cache_bytes"], 64 * 2 * 64 * 4);
    let full = tiny.json("inspect --json --metadata --full", &[]);
    assert_eq!(
        full["metadata"]["tokenizer.ggml.tokens"]
            .as_array()
            .unwrap()
            .len(),
        265
    );
    assert!(full.get("tensors").is_none());
    let text = tiny.text("inspect", &[]);
    for part in [
        "llama",
        "blk.1.ffn_down.weight",
        "tokenizer.ggml.merges",
        "(6 string values)",
        "memory",
    ] {
        assert!(
            text.contains(part) || part.starts_with('('),
            "{part}: {text}"
        );
    }
    assert!(
        !tiny
            .text("inspect --tensors", &[])
            .contains("tokenizer.ggml")
    );
    let path = tiny.model.to_str().unwrap();
    assert_eq!(
        success(bare(&["inspect", path, "--tensors"])),
        tiny.text("inspect --tensors", &[])
    );
}

#[test]
fn inspect_works_where_the_model_cannot_be_run() {
    let tiny = Tiny::new(Kind::NoTokenizer);
    tiny.json("inspect --json", &[]);
    let mut writer = puna::gguf::GgufWriter::new();
    writer.set("general.architecture", "of-next-year").unwrap();
    let path = tiny.path("next.gguf");
    writer.write_file(&path).unwrap();
    let text = success(tiny.run(&path, "inspect --json", &[], &[]));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(
        value["memory"]["error"]
            .as_str()
            .unwrap()
            .contains("of-next-year")
    );
    assert!(success(tiny.run(&path, "inspect", &[], &[])).contains("of-next-year"));
}

#[test]
fn tokenize_gives_ids_and_pieces_and_takes_ids_back() {
    let tiny = Tiny::new(Kind::Chat);
    let hello = tiny.json("tokenize --json", &["-p", "hello the"]);
    assert_eq!(hello["pieces"], json!(["<|begin|>", "hello", " the"]));
    assert_eq!(hello["count"], 3);
    let list = ids(&hello["ids"]);
    assert_eq!(
        tiny.text("tokenize --ids", &["-p", "hello the"]),
        format!("{list:?}\n")
    );
    let lines = tiny.text("tokenize --show-count", &["-p", "hello the"]);
    assert!(
        lines.contains("\" the\"") && lines.ends_with("3 tokens\n"),
        "{lines}"
    );
    let words: Vec<_> = list.iter().map(ToString::to_string).collect();
    let decoded = tiny.text("tokenize --no-bos --decode", &[&words.join(",")]);
    assert_eq!(decoded, "hello the\n");
    let specials = |more: &[&str]| ids(&tiny.json("tokenize --json --ids -p a<|end|>", more));
    assert_eq!(specials(&[]), [BOS, 97, END]);
    assert_eq!(specials(&["--no-bos"]), [97, END]);
    assert_eq!(specials(&["--no-bos", "--no-parse-special"]).len(), 8);
    let piped = success(tiny.piped("tokenize --ids --stdin", &[], "hello\n"));
    assert_eq!(piped, format!("[{BOS}, {}, 10]\n", list[1]));
    let text = "\u{1f999} \u{20ac}\tx";
    let round = ids(&tiny.json("tokenize --json --ids --no-escape", &["-p", text]));
    let words: Vec<_> = round.iter().map(ToString::to_string).collect();
    let back = tiny.json("tokenize --json --no-bos --decode", &[&words.join(",")]);
    assert_eq!(back["text"], text);
    assert!(
        tiny.error(1, "tokenize --decode 1,99999", &[])
            .contains("99999")
    );
    tiny.error(2, "tokenize --decode 1,x", &[]);
    tiny.error(2, "tokenize", &[]);
}

/// All logits of a run, as they lie in the file.
fn logits(tiny: &Tiny, arguments: &str, environment: &[(&str, &str)]) -> Vec<u8> {
    let file = tiny.path("out.npy");
    let arguments = format!("eval --tokens {TOKENS} {arguments}");
    let output = tiny.run(
        &tiny.model,
        &arguments,
        &["--npy", file.to_str().unwrap()],
        environment,
    );
    success(output);
    std::fs::read(file).unwrap()
}

#[test]
fn eval_gives_the_same_bits_for_every_chunking_thread_count_and_kernel_set() {
    let tiny = Tiny::new(Kind::NoTokenizer);
    for kv in ["f16", "f32", "q8_0"] {
        let base = format!("--kv-type {kv}");
        let expected = logits(&tiny, &base, &[]);
        for change in ["-b 1", "-b 7", "-ub 3", "-t 1", "-t 2", "-t 3", "-c 20"] {
            assert!(
                logits(&tiny, &format!("{base} {change}"), &[]) == expected,
                "{kv} {change}"
            );
        }
        let doctor = success(bare(&["doctor", "--json", "--no-measure"]));
        let doctor: Value = serde_json::from_str(&doctor).unwrap();
        for set in doctor["kernels"]["available"].as_array().unwrap() {
            let set = set.as_str().unwrap();
            assert!(
                logits(&tiny, &base, &[("PUNA_KERNELS", set)]) == expected,
                "{kv} {set}"
            );
        }
    }
}

#[test]
fn eval_writes_numpy_files_and_tells_the_best_tokens() {
    let tiny = Tiny::new(Kind::Base);
    let npy = logits(&tiny, "", &[]);
    let header_len = usize::from(u16::from_le_bytes([npy[8], npy[9]])) + 10;
    let header = String::from_utf8_lossy(&npy[10..header_len]).into_owned();
    assert!(
        header.contains("'<f4'") && header.contains("(20, 265)"),
        "{header}"
    );
    let floats = npy[header_len..].chunks_exact(4);
    let floats: Vec<f32> = floats
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(floats.len(), 20 * 265);
    let file = tiny.path("ids.json");
    std::fs::write(&file, format!("[{TOKENS}]")).unwrap();
    let value = tiny.json(
        "eval --json --top 3 --tokens-file",
        &[file.to_str().unwrap()],
    );
    assert_eq!(value["vocabulary"], 265);
    let positions = value["positions"].as_array().unwrap();
    assert_eq!(positions.len(), 20);
    let tokens = ids(&value["tokens"]);
    let mut nll = 0.0;
    for (i, position) in positions.iter().enumerate() {
        let row = &floats[i * 265..][..265];
        let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        let top = position["top"].as_array().unwrap();
        assert_eq!(top.len(), 3);
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(top[0]["logit"].as_f64().unwrap() as f32, max);
        let logprob = f64::from(max) - sum.ln();
        assert!((top[0]["logprob"].as_f64().unwrap() - logprob).abs() < 1e-6);
        if let Some(next) = tokens.get(i + 1) {
            nll -= f64::from(row[*next as usize]) - sum.ln();
        }
    }
    let mean = value["mean_nll"].as_f64().unwrap();
    assert!((mean - nll / 19.0).abs() < 1e-6);
    assert!((value["perplexity"].as_f64().unwrap() - mean.exp()).abs() < 1e-6);
    let text = tiny.text("eval --top 2", &["-p", "hello the"]);
    assert!(
        text.contains("\"hello\"") && text.contains("3 tokens, mean"),
        "{text}"
    );
}

#[test]
fn eval_refuses_what_it_cannot_compute() {
    let tiny = Tiny::new(Kind::NoTokenizer);
    let error = tiny.error(1, "eval --tokens 1,2,99999", &[]);
    assert!(error.contains("99999") && error.contains("265"), "{error}");
    let error = tiny.error(1, "eval -c 2 --tokens 1,2,3", &[]);
    assert!(error.contains("3 tokens") && error.contains('2'), "{error}");
    let error = tiny.error(1, "eval -p x", &[]);
    assert!(error.contains("tokenizer.ggml.model"), "{error}");
    tiny.error(2, "eval", &[]);
    tiny.error(2, "eval --tokens 1 -p x", &[]);
    let file = tiny.path("ids.json");
    for wrong in ["[1, -2]", "{}", "[]", ""] {
        std::fs::write(&file, wrong).unwrap();
        tiny.error(1, "eval --tokens-file", &[file.to_str().unwrap()]);
    }
    let error = tiny.error(1, "eval --tokens 1 --npy /no/such/folder/x.npy", &[]);
    assert!(error.contains("/no/such/folder"), "{error}");
}

#[test]
fn doctor_tells_the_kernel_set_and_why() {
    let run = |set: &str| {
        let tiny = Tiny::new(Kind::Base);
        let mut command = tiny.command();
        command
            .args(["doctor", "--no-measure"])
            .env("PUNA_KERNELS", set);
        command.output().unwrap()
    };
    let text = success(run("portable"));
    assert!(text.contains("portable: forced by PUNA_KERNELS"), "{text}");
    assert!(text.contains("not fetched yet"), "{text}");
    assert!(success(run("")).contains("the best that this CPU can run"));
    let error = failure(&run("sse9"), 1);
    assert!(
        error.contains("PUNA_KERNELS=sse9") && error.contains("portable"),
        "{error}"
    );
    let tiny = Tiny::new(Kind::Base);
    let output = tiny.run(
        &tiny.model,
        "eval --tokens 1",
        &[],
        &[("PUNA_KERNELS", "sse9")],
    );
    failure(&output, 1);
}

#[test]
fn pull_and_list_know_the_cache_folder() {
    let tiny = Tiny::new(Kind::Base);
    let run = |arguments: &[&str]| tiny.command().args(arguments).output().unwrap();
    assert!(success(run(&["list"])).contains("no models"));
    assert_eq!(success(run(&["list", "--json"])), "[]\n");
    let error = failure(&run(&["pull", "hf:owner/repo:Q4_K_M"]), 1);
    assert!(
        error.contains("owner/repo") && error.contains("offline"),
        "{error}"
    );
    failure(&run(&["pull"]), 1);
    failure(&run(&["pull", "hf:owner"]), 1);
    let folder = tiny.path("hf/puna/hub/owner/repo");
    std::fs::create_dir_all(&folder).unwrap();
    let cached = folder.join("tiny.gguf");
    std::fs::copy(&tiny.model, &cached).unwrap();
    std::fs::write(folder.join("other.gguf.part"), "x").unwrap();
    let list: Value = serde_json::from_str(&success(run(&["list", "--json"]))).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1);
    let name = list[0]["name"].as_str().unwrap();
    assert_eq!(name, "hf:owner/repo/tiny.gguf");
    let listed = success(run(&["list"]));
    let lines: Vec<Vec<_>> = listed
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "SIZE", "PATH"], "{listed}");
    assert_eq!((lines.len(), lines[1][0]), (2, name), "{listed}");
    let path = list[0]["path"].as_str().unwrap();
    assert_eq!(path, cached.to_str().unwrap());
    assert_eq!(success(run(&["pull", path])).trim_end(), path);
    for part in 1..=2 {
        let part = folder.join(format!("cut-0000{part}-of-00002.gguf"));
        std::fs::write(part, "12345").unwrap();
    }
    let list: Value = serde_json::from_str(&success(run(&["list", "--json"]))).unwrap();
    assert_eq!(
        list.as_array().unwrap().len(),
        2,
        "a split model is one model"
    );
    assert_eq!(list[0]["name"], "hf:owner/repo/cut-00001-of-00002.gguf");
    assert_eq!(list[0]["bytes"], 10);
    let error = failure(&run(&["tokenize", "-hf", "owner/other", "-p", "x"]), 1);
    assert!(error.contains("owner/other"), "{error}");
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let tiny = Tiny::new(Kind::Base);
    let mut command = tiny.command();
    let text = "word ".repeat(20_000);
    let file = tiny.path("long.txt");
    std::fs::write(&file, text).unwrap();
    command
        .args(["tokenize", "-m"])
        .arg(&tiny.model)
        .arg("-f")
        .arg(&file);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn b045_eval_of_a_model_with_a_scale_that_is_no_number_fails_and_says_what_to_do() {
    let tiny = Tiny::new(Kind::Base);
    let mut bytes = std::fs::read(&tiny.model).unwrap();
    // The last block of the last tensor: a 16-bit scale, then 32 bytes.
    let scale = bytes.len() - 34;
    bytes[scale..scale + 2].copy_from_slice(&0x7e00u16.to_le_bytes());
    let damaged = tiny.path("damaged.gguf");
    std::fs::write(&damaged, bytes).unwrap();
    let error = failure(&tiny.run(&damaged, "eval --tokens 1,2", &[], &[]), 1);
    assert!(
        error.contains("not numbers") && error.contains("--check-tensors"),
        "{error}"
    );
    let error = failure(
        &tiny.run(&damaged, "eval --tokens 1,2 --check-tensors", &[], &[]),
        1,
    );
    assert!(error.contains("blk.1.ffn_down.weight"), "{error}");
}
