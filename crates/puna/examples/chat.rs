//! Two turns of a conversation; the second computes only what is new: `cargo run --release -p puna --example chat -- MODEL.gguf`.

use puna::{
    Chat, Conversation, CpuBackend, Engine, EngineOptions, Generation, GenerationOptions, Message,
};
use std::{env, error::Error, path::Path, sync::Arc, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let model = env::args().nth(1).ok_or("usage: chat MODEL.gguf")?;
    let backend = CpuBackend::new(thread::available_parallelism()?.get(), None)?;
    let mut engine = Engine::open(Path::new(&model), &backend, &EngineOptions::default())?;
    let tokenizer = Arc::clone(engine.tokenizer()?);
    let chat = Chat::from_gguf(engine.gguf(), None, &tokenizer)?
        .ok_or("the model has no chat template")?;

    let mut options = GenerationOptions::default();
    options.max_tokens = Some(100);
    options.sampler.seed = Some(1);
    let sequence = engine.sequence();
    let mut messages = vec![Message::new("system", "Answer in one sentence.")];
    for question in ["What is a llama?", "And what does it eat?"] {
        messages.push(Message::new("user", question));
        let prompt = chat.prompt(&Conversation::new(messages.clone()))?;
        let mut generation = Generation::new(&mut engine, sequence, &prompt, &options)?;
        println!(
            "> {question} ({} of {} tokens were in the cache)",
            generation.reused(),
            prompt.len()
        );
        let mut answer = String::new();
        while let Some(step) = generation.step(&mut engine)? {
            answer += step.text();
        }
        println!("{answer}");
        messages.push(Message::new("assistant", answer));
    }
    Ok(())
}
