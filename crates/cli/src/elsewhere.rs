//! llama.cpp's flags that are not here. One that cannot change anything is taken, with a note; one that would is refused by name.

use Effect::{Missing, Moot};
use Takes::{Nothing, Switch, Value};

/// What may follow a switch.
pub(crate) const SWITCH: [&str; 5] = ["on", "off", "auto", "0", "1"];

/// A flag with its other spellings.
pub(crate) struct Elsewhere {
    names: &'static [&'static str],
    pub(crate) takes: Takes,
    effect: Effect,
}

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Value,
    /// A value out of [`SWITCH`], or none.
    Switch,
}

/// What a flag would do here.
enum Effect {
    /// Nothing, for this reason.
    Moot(&'static str),
    /// What is not here yet, with a way around it or an empty text. The number turns it off, which changes nothing either.
    Missing(&'static str, Option<f64>),
}

const fn row(names: &'static [&'static str], takes: Takes, effect: Effect) -> Elsewhere {
    Elsewhere {
        names,
        takes,
        effect,
    }
}

const MAPPED: Effect = Moot("the model file is always mapped, and read as it is needed");
const NO_GPU: Effect = Moot("all is computed on the CPU");
const NO_LOG: Effect = Moot("there is no log");
const ONE_SEQUENCE: Effect = Moot("there is one sequence");
const NO_WARMUP: Effect = Moot("nothing is warmed up");
const NO_REPACKING: Effect = Moot("weights are never repacked");
const SCHEDULED: Effect = Moot("the system places and schedules threads");
const LATER: Effect = Missing("", None);
const NO_DRAFT: Effect = Missing("there is no speculative decoding", None);
const ROPE: Effect = Missing("positions are what the model file says", None);
const NO_MEDIA: Effect = Missing("models read text alone", None);
const PINNING: Effect = Missing("pin the program with taskset", None);

/// All of them, by what they are about.
const ALL: &[Elsewhere] = &[
    // How the file is read.
    row(&["--mmap", "--no-mmap", "--mlock"], Nothing, MAPPED),
    row(
        &["--load-mode", "-lm", "--lazy-mode", "-lzm"],
        Value,
        MAPPED,
    ),
    row(&["--repack", "--no-repack", "-nr"], Nothing, NO_REPACKING),
    row(&["--warmup", "--no-warmup"], Nothing, NO_WARMUP),
    row(&["--override-kv"], Value, LATER),
    row(
        &[
            "--lora",
            "--lora-scaled",
            "--control-vector",
            "--control-vector-scaled",
        ],
        Value,
        LATER,
    ),
    row(
        &["--hf-file", "-hff"],
        Value,
        Missing("give -m hf:OWNER/REPO/FILE", None),
    ),
    row(
        &["--hf-token", "-hft"],
        Value,
        Missing("set HF_TOKEN", None),
    ),
    row(&["--docker-repo", "-dr"], Value, LATER),
    // Devices.
    row(&["--gpu-layers", "--n-gpu-layers", "-ngl"], Value, NO_GPU),
    row(
        &[
            "--device",
            "-dev",
            "--split-mode",
            "-sm",
            "--tensor-split",
            "-ts",
            "--main-gpu",
            "-mg",
        ],
        Value,
        NO_GPU,
    ),
    row(
        &[
            "--override-tensor",
            "-ot",
            "--n-cpu-moe",
            "-ncmoe",
            "--n-cpu-ffn",
            "-ncffn",
        ],
        Value,
        NO_GPU,
    ),
    row(
        &[
            "--fit",
            "-fit",
            "--fit-target",
            "-fitt",
            "--fit-ctx",
            "-fitc",
        ],
        Value,
        NO_GPU,
    ),
    row(
        &[
            "--cpu-moe",
            "-cmoe",
            "--no-host",
            "--op-offload",
            "--no-op-offload",
            "-nopo",
        ],
        Nothing,
        NO_GPU,
    ),
    row(
        &[
            "--kv-offload",
            "-kvo",
            "--no-kv-offload",
            "-nkvo",
            "--backend-sampling",
            "-bs",
        ],
        Nothing,
        NO_GPU,
    ),
    row(
        &["--list-devices"],
        Nothing,
        Missing("`puna doctor` tells what the machine has", None),
    ),
    row(&["--rpc", "-rpc"], Value, LATER),
    // Threads.
    row(
        &["--threads-batch", "-tb"],
        Value,
        Moot("prompts are computed by the threads of -t too"),
    ),
    row(
        &["--numa", "--prio", "--prio-batch", "--poll", "--poll-batch"],
        Value,
        SCHEDULED,
    ),
    row(
        &["--cpu-mask", "-C", "--cpu-range", "-Cr", "--cpu-strict"],
        Value,
        PINNING,
    ),
    row(
        &[
            "--cpu-mask-batch",
            "-Cb",
            "--cpu-range-batch",
            "-Crb",
            "--cpu-strict-batch",
        ],
        Value,
        PINNING,
    ),
    // Attention and cache.
    row(
        &["--flash-attn"],
        Switch,
        Moot("attention is always of this kind"),
    ),
    row(
        &["--defrag-thold", "-dt"],
        Value,
        Moot("the cache is paged and needs none"),
    ),
    row(
        &["--swa-full"],
        Nothing,
        Moot("sliding windows keep what they need"),
    ),
    row(
        &["--kv-unified", "-kvu", "--no-kv-unified", "-no-kvu"],
        Nothing,
        ONE_SEQUENCE,
    ),
    row(&["--parallel"], Value, ONE_SEQUENCE),
    row(&["--keep"], Value, Moot("a full context is never shifted")),
    row(
        &["--no-context-shift"],
        Nothing,
        Moot("a full context is never shifted"),
    ),
    row(
        &["--context-shift"],
        Nothing,
        Missing("a full context ends the answer", None),
    ),
    row(&["--prompt-cache"], Value, LATER),
    row(&["--prompt-cache-all", "--prompt-cache-ro"], Nothing, LATER),
    row(
        &["--grp-attn-n", "-gan", "--grp-attn-w", "-gaw"],
        Value,
        LATER,
    ),
    row(
        &[
            "--rope-scaling",
            "--rope-scale",
            "--rope-freq-base",
            "--rope-freq-scale",
        ],
        Value,
        ROPE,
    ),
    row(
        &["--yarn-orig-ctx", "--yarn-ext-factor", "--yarn-attn-factor"],
        Value,
        ROPE,
    ),
    row(&["--yarn-beta-slow", "--yarn-beta-fast"], Value, ROPE),
    // Sampling.
    row(&["--typical", "--typical-p"], Value, Missing("", Some(1.0))),
    row(
        &["--top-nsigma", "--top-n-sigma"],
        Value,
        Missing("", Some(-1.0)),
    ),
    row(
        &[
            "--xtc-probability",
            "--dry-multiplier",
            "--dynatemp-range",
            "--mirostat",
        ],
        Value,
        Missing("", Some(0.0)),
    ),
    row(
        &[
            "--xtc-threshold",
            "--dry-base",
            "--dry-allowed-length",
            "--dry-penalty-last-n",
        ],
        Value,
        LATER,
    ),
    row(
        &[
            "--dry-sequence-breaker",
            "--dynatemp-exp",
            "--mirostat-lr",
            "--mirostat-ent",
        ],
        Value,
        LATER,
    ),
    row(&["--adaptive-target", "--adaptive-decay"], Value, LATER),
    row(
        &[
            "--grammar",
            "--grammar-file",
            "--json-schema",
            "-j",
            "--json-schema-file",
            "-jf",
        ],
        Value,
        LATER,
    ),
    // Speculative decoding.
    row(
        &["--model-draft", "-md", "--spec-draft-model", "--spec-type"],
        Value,
        NO_DRAFT,
    ),
    row(
        &["--hf-repo-draft", "-hfd", "-hfrd", "--spec-draft-hf"],
        Value,
        NO_DRAFT,
    ),
    row(
        &["--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"],
        Value,
        NO_DRAFT,
    ),
    row(
        &["--draft-min", "--draft-n-min", "--spec-draft-n-min"],
        Value,
        NO_DRAFT,
    ),
    // Prompts and conversations.
    row(
        &["--jinja"],
        Nothing,
        Moot("chat templates are always Jinja"),
    ),
    row(
        &["--no-jinja"],
        Nothing,
        Missing("chat templates are always Jinja; --raw does without", None),
    ),
    row(
        &[
            "--chat-template-kwargs",
            "--reasoning-format",
            "--reasoning-effort",
        ],
        Value,
        LATER,
    ),
    row(
        &[
            "--reasoning",
            "-rea",
            "--reasoning-budget",
            "--reasoning-budget-message",
        ],
        Value,
        LATER,
    ),
    row(
        &["--single-turn", "-st"],
        Nothing,
        Moot("a prompt gets one answer, and only without one there is a conversation"),
    ),
    row(
        &["--no-display-prompt"],
        Nothing,
        Moot("the prompt is shown only with --display-prompt"),
    ),
    row(
        &["--simple-io"],
        Nothing,
        Moot("lines are edited only on terminals that can"),
    ),
    row(
        &["--interactive", "-i", "--interactive-first", "-if"],
        Nothing,
        Missing("without a prompt, a terminal gets a conversation", None),
    ),
    row(
        &["--multiline-input", "-mli"],
        Nothing,
        Missing(
            "in conversations, a line that ends with \\ goes on in the next one",
            None,
        ),
    ),
    row(&["--in-prefix", "--in-suffix"], Value, LATER),
    row(&["--in-prefix-bos", "--special", "-sp"], Nothing, LATER),
    row(
        &["--verbose-prompt"],
        Nothing,
        Missing("`puna tokenize` shows the tokens of a text", None),
    ),
    row(&["--binary-file", "-bf"], Value, LATER),
    row(
        &[
            "--mmproj",
            "-mm",
            "--mmproj-url",
            "-mmu",
            "--image",
            "--audio",
            "--video",
        ],
        Value,
        NO_MEDIA,
    ),
    row(
        &["--no-mmproj", "--no-mmproj-auto", "--mmproj-auto"],
        Nothing,
        Moot("models read text alone"),
    ),
    row(
        &["--no-mmproj-offload", "--mmproj-offload"],
        Nothing,
        Moot("models read text alone"),
    ),
    // What is printed.
    row(
        &["--perf", "--no-perf", "--show-timings", "--no-show-timings"],
        Nothing,
        Moot("times are told only with -v or --json"),
    ),
    row(
        &["--print-token-count", "-ptc"],
        Value,
        Missing("-v and --json tell how many tokens there were", None),
    ),
    row(
        &[
            "--log-disable",
            "--log-prefix",
            "--no-log-prefix",
            "--log-timestamps",
            "--no-log-timestamps",
        ],
        Nothing,
        NO_LOG,
    ),
    row(&["--log-colors"], Switch, NO_LOG),
    row(&["--verbosity", "--log-verbosity", "-lv"], Value, NO_LOG),
    row(&["--log-file"], Value, LATER),
    row(
        &["--output", "-o", "--output-file"],
        Value,
        Missing("--json prints JSON, and > writes to a file", None),
    ),
    row(
        &["--progress"],
        Nothing,
        Moot("results are shown as they come"),
    ),
    row(&["--delay"], Value, LATER),
];

/// The flag of this name.
pub(crate) fn find(name: &str) -> Option<&'static Elsewhere> {
    ALL.iter().find(|flag| flag.names.contains(&name))
}

