//! Options that fit no machine, and how much memory is told.

use crate::{
    fake::Fake,
    tiny::{END, Layers, gguf},
};
use puna_engine::{Engine, EngineError, EngineOptions, MemoryNeed};

fn options(context: Option<usize>, batch: usize) -> EngineOptions {
    let mut options = EngineOptions::default();
    options.context = context;
    options.batch = batch;
    options
}

#[test]
fn memory_is_the_same_before_and_after_loading() {
    for layers in [Layers::Full, Layers::Window(100)] {
        let gguf = gguf(layers, END);
        for (context, batch) in [(None, 512), (Some(1), 1), (Some(1000), 64)] {
            let options = options(context, batch);
            let told = MemoryNeed::of(&gguf, &Fake::default(), &options).unwrap();
            let engine = Engine::from_gguf(gguf.clone(), &Fake::default(), &options).unwrap();
            assert_eq!(told, engine.memory().unwrap());
            assert_eq!(told.training, 4096);
            assert_eq!(told.context, context.unwrap_or(4096));
            assert_eq!(told.file, gguf.files()[0].byte_len());
            assert_eq!(told.total(), told.file + told.cache);
            let pages = told.context.div_ceil(64) as u64;
            let of_window = match layers {
                Layers::Full => 0,
                Layers::Window(n) => pages.min((u64::from(n) + batch as u64).div_ceil(64) + 1),
            };
            assert_eq!(told.cache, (pages + of_window) * 256);
        }
    }
}

#[test]
fn contexts_and_batches_out_of_range_are_refused_with_the_range() {
    let gguf = gguf(Layers::Full, END);
    for (options, expected) in [
        (
            options(Some(0), 1),
            "context: found 0, expected 1 to 2147483648",
        ),
        (
            options(Some(99_999_999_999_999_999), 1),
            "context: found 99999999999999999, expected 1 to 2147483648",
        ),
        (options(None, 0), "batch size: found 0, expected at least 1"),
    ] {
        let errors = [
            MemoryNeed::of(&gguf, &Fake::default(), &options).err(),
            Engine::from_gguf(gguf.clone(), &Fake::default(), &options).err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert!(matches!(error, EngineError::Option { .. }));
            assert_eq!(error.to_string(), expected);
        }
    }
    // The longest one can be told without an overflow.
    let need = MemoryNeed::of(&gguf, &Fake::default(), &options(Some(1 << 31), usize::MAX));
    assert_eq!(need.unwrap().cache, (1 << 25) * 256);
}
