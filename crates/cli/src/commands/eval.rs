//! `puna eval`: the logits of given tokens.

use crate::{
    args::{EngineArgs, ModelArgs, PromptArgs, without_last_newline},
    failure::usage_error,
    files::{self, Target},
    output::Output,
    piped, shown,
};
use anyhow::{Context, Result, bail};
use puna::{Engine, EngineError, Feed, TokenId, Want, tokenizer::EncodeOptions};
use serde_json::{Value, json};
use std::{
    io::{BufWriter, IntoInnerError, Write},
    path::{Path, PathBuf},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    prompt: PromptArgs,
    /// The tokens, as ids with commas between
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with_all = ["tokens_file", "second", "prompt", "file"])]
    tokens: Option<Vec<u32>>,
    /// The tokens, as a JSON list of ids in a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["second", "prompt", "file"])]
    tokens_file: Option<PathBuf>,
    /// How many of the best tokens to show for each position [default: 5, or 0 with --npy]
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// Write all logits to this file, as float32 [tokens, vocabulary]
    #[arg(long, value_name = "OUT.npy")]
    npy: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.model.name()?;
    let given = given(args)?;
    let path = args.model.path()?;
    let backend = args.engine.threads.backend()?;
    let mut engine = Engine::open(&path, &backend, &args.engine.options())?;
    let tokens = tokens(given, &engine)?;
    let top = args.top.unwrap_or(if args.npy.is_some() { 0 } else { 5 });
    let mut npy = match &args.npy {
        Some(path) => Some(Npy::create(path, [tokens.len(), engine.vocabulary()])?),
        None => None,
    };
    let mut output = Output::new();
    let mut report = Report::new(&engine, &tokens, top);
    let mut failed = None;
    let sequence = engine.sequence();
    let feed = Feed {
        sequence,
        tokens: &tokens,
        want: Want::All,
    };
    let json = args.json;
    engine.decode(&[feed], &mut |_, position, row| {
        if failed.is_some() {
            return;
        }
        let mut take = || -> Result<()> {
            if row.iter().any(|x| x.is_nan()) {
                anyhow::bail!(
                    "position {position}: the logits are not numbers; the file is damaged or badly quantized, \
                     and --check-tensors names the tensor"
                );
            }
            if let Some(npy) = &mut npy {
                npy.row(row)?;
            }
            report.take(position, row, if json { None } else { Some(&mut output) })
        };
        failed = take().err();
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(npy) = npy {
        npy.finish()?;
    }
    report.finish(&path, json, &mut output)
}

/// What the arguments give.
enum Given {
    Ids(Vec<u32>),
    Text(String),
}

/// What the arguments give, read before the model is.
fn given(args: &Args) -> Result<Given> {
    if let Some(ids) = &args.tokens {
        return Ok(Given::Ids(ids.clone()));
    }
    if let Some(path) = &args.tokens_file {
        let place = || format!("`{}`", path.display());
        let text = files::read(path).with_context(place)?;
        let ids = serde_json::from_slice(&text)
            .context("expected a JSON list of token ids")
            .with_context(place)?;
        return Ok(Given::Ids(ids));
    }
    match args.prompt.text()? {
        Some(text) => Ok(Given::Text(text)),
        None if piped::is_piped() => Ok(Given::Text(without_last_newline(piped::read_all()?))),
        None => Err(usage_error(
            "there are no tokens: give --tokens, --tokens-file, -p, -f or piped text",
        )),
    }
}

/// The tokens of what was given.
fn tokens(given: Given, engine: &Engine) -> Result<Vec<TokenId>> {
    let tokens: Vec<TokenId> = match given {
        Given::Ids(ids) => ids.into_iter().map(TokenId).collect(),
        Given::Text(text) => {
            let encode = EncodeOptions {
                add_special: true,
                parse_special: true,
            };
            engine
                .tokenizer()
                .map_err(EngineError::Vocabulary)?
                .encode(&text, encode)?
        }
    };
    if tokens.is_empty() {
        bail!("there is no token; give at least one");
    }
    Ok(tokens)
}

/// What is said of each position.
struct Report<'a> {
    tokens: &'a [TokenId],
    tokenizer: Option<std::sync::Arc<puna::Tokenizer>>,
    vocabulary: usize,
    top: usize,
    positions: Vec<Value>,
    /// Sum of the negative log-probabilities of the tokens that follow.
    nll: f64,
}

impl<'a> Report<'a> {
    fn new(engine: &Engine, tokens: &'a [TokenId], top: usize) -> Self {
        Self {
            tokens,
            tokenizer: engine.tokenizer().ok().cloned(),
            vocabulary: engine.vocabulary(),
            top: top.min(engine.vocabulary()),
            positions: Vec::new(),
            nll: 0.0,
        }
    }

    fn piece(&self, id: u32) -> Option<&[u8]> {
        self.tokenizer.as_ref()?.piece(TokenId(id))
    }

