//! `puna tokenize`: text to ids, and back.

use crate::{
    args::{ModelArgs, PromptArgs, without_last_newline},
    failure::usage_error,
    output::Output,
    piped, shown,
};
use anyhow::{Result, bail};
use puna::{
    Gguf, TokenId, Tokenizer,
    tokenizer::{DecodeOptions, EncodeOptions},
};
use serde_json::json;
use std::io::Write;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Read the text from the standard input, with the newline at its end; piped text without a flag is taken without that one
    #[arg(long, conflicts_with_all = ["second", "prompt", "file", "decode"])]
    stdin: bool,
    /// Turn these ids, with commas between, into text
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with_all = ["second", "prompt", "file"])]
    decode: Option<Vec<u32>>,
    /// Print only the ids, as [1, 2, 3]
    #[arg(long)]
    ids: bool,
    /// Do not put BOS before the text, nor EOS behind it
    #[arg(long)]
    no_bos: bool,
    /// Take the texts of control tokens as plain text
    #[arg(long)]
    no_parse_special: bool,
    /// Print the number of tokens too
    #[arg(long)]
    show_count: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.model.name()?;
    let text = text(args)?;
    let gguf = Gguf::open(&args.model.path()?)?;
    let tokenizer = Tokenizer::from_gguf(gguf.metadata())?;
    for warning in tokenizer.warnings() {
        tell!("note: {warning}");
    }
    if let Some(ids) = &args.decode {
        return decode(args, &tokenizer, ids);
    }
    let encode = EncodeOptions {
        add_special: !args.no_bos,
        parse_special: !args.no_parse_special,
    };
    let ids = tokenizer.encode(&text.unwrap_or_default(), encode)?;
    show(args, &tokenizer, &ids)
}

/// What is to be turned into ids; `None` where ids are given.
fn text(args: &Args) -> Result<Option<String>> {
    if args.decode.is_some() {
        return Ok(None);
    }
    if args.stdin {
        return piped::read_all().map(Some);
    }
    match args.prompt.text()? {
        None if piped::is_piped() => Ok(Some(without_last_newline(piped::read_all()?))),
        None => Err(usage_error(
            "there is no text: give -p, -f, --decode or piped text",
        )),
        text => Ok(text),
    }
}

fn show(args: &Args, tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<()> {
    let mut output = Output::new();
    let numbers: Vec<u32> = ids.iter().map(|id| id.0).collect();
    let piece = |id: &TokenId| tokenizer.piece(*id).unwrap_or_default();
    if args.json {
        let pieces: Vec<_> = ids
            .iter()
            .map(|id| String::from_utf8_lossy(piece(id)))
            .collect();
        let value = if args.ids {
            json!(numbers)
        } else {
            json!({ "ids": numbers, "pieces": pieces, "count": numbers.len() })
        };
        return output.json(&value);
    }
    if args.ids {
        writeln!(output, "{numbers:?}")?;
    } else {
        for id in ids {
            writeln!(
                output,
                "{:>7}  {}",
                id.0,
                shown::quoted(piece(id), usize::MAX)
            )?;
        }
    }
    if args.show_count {
        writeln!(output, "{} tokens", ids.len())?;
    }
    output.flush()?;
    Ok(())
}

fn decode(args: &Args, tokenizer: &Tokenizer, ids: &[u32]) -> Result<()> {
    let len = tokenizer.len();
    if let Some(id) = ids.iter().find(|id| **id as usize >= len) {
        bail!("--decode: token {id}, expected an id below the vocabulary size {len}");
    }
    let ids: Vec<_> = ids.iter().map(|id| TokenId(*id)).collect();
    let options = DecodeOptions {
        remove_special: args.no_bos,
        unparse_special: !args.no_parse_special,
        ..DecodeOptions::default()
    };
    let mut output = Output::new();
    if args.json {
        return output.json(&json!({ "text": tokenizer.decode(&ids, options) }));
    }
    output.write_all(&tokenizer.decode_bytes(&ids, options))?;
    writeln!(output)?;
    output.flush()?;
    Ok(())
}
