//! The likeliest next tokens after each token of a text: `cargo run --release -p puna --example logits -- MODEL.gguf TEXT`.

use puna::{CpuBackend, Engine, EngineOptions, Feed, TokenId, Want, tokenizer::EncodeOptions};
use std::{env, error::Error, path::Path, sync::Arc, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, model, text] = arguments.as_slice() else {
        return Err("usage: logits MODEL.gguf TEXT".into());
    };
    let backend = CpuBackend::new(thread::available_parallelism()?.get(), None)?;
    let mut engine = Engine::open(Path::new(model), &backend, &EngineOptions::default())?;
    let tokenizer = Arc::clone(engine.tokenizer()?);
    let encode = EncodeOptions {
        add_special: true,
        parse_special: false,
    };
    let tokens = tokenizer.encode(text, encode)?;
    let shown = |id: TokenId| String::from_utf8_lossy(tokenizer.piece(id).unwrap_or_default());

    let feed = Feed {
        sequence: engine.sequence(),
        tokens: &tokens,
        want: Want::All,
    };
    engine.decode(&[feed], &mut |_, position, logits| {
        let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
        let best = TokenId(best.unwrap_or(0) as u32);
        println!("{:?} -> {:?}", shown(tokens[position]), shown(best));
    })?;
    Ok(())
}
