//! Generations: one alone, and several that share each batch.

use crate::{
    fake::Fake,
    tiny::{CONTROL, END, Layers, Tiny, letters},
};
use puna_engine::{EngineError, FinishReason, Generation, GenerationOptions, Step};
use puna_sampling::SamplerOptions;
use puna_tokenizer::{TokenId, TokenKind};

fn options() -> GenerationOptions {
    let mut options = GenerationOptions::default();
    options.sampler = SamplerOptions::greedy();
    options
}

/// Text and reason of a generation on a new sequence; the fake model goes through the vocabulary in order.
fn generate(
    tiny: &mut Tiny,
    prompt: &[TokenId],
    options: &GenerationOptions,
) -> (String, Option<FinishReason>) {
    let sequence = tiny.engine.sequence();
    let generation = Generation::new(&mut tiny.engine, sequence, prompt, options).unwrap();
    let result = finish(tiny, generation);
    tiny.engine.remove(sequence);
    result
}

fn finish(tiny: &mut Tiny, mut generation: Generation) -> (String, Option<FinishReason>) {
    let (mut text, mut reason) = (String::new(), None);
    while let Some(step) = generation.step(&mut tiny.engine).unwrap() {
        text += step.text();
        if let Step::Token { finish, .. } = step {
            reason = finish;
        }
    }
    assert_eq!(generation.step(&mut tiny.engine).unwrap(), None);
    (text, reason)
}

#[test]
fn end_tokens_are_hidden_whatever_their_kind() {
    for (end, kind) in [
        (END, TokenKind::Normal),
        (u32::from(b'h' - b'a'), TokenKind::Normal),
        (CONTROL, TokenKind::Control),
    ] {
        for show_special in [false, true] {
            let mut tiny = Tiny::with(Layers::Full, 256, 32, end, Fake::default());
            let tokenizer = tiny.engine.tokenizer().unwrap();
            assert_eq!(tokenizer.kind(TokenId(end)), kind);
            let mut options = options();
            options.show_special = show_special;
            let (text, reason) = generate(&mut tiny, &[TokenId(end - 3)], &options);
            assert_eq!(reason, Some(FinishReason::EndOfGeneration));
            // Other control tokens are shown on demand.
            let expected = match (end, show_special) {
                (CONTROL, _) => "zab",
                (END, false) => "ab",
                (END, true) => "ab<control>",
                _ => "fg",
            };
            assert_eq!(text, expected, "{end} {show_special}");
        }
    }
}

