//! `puna bench`: names of llama-bench, shares of the machine's best, profiles, plots, steadiness; and what `puna doctor` measures.

mod tiny;

use serde_json::{Value, json};
use tiny::{Kind, Tiny, bare, success};

/// Bytes of the tiny model's norms, which are no matrices: five vectors of 64 floats.
const NORMS: u64 = 5 * 64 * 4;

#[test]
fn bench_speaks_as_llama_bench_does() {
    let tiny = Tiny::new(Kind::NoTokenizer);
    let list = tiny.json(
        "bench --json -p 40 -n 6 -r 2 -t 1,2 --parallel 3 --depth 5 --no-ceilings",
        &[],
    );
    let list = list.as_array().unwrap();
    let sizes: Vec<_> = list
        .iter()
        .map(|e| {
            [
                &e["n_prompt"],
                &e["n_gen"],
                &e["n_threads"],
                &e["n_parallel"],
            ]
        })
        .collect();
    let expected = [[40, 0, 1, 1], [0, 6, 1, 3], [40, 0, 2, 1], [0, 6, 2, 3]];
    assert_eq!(json!(sizes), json!(expected));
    for entry in list {
        let samples: Vec<f64> = entry["samples_ts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s.as_f64().unwrap())
            .collect();
        assert_eq!(samples.len(), 2);
        let mean = samples.iter().sum::<f64>() / 2.0;
        assert!((entry["avg_ts"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
        assert_eq!(entry["n_depth"], 5);
        assert_eq!(entry["type_k"], "f16");
        for key in [
            "model_filename",
            "model_type",
            "model_size",
            "model_n_params",
            "n_batch",
            "avg_ns",
            "stddev_ns",
            "stddev_ts",
            "test_time",
            "type_v",
            "cpu_info",
            "backends",
        ] {
            assert!(!entry[key].is_null(), "{key}");
        }
    }
    assert_eq!(list[0]["model_type"], "llama 78.72 K Q8_0");
    let table = tiny.text("bench -p 8 -n 2 -r 1 -t 1 --no-ceilings", &[]);
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("pp8") && table.contains("tg2"), "{table}");
    tiny.error(2, "bench -p 0 -n 0", &[]);
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Values of a key in all entries.
fn all(entries: &Value, key: &str) -> Value {
    list(entries).iter().map(|e| e[key].clone()).collect()
}

#[test]
fn every_combination_of_the_lists_is_measured_once() {
    let tiny = Tiny::new(Kind::Base);
    let entries = tiny.json(
        "bench --json --no-ceilings -r 1 -p 8,16 -n 2 -d 0,4 --parallel 1,2 -b 8,32 -t 1",
        &[],
    );
    assert_eq!(list(&entries).len(), 2 * 2 * (2 + 2));
    let half = |key: &str| list(&all(&entries, key))[..8].to_vec();
    assert_eq!(json!(half("n_depth")), json!([0, 0, 0, 0, 4, 4, 4, 4]));
    assert_eq!(json!(half("n_prompt")), json!([8, 16, 0, 0, 8, 16, 0, 0]));
    assert_eq!(json!(half("n_parallel")), json!([1, 1, 1, 2, 1, 1, 1, 2]));
    assert_eq!(half("n_batch"), vec![json!(8); 8]);
    assert_eq!(entries[8]["n_batch"], 32);
}

#[test]
fn tokens_have_latencies_and_prompts_have_none() {
    let tiny = Tiny::new(Kind::Base);
    let entries = tiny.json("bench --json --no-ceilings -r 3 -p 8 -n 20 -t 1", &[]);
    let ns = |name: &str| entries[1][name].as_u64().unwrap();
    let [min, median, p95, max] =
        ["min", "median", "p95", "max"].map(|name| ns(&format!("token_ns_{name}")));
    assert!(0 < min && min <= median && median <= p95 && p95 <= max);
    let samples = list(&entries[1]["samples_ns"]);
    let total: u64 = samples.iter().map(|s| s.as_u64().unwrap()).sum();
    assert!(max < total && 60 * min <= total, "{min} {max} {total}");
    assert!(entries[0]["token_ns_median"].is_null());
}

#[test]
fn speeds_stand_beside_the_machines_best() {
    let tiny = Tiny::new(Kind::Base);
    let entries = tiny.json("bench --json -r 2 -p 16 -n 4 -t 1", &[]);
    for entry in list(&entries) {
        let (work, best) = (&entry["work"], &entry["ceilings"]);
        let number = |value: &Value| value.as_f64().unwrap();
        let read = number(&work["bytes_per_second"]) / number(&best["read_bytes_per_second"]);
        assert!((number(&work["read_share"]) / read - 1.0).abs() < 1e-9);
        assert!(
            number(&best["read_bytes_per_second"]) >= number(&best["read_bytes_per_second_median"])
        );
        assert!(number(&work["arithmetic_share"]) > 0.0);
        assert!(number(&work["linear_ops_per_second"]) > 0.0);
    }
    // Every matrix is read once per token; the embedding is the output matrix too, and a row of it is read beside.
    let weights = entries[1]["model_size"].as_u64().unwrap() - NORMS;
    let embedding = 64 / 32 * 34;
    assert_eq!(
        entries[1]["work"]["weight_bytes_per_run"],
        weights + embedding
    );
    let text = tiny.text("bench -r 1 -p 16 -n 4 -t 1", &[]);
    for part in [
        "GB/s",
        "GOP/s",
        "fastest token",
        "linears",
        "the machine's best, 1 thread:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_profile_holds_every_step_and_its_work() {
    let tiny = Tiny::new(Kind::Base);
    let entries = tiny.json(
        "bench --json --profile --no-ceilings -r 3 -p 16 -n 5 -t 2",
        &[],
    );
    let weights = entries[0]["model_size"].as_u64().unwrap() - NORMS;
    for (entry, runs, tokens) in [(&entries[0], 3, 48), (&entries[1], 15, 15)] {
        let profile = &entry["profile"];
        assert_eq!(profile["runs"], runs);
        let sum = |rows: &str, key: &str| -> u64 {
            list(&profile[rows])
                .iter()
                .map(|r| r[key].as_u64().unwrap())
                .sum()
        };
        for rows in ["kinds", "layers", "steps"] {
            assert_eq!(sum(rows, "ns"), sum("steps", "ns"), "{rows}");
            assert_eq!(sum(rows, "steps"), list(&profile["steps"]).len() as u64);
        }
        let (plan, whole) = (
            profile["plan_ns"].as_u64().unwrap(),
            profile["ns"].as_u64().unwrap(),
        );
        assert!(0 < sum("steps", "ns") && sum("steps", "ns") <= plan && plan <= whole);
        let times = list(&profile["steps"])
            .iter()
            .map(|r| r["ns"].as_u64().unwrap());
        assert!(times.is_sorted_by(|a, b| a >= b));
        let kinds = list(&profile["kinds"]);
        let kind = |name: &str| kinds.iter().find(|k| k["kind"] == name).unwrap();
        let linear = kind("linear Q8_0");
        assert_eq!(linear["bytes"], weights * runs);
        // What follows the last attention is wanted for one token of a run only: its output, the feed-forward part, the vocabulary.
        let output = 64 * 64 + 3 * 64 * 96 + 265 * 64;
        let elements = weights / 34 * 32;
        assert_eq!(
            linear["ops"],
            2 * ((elements - output) * tokens + output * runs)
        );
        assert!(kind("attention")["ops"].as_u64().unwrap() > 0);
        let names: Vec<_> = list(&profile["layers"])
            .iter()
            .map(|r| r["name"].as_str().unwrap())
            .collect();
        for name in [
            "blk.*.attn_q,attn_k,attn_v",
            "blk.*.ffn_gate,ffn_up",
            "layer *",
            "token_embd",
        ] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
    }
    let text = tiny.text(
        "bench --profile=steps --no-ceilings -r 1 -p 0 -n 2 -t 1",
        &[],
    );
    assert!(text.contains("blk.1.ffn_down: linear Q8_0"), "{text}");
    assert!(text.contains("linear Q8_0 x"), "{text}");
}

#[test]
fn a_busy_core_is_held_against_the_same_test_alone() {
    let tiny = Tiny::new(Kind::Base);
    let run = "bench --no-ceilings -r 2 -p 0 -n 4 -t 1 --disturb";
    let entries = tiny.json(&format!("{run} --json"), &[]);
    assert_eq!(all(&entries, "n_busy"), json!([0, 1]));
    let [alone, with] = [0, 1].map(|i| entries[i]["avg_ts"].as_f64().unwrap());
    let ratio = entries[1]["of_undisturbed"].as_f64().unwrap();
    assert!((ratio / (with / alone) - 1.0).abs() < 1e-9);
    assert!(entries[0].get("of_undisturbed").is_none());
    assert!(entries[1]["token_max_over_median"].as_f64().unwrap() >= 1.0);
    let text = tiny.text(run, &[]);
    assert!(
        text.contains("tg4 + 1 busy") && text.contains("of the undisturbed speed"),
        "{text}"
    );
}

#[test]
fn a_plot_is_well_formed_and_holds_the_speeds() {
    let tiny = Tiny::new(Kind::Base);
    let path = tiny.path("speeds.svg");
    let file = path.to_str().unwrap();
    let entries = tiny.json(
        "bench --json --no-ceilings -r 2 -p 8 -n 2 -d 0,10,20 --parallel 1,3 -t 1 --plot",
        &[file],
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let drawing = roxmltree::Document::parse(&text).unwrap();
    let root = drawing.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let words: Vec<_> = root.descendants().filter_map(|n| n.text()).collect();
    for word in [
        "tokens per second",
        "depth: tokens in the cache before",
        "sequences at the same time",
        "3 sequences",
        "depth 20",
    ] {
        assert!(words.contains(&word), "{word}");
    }
    let points: Vec<_> = root
        .descendants()
        .filter(|n| n.has_tag_name("circle"))
        .map(|n| ["data-x", "data-y"].map(|a| n.attribute(a).unwrap().to_owned()))
        .collect();
    // Prompts over depth, generations over depth and over sequences.
    assert_eq!(points.len(), 3 + 6 + 6);
    for entry in list(&entries) {
        let point = |x: &str| {
            [
                entry[x].to_string(),
                format!("{:.3}", entry["avg_ts"].as_f64().unwrap()),
            ]
        };
        assert!(points.contains(&point("n_depth")), "{entry}");
        assert!(
            entry["n_prompt"] != 0 || points.contains(&point("n_parallel")),
            "{entry}"
        );
    }
    let nothing = tiny.error(2, "bench -p 8 -n 2 --plot", &[file]);
    assert!(nothing.contains("nothing to plot"), "{nothing}");
    let nowhere = tiny.error(
        1,
        "bench --no-ceilings -r 1 -p 8 -n 0 -d 0,1 -t 1 --json --plot no/such/folder.svg",
        &[],
    );
    assert!(nowhere.contains("no/such/folder.svg"), "{nowhere}");
}

#[test]
fn doctor_measures_the_machine() {
    let value: Value =
        serde_json::from_str(&success(bare(&["doctor", "--json", "-t", "2"]))).unwrap();
    let measured = value["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 2);
    for entry in measured {
        for key in [
            "read_bytes_per_second",
            "read_bytes_per_second_median",
            "integer_ops_per_second",
            "float_ops_per_second",
        ] {
            assert!(entry[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
}
