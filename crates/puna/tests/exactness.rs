//! The promise of one result: the logits of a token are the same bits, whatever surrounds its computation.
//!
//! A tiny model with sliding windows and grouped heads, long enough to pass pages (64 positions), windows and segments (1024).

use puna::{
    CacheType, CpuBackend, Engine, EngineOptions, Feed, Gguf, SeqId, TokenId, Want,
    cpu::kernels::Set,
    gguf::{ElementType, GgufWriter, StringArray},
};
use std::sync::Arc;

const WIDTH: u64 = 64;
const HIDDEN: u64 = 96;
const HEAD: u64 = 32;
const LAYERS: u32 = 3;
const VOCABULARY: u64 = 50;

/// Numbers from -1 to 1.
fn random(state: &mut u64) -> f32 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Two heads over one KV head; two layers look through a window of 100 positions, the third sees all.
fn model() -> Arc<Gguf> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "gemma3").unwrap();
    for (key, value) in [
        ("context_length", 2048),
        ("embedding_length", WIDTH as u32),
        ("block_count", LAYERS),
        ("feed_forward_length", HIDDEN as u32),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", HEAD as u32),
        ("attention.value_length", HEAD as u32),
        ("attention.sliding_window", 100),
        ("attention.sliding_window_pattern", 3),
    ] {
        writer.set(&format!("gemma3.{key}"), value).unwrap();
    }
    writer
        .set("gemma3.attention.layer_norm_rms_epsilon", 1e-6f32)
        .unwrap();
    let tokens: Vec<String> = (0..VOCABULARY).map(|i| format!("t{i}")).collect();
    writer.set("tokenizer.ggml.model", "none").unwrap();
    writer
        .set(
            "tokenizer.ggml.tokens",
            tokens.iter().collect::<StringArray>(),
        )
        .unwrap();

    let mut state = 7;
    let mut tensor = |name: &str, dims: &[u64]| {
        let count: u64 = dims.iter().product();
        let mut bytes = Vec::new();
        if dims.len() == 1 {
            bytes.extend((0..count).flat_map(|_| (1.0 + 0.1 * random(&mut state)).to_le_bytes()));
            writer.tensor(name, dims, ElementType::F32, bytes).unwrap();
            return;
        }
        for _ in 0..count / 32 {
            bytes.extend(0x1c00u16.to_le_bytes()); // 2 to the power of -8
            bytes.extend((0..32).map(|_| (127.0 * random(&mut state)) as i8 as u8));
        }
        writer.tensor(name, dims, ElementType::Q8_0, bytes).unwrap();
    };
    tensor("token_embd.weight", &[WIDTH, VOCABULARY]);
    tensor("output_norm.weight", &[WIDTH]);
    for layer in 0..LAYERS {
        for (name, dims) in [
            ("attn_norm", &[WIDTH][..]),
            ("attn_q", &[WIDTH, 2 * HEAD]),
            ("attn_k", &[WIDTH, HEAD]),
            ("attn_v", &[WIDTH, HEAD]),
            ("attn_q_norm", &[HEAD]),
            ("attn_k_norm", &[HEAD]),
            ("attn_output", &[2 * HEAD, WIDTH]),
            ("post_attention_norm", &[WIDTH]),
            ("ffn_norm", &[WIDTH]),
            ("ffn_gate", &[WIDTH, HIDDEN]),
            ("ffn_up", &[WIDTH, HIDDEN]),
            ("ffn_down", &[HIDDEN, WIDTH]),
            ("post_ffw_norm", &[WIDTH]),
        ] {
            tensor(&format!("blk.{layer}.{name}.weight"), dims);
        }
    }
    let mut file = Vec::new();
    writer.write_to(&mut file).unwrap();
    Arc::new(Gguf::from_bytes(file).unwrap())
}

fn engine(gguf: &Arc<Gguf>, set: Set, threads: usize, batch: usize, cache: CacheType) -> Engine {
    let backend = CpuBackend::new(threads, Some(set)).unwrap();
    let mut options = EngineOptions::default();
    options.batch = batch;
    options.key_type = cache;
    options.value_type = cache;
    Engine::from_gguf(Arc::clone(gguf), &backend, &options).unwrap()
}

fn text(len: usize, salt: usize) -> Vec<TokenId> {
    (0..len)
        .map(|i| TokenId(((i * i + 7 * i + salt) % VOCABULARY as usize) as u32))
        .collect()
}