#[test]
fn end_tokens_that_are_to_be_ignored_are_never_chosen() {
    let mut tiny = Tiny::new(Layers::Full, 256, 32);
    let mut options = options();
    options.ignore_eos = true;
    options.max_tokens = Some(200);
    let sequence = tiny.engine.sequence();
    let prompt = [TokenId(CONTROL)];
    let generation = Generation::new(&mut tiny.engine, sequence, &prompt, &options).unwrap();
    let (_, reason) = finish(&mut tiny, generation);
    assert_eq!(reason, Some(FinishReason::Length));
    assert!(
        !tiny
            .engine
            .tokens(sequence)
            .unwrap()
            .contains(&TokenId(END))
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_computed() {
    let mut tiny = Tiny::new(Layers::Full, 64, 32);
    let sequence = tiny.engine.sequence();
    let mut stop = options();
    stop.stop = vec!["x".into(), String::new()];
    let mut new = |prompt: &[TokenId], options: &GenerationOptions| {
        Generation::new(&mut tiny.engine, sequence, prompt, options)
            .err()
            .unwrap()
    };
    let error = new(&letters(3, 1), &stop);
    assert_eq!(
        error.to_string(),
        "stop text: found an empty text, expected at least one character"
    );
    assert!(matches!(new(&[], &options()), EngineError::Empty));
    assert!(matches!(
        new(&letters(65, 1), &options()),
        EngineError::ContextExceeded {
            tokens: 65,
            context: 64
        }
    ));
    assert!(tiny.fake.take_runs().is_empty());
}

#[test]
fn a_generation_ends_at_stop_texts_lengths_and_the_context() {
    let mut tiny = Tiny::new(Layers::Full, 64, 32);
    let a = [TokenId(0)];
    let mut stop = options();
    stop.stop = vec!["hij".into(), "ef".into()];
    let reason = Some(FinishReason::Stop);
    assert_eq!(generate(&mut tiny, &a, &stop), ("bcd".into(), reason));
    let mut length = options();
    length.max_tokens = Some(4);
    let reason = Some(FinishReason::Length);
    assert_eq!(generate(&mut tiny, &a, &length), ("bcde".into(), reason));
    length.max_tokens = Some(0);
    assert_eq!(generate(&mut tiny, &a, &length), (String::new(), None));
    let prompt = [letters(61, 1), vec![TokenId(0)]].concat();
    // Tokens 63 and 64 of the context, and one that was chosen and has no place.
    let reason = Some(FinishReason::Context);
    assert_eq!(
        generate(&mut tiny, &prompt, &options()),
        ("bcd".into(), reason)
    );
}

#[test]
fn a_long_prompt_is_computed_batch_by_batch_and_can_be_left_at_every_step() {
    let mut tiny = Tiny::new(Layers::Full, 256, 32);
    let sequence = tiny.engine.sequence();
    let prompt = letters(100, 1);
    let mut generation = Generation::new(&mut tiny.engine, sequence, &prompt, &options()).unwrap();
    for computed in [32, 64] {
        let step = generation.step(&mut tiny.engine).unwrap();
        let total = 100;
        assert_eq!(step, Some(Step::Prompt { computed, total }));
    }
    drop(generation);
    assert_eq!(tiny.engine.tokens(sequence).unwrap(), &prompt[..64]);
    // What was computed is there for the next one.
    let mut generation = Generation::new(&mut tiny.engine, sequence, &prompt, &options()).unwrap();
    assert_eq!(generation.reused(), 64);
    tiny.fake.take_runs();
    let step = generation.step(&mut tiny.engine).unwrap();
    assert!(matches!(
        step,
        Some(Step::Prompt {
            computed: 96,
            total: 100
        })
    ));
    let step = generation.step(&mut tiny.engine).unwrap();
    assert!(matches!(step, Some(Step::Token { .. })));
    assert_eq!(tiny.fake.take_runs(), [[32], [4]]);
}

#[test]
fn a_step_that_failed_can_be_repeated() {
    let mut options = options();
    options.max_tokens = Some(12);
    let prompt = letters(70, 2);
    let expected = generate(&mut Tiny::new(Layers::Full, 256, 32), &prompt, &options);
    assert_eq!(expected.0.len(), 12);
    for failing in 1..=14 {
        let mut tiny = Tiny::new(Layers::Full, 256, 32);
        let sequence = tiny.engine.sequence();
        let mut generation =
            Generation::new(&mut tiny.engine, sequence, &prompt, &options).unwrap();
        tiny.fake.fail_in(failing);
        let (mut text, mut failed) = (String::new(), 0);
        loop {
            let before = tiny.engine.pages_in_use();
            match generation.step(&mut tiny.engine) {
                Ok(None) => break,
                Ok(Some(step)) => text += step.text(),
                Err(error) => {
                    assert!(matches!(error, EngineError::Backend(_)), "{error}");
                    assert_eq!(tiny.engine.pages_in_use(), before);
                    failed += 1;
                }
            }
        }
        assert_eq!((text, failed), (expected.0.clone(), 1), "run {failing}");
    }
}

#[test]
fn logits_that_are_not_numbers_end_the_generation_and_nothing_else() {
    let fake = Fake {
        broken: true,
        ..Fake::default()
    };
    let mut tiny = Tiny::with(Layers::Full, 256, 32, END, fake);
    let sequence = tiny.engine.sequence();
    let prompt = letters(3, 1);
    let mut generation = Generation::new(&mut tiny.engine, sequence, &prompt, &options()).unwrap();
    let error = generation.step(&mut tiny.engine).unwrap_err();
    assert!(matches!(error, EngineError::Sampling(_)), "{error}");
    assert_eq!(generation.step(&mut tiny.engine).unwrap(), None);
    tiny.engine.remove(sequence);
    assert_eq!(tiny.engine.pages_in_use(), [0]);
}

/// One step of all: those that generate first, then prompts, all within one budget of tokens.
fn step_together(tiny: &mut Tiny, generations: &mut [Generation], budget: usize) -> Vec<Step> {
    let engine = &mut tiny.engine;
    generations.sort_by_key(|g| {
        let held = engine.tokens(g.sequence()).unwrap().len();
        (g.tokens().len() - held > 1, g.sequence())
    });
    let (mut feeds, mut slots, mut left) = (Vec::new(), Vec::new(), budget);
    for generation in generations.iter_mut() {
        if let Some((feed, slot)) = generation.feed(engine, left).unwrap() {
            left -= feed.tokens.len();
            feeds.push(feed);
            slots.push(slot);
        }
    }
    if feeds.is_empty() {
        return Vec::new();
    }
    engine
        .decode(&feeds, &mut |feed, _, row| slots[feed].set(row))
        .unwrap();
    let steps = generations.iter_mut().map(|g| g.advance(engine).unwrap());
    steps.flatten().collect()
}

#[test]
fn generations_that_share_batches_give_the_texts_that_they_give_alone() {
    for layers in [Layers::Full, Layers::Window(100)] {
        let mut options = options();
        options.max_tokens = Some(20);
        let prompts = [
            letters(3, 4),
            letters(150, 11),
            letters(40, 2),
            letters(90, 6),
        ];
        let mut alone = Tiny::new(layers, 640, 32);
        let expected = prompts
            .each_ref()
            .map(|p| generate(&mut alone, p, &options).0);

        let mut tiny = Tiny::new(layers, 640, 32);
        let mut texts = vec![String::new(); prompts.len()];
        let mut waiting: Vec<_> = prompts.iter().rev().collect();
        let mut running: Vec<Generation> = Vec::new();
        let mut sequences = Vec::new();
        let mut mixed = 0;
        loop {
            if let Some(prompt) = waiting.pop() {
                // A new one joins at each step.
                let sequence = tiny.engine.sequence();
                sequences.push(sequence);
                running
                    .push(Generation::new(&mut tiny.engine, sequence, prompt, &options).unwrap());
            }
            tiny.fake.take_runs();
            let steps = step_together(&mut tiny, &mut running, 32);
            if steps.is_empty() {
                break;
            }
            let runs = tiny.fake.take_runs();
            assert_eq!(runs.len(), 1, "one run for all");
            assert!(runs[0].iter().sum::<usize>() <= 32);
            // Single tokens come before parts of prompts.
            assert!(runs[0].is_sorted_by_key(|n| *n > 1), "{runs:?}");
            mixed += usize::from(runs[0].first() == Some(&1) && runs[0].last() > Some(&1));
        }
        assert!(mixed > 3, "{mixed}");
        for generation in &running {
            let which = sequences.iter().position(|s| *s == generation.sequence());
            let (which, tokenizer) = (which.unwrap(), tiny.engine.tokenizer().unwrap());
            for token in &generation.tokens()[prompts[which].len()..] {
                if *token != TokenId(END) && *token != TokenId(CONTROL) {
                    let piece = tokenizer.piece(*token).unwrap();
                    texts[which] += std::str::from_utf8(piece).unwrap();
                }
            }
        }
        assert_eq!(texts, expected);
    }
}

#[test]
fn a_generation_whose_sequence_was_emptied_computes_it_again_and_goes_on() {
    let mut tiny = Tiny::new(Layers::Full, 256, 32);
    let mut options = options();
    options.max_tokens = Some(15);
    let prompt = letters(50, 2);
    let expected = generate(&mut tiny, &prompt, &options);
    let sequence = tiny.engine.sequence();
    let mut generation = Generation::new(&mut tiny.engine, sequence, &prompt, &options).unwrap();
    let mut text = String::new();
    for _ in 0..5 {
        let step = generation.step(&mut tiny.engine).unwrap().unwrap();
        text += step.text();
    }
    // As when another one needs its pages.
    tiny.engine.truncate(sequence, 0).unwrap();
    assert_eq!(tiny.engine.pages_in_use(), [0]);
    let step = generation.step(&mut tiny.engine).unwrap().unwrap();
    assert_eq!(step.text(), "");
    assert!(matches!(step, Step::Prompt { computed: 32, .. }));
    let (rest, reason) = finish(&mut tiny, generation);
    assert_eq!((text + &rest, reason), expected);
}