impl Elsewhere {
    /// The note that the flag, written as `name`, changes nothing; or why it is an error.
    pub(crate) fn told(&self, name: &str, value: Option<&str>) -> Result<String, String> {
        if self.takes == Value && value.is_none() {
            return Err(format!("{name}: a value is missing"));
        }
        match self.effect {
            Moot(why) => Ok(format!("{name} changes nothing: {why}")),
            Missing(_, Some(off)) if value.and_then(|v| v.parse().ok()) == Some(off) => {
                let value = value.unwrap_or_default();
                Ok(format!("{name} {value} changes nothing: it is always off"))
            }
            Missing("", _) => Err(format!("{name} is not supported yet")),
            Missing(instead, _) => Err(format!("{name} is not supported yet: {instead}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<_> = ALL.iter().flat_map(|flag| flag.names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_changes_nothing_is_noted_and_what_would_is_an_error() {
        let told = |name: &str, value| find(name).unwrap().told(name, value);
        assert!(told("-ngl", Some("99")).unwrap().contains("CPU"));
        assert!(told("-ngl", None).unwrap_err().contains("missing"));
        assert!(
            told("--lora", Some("x"))
                .unwrap_err()
                .contains("not supported yet")
        );
        assert!(told("--typical", Some("1.0")).unwrap().contains("off"));
        assert!(told("--typical", Some("0.9")).is_err());
        assert!(find("--no-such-flag").is_none());
    }
}