/// Bits of all logits of `tokens`, fed `chunk` at a time.
fn logits(engine: &mut Engine, sequence: SeqId, tokens: &[TokenId], chunk: usize) -> Vec<u32> {
    let mut bits = Vec::new();
    for tokens in tokens.chunks(chunk) {
        let feed = Feed {
            sequence,
            tokens,
            want: Want::All,
        };
        engine
            .decode(&[feed], &mut |_, _, row| {
                bits.extend(row.iter().map(|x| x.to_bits()));
            })
            .unwrap();
    }
    bits
}

fn fresh(engine: &mut Engine, tokens: &[TokenId], chunk: usize) -> Vec<u32> {
    let sequence = engine.sequence();
    let bits = logits(engine, sequence, tokens, chunk);
    engine.remove(sequence);
    bits
}

#[test]
fn chunks_batches_threads_and_kernel_sets_give_the_same_logits_past_pages_windows_and_segments() {
    let gguf = model();
    let tokens = text(1100, 3);
    let expected = fresh(
        &mut engine(&gguf, Set::best(), 1, 512, CacheType::F16),
        &tokens,
        1100,
    );
    assert_eq!(expected.len(), 1100 * VOCABULARY as usize);
    for (threads, batch, chunk) in [
        (1, 512, 1),
        (2, 512, 1100),
        (3, 64, 1100),
        (2, 33, 65),
        (1, 1, 1100),
        (3, 512, 1),
    ] {
        let mut other = engine(&gguf, Set::best(), threads, batch, CacheType::F16);
        let got = fresh(&mut other, &tokens, chunk);
        assert!(
            got == expected,
            "{threads} threads, batch {batch}, chunks of {chunk}"
        );
    }
    for set in Set::available() {
        let mut other = engine(&gguf, set, 2, 100, CacheType::F16);
        let got = fresh(&mut other, &tokens[..300], 150);
        assert!(got == expected[..got.len()], "{}", set.name());
    }
}

#[test]
fn every_cache_type_gives_the_same_logits_for_any_chunking() {
    let gguf = model();
    let tokens = text(200, 5);
    for cache in CacheType::ALL {
        let whole = fresh(&mut engine(&gguf, Set::best(), 1, 512, cache), &tokens, 200);
        let single = fresh(&mut engine(&gguf, Set::best(), 2, 512, cache), &tokens, 1);
        assert!(whole == single, "{}", cache.name());
    }
}

#[test]
fn sequences_in_one_batch_do_not_change_each_other() {
    let gguf = model();
    let mut engine = engine(&gguf, Set::best(), 2, 96, CacheType::F16);
    let texts = [text(150, 1), text(97, 2), text(64, 9)];
    let alone: Vec<_> = texts.iter().map(|t| fresh(&mut engine, t, 512)).collect();
    let sequences: Vec<_> = texts.iter().map(|_| engine.sequence()).collect();
    let mut together = vec![Vec::new(); texts.len()];
    for start in (0..150).step_by(29) {
        let feeds: Vec<_> = texts
            .iter()
            .zip(&sequences)
            .filter(|(t, _)| start < t.len())
            .map(|(t, s)| Feed {
                sequence: *s,
                tokens: &t[start..t.len().min(start + 29)],
                want: Want::All,
            })
            .collect();
        let which: Vec<_> = (0..texts.len())
            .filter(|i| start < texts[*i].len())
            .collect();
        engine
            .decode(&feeds, &mut |feed, _, row| {
                together[which[feed]].extend(row.iter().map(|x| x.to_bits()));
            })
            .unwrap();
    }
    assert!(together == alone);
}

#[test]
fn forks_and_reused_beginnings_continue_as_if_computed_alone() {
    let gguf = model();
    let mut engine = engine(&gguf, Set::best(), 2, 512, CacheType::F16);
    let common = text(90, 4);
    let [a, b] = [text(40, 11), text(40, 23)].map(|tail| [common.clone(), tail].concat());
    let [alone_a, alone_b] = [&a, &b].map(|t| fresh(&mut engine, t, 512));

    let first = engine.sequence();
    logits(&mut engine, first, &common, 512);
    let second = engine.fork(first).unwrap();
    let rest = |bits: &[u32]| bits[90 * VOCABULARY as usize..].to_vec();
    assert!(logits(&mut engine, first, &a[90..], 7) == rest(&alone_a));
    assert!(logits(&mut engine, second, &b[90..], 3) == rest(&alone_b));

    // Back to a position inside of the window, then another way.
    let kept = engine.reuse(first, &b).unwrap();
    assert!(kept >= 90, "kept {kept}");
    let got = logits(&mut engine, first, &b[kept..], 512);
    assert!(got == alone_b[kept * VOCABULARY as usize..]);
    assert_eq!(engine.tokens(first).unwrap(), &b[..]);
}
