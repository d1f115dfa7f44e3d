//! Continues a text: `cargo run --release -p puna --example complete -- MODEL.gguf "The capital of France is"`.

use puna::{
    CpuBackend, Engine, EngineOptions, Generation, GenerationOptions, SamplerOptions,
    tokenizer::EncodeOptions,
};
use std::{env, error::Error, io::Write, path::Path, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, model, text] = arguments.as_slice() else {
        return Err("usage: complete MODEL.gguf TEXT".into());
    };
    let backend = CpuBackend::new(thread::available_parallelism()?.get(), None)?;
    let mut engine = Engine::open(Path::new(model), &backend, &EngineOptions::default())?;

    // BOS comes first where the model wants it; `<|...|>` in the text is text.
    let encode = EncodeOptions {
        add_special: true,
        parse_special: false,
    };
    let prompt = engine.tokenizer()?.encode(text, encode)?;

    let mut options = GenerationOptions::default();
    options.max_tokens = Some(64);
    options.sampler = SamplerOptions::greedy();
    let sequence = engine.sequence();
    let mut generation = Generation::new(&mut engine, sequence, &prompt, &options)?;
    print!("{text}");
    while let Some(step) = generation.step(&mut engine)? {
        print!("{}", step.text());
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