    /// Takes the logits of one position; prints them, or keeps them for the JSON object.
    fn take(&mut self, position: usize, row: &[f32], output: Option<&mut Output>) -> Result<()> {
        let normalizer = log_sum_exp(row);
        let logprob = |id: usize| f64::from(row[id]) - normalizer;
        let next = self.tokens.get(position + 1).map(|id| logprob(id.index()));
        self.nll -= next.unwrap_or(0.0);
        let best = best(row, self.top);
        match output {
            Some(output) if self.top > 0 => {
                let token = self.tokens[position].0;
                let piece = self
                    .piece(token)
                    .map_or_else(String::new, |p| format!(" {}", shown::quoted(p, 40)));
                writeln!(output, "{position}: {token}{piece}")?;
                for id in best {
                    let piece = self
                        .piece(id as u32)
                        .map_or_else(String::new, |p| shown::quoted(p, 40));
                    writeln!(
                        output,
                        "  {id:>7} {:>10.4} {:>9.4}  {piece}",
                        row[id],
                        logprob(id)
                    )?;
                }
            }
            Some(_) => {}
            None => {
                let entry = |id: usize| {
                    json!({
                        "id": id,
                        "piece": self.piece(id as u32).map(String::from_utf8_lossy),
                        "logit": row[id],
                        "logprob": logprob(id),
                    })
                };
                let value = json!({
                    "position": position,
                    "token": self.tokens[position].0,
                    "next_logprob": next,
                    "top": best.into_iter().map(entry).collect::<Vec<_>>(),
                });
                self.positions.push(value);
            }
        }
        Ok(())
    }

    fn finish(self, model: &Path, json: bool, output: &mut Output) -> Result<()> {
        let predicted = self.tokens.len() - 1;
        let nll = (predicted > 0).then(|| self.nll / predicted as f64);
        if json {
            return output.json(&json!({
                "model": model.to_string_lossy(),
                "vocabulary": self.vocabulary,
                "tokens": self.tokens.iter().map(|t| t.0).collect::<Vec<_>>(),
                "positions": self.positions,
                "mean_nll": nll,
                "perplexity": nll.map(f64::exp),
            }));
        }
        write!(output, "{} tokens", self.tokens.len())?;
        if let Some(nll) = nll {
            write!(
                output,
                ", mean negative log-likelihood {nll:.5}, perplexity {:.4}",
                nll.exp()
            )?;
        }
        writeln!(output)?;
        output.flush()?;
        Ok(())
    }
}

/// Logarithm of the sum of the exponentials.
fn log_sum_exp(row: &[f32]) -> f64 {
    let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = row.iter().map(|x| (f64::from(*x) - max).exp()).sum();
    max + sum.ln()
}

/// Indices of the `k` largest, the largest first; equal ones by index.
fn best(row: &[f32], k: usize) -> Vec<usize> {
    let order = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
    let mut ids: Vec<usize> = (0..row.len()).collect();
    if k > 0 && k < ids.len() {
        ids.select_nth_unstable_by(k - 1, order);
    }
    ids.truncate(k);
    ids.sort_unstable_by(order);
    ids
}

/// A `NumPy` file of float32, written row by row.
struct Npy {
    file: BufWriter<Target>,
    path: PathBuf,
}

impl Npy {
    fn create(path: &Path, shape: [usize; 2]) -> Result<Self> {
        let failed = || format!("cannot write `{}`", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, Target::new(path).with_context(failed)?);
        file.write_all(&npy_header(shape)).with_context(failed)?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    fn row(&mut self, row: &[f32]) -> Result<()> {
        let failed = || format!("cannot write `{}`", self.path.display());
        let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.file.write_all(&bytes).with_context(failed)
    }

    fn finish(self) -> Result<()> {
        let failed = || format!("cannot write `{}`", self.path.display());
        let target = self.file.into_inner().map_err(IntoInnerError::into_error);
        target
            .and_then(|target| target.finish(&self.path))
            .with_context(failed)
    }
}

/// The header of version 1.0: magic, length, a dictionary padded to 64 bytes.
fn npy_header([rows, cols]: [usize; 2]) -> Vec<u8> {
    const PREFIX: usize = 10;
    let mut text =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let len = (PREFIX + text.len() + 1).next_multiple_of(64) - PREFIX;
    text.extend(std::iter::repeat_n(' ', len - 1 - text.len()));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((len as u16).to_le_bytes());
    header.extend(text.bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_found_in_order_and_ties_go_to_the_lower_id() {
        assert_eq!(best(&[1.0, 3.0, 3.0, 2.0], 3), [1, 2, 3]);
        assert_eq!(best(&[1.0, 2.0], 5), [1, 0]);
        assert_eq!(best(&[1.0, 2.0], 0), Vec::<usize>::new());
    }

    #[test]
    fn log_probabilities_are_those_of_the_definition() {
        let expected = (1f64.exp() + 2f64.exp()).ln();
        assert!((log_sum_exp(&[1.0, 2.0]) - expected).abs() < 1e-12);
        assert!((log_sum_exp(&[1000.0, 1000.0]) - 1000.0 - 2f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn the_header_ends_at_a_multiple_of_64() {
        for shape in [[1, 2], [100_000, 151_936]] {
            let header = npy_header(shape);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }
}
