//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, ValueEnum};
use potluck_engine::Tier;
use potluck_gguf::TensorType;
use potluck_panel::{KvCacheType, Sharing};
use potluck_plan::{Arithmetic, WireType};
use potluck_planner::measures::Measure;
use potluck_protocol::Hedging;
use potluck_swarm::Pooling;
use thiserror::Error;

use super::bench::BenchOptions;
use super::guesses::GuessArguments;
use super::rounds::RoundOptions;
use super::values::{
    parse_arithmetic, parse_budget, parse_cache_type, parse_hedging, parse_sharing, parse_tier, parse_wire,
};
use crate::native::study::{TraceOptions, parse_type};
use crate::native::{Delay, Fingerprint};

const USAGE: &str = "\
potluck-node run MODEL.gguf --prompt TEXT    answer one prompt on this device, without a network
       potluck-node run MODEL.gguf --bench          measure the model on this device; prints a table and JSON
       potluck-node host MODEL --relay URL          open a room; MODEL is a file, a name on the relay, or a link
       potluck-node join LINK                       contribute this GPU to a room
       potluck-node trace MODEL.gguf --prompts TEXTFILE --out FILE    record which experts its routers choose
       potluck-node requantize IN.gguf OUT.gguf --type Q8_0           write the model with its matrices in another type";

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Answer one prompt, or measure, on this device alone.
    Run {
        /// The file.
        model: PathBuf,
        /// The common options.
        options: Options,
    },
    /// Open a room.
    Host {
        /// A file, a name on the relay, or a link.
        model: String,
        /// The relay's origin.
        relay: String,
        /// The file with the room's keys, to open the same room again.
        keys: Option<PathBuf>,
        /// List it on the relay's start page.
        visible: bool,
        /// The common options.
        options: Options,
    },
    /// Enter a room.
    Join {
        /// The room's link.
        link: String,
        /// Contribute the GPU.
        contribute: bool,
        /// The common options.
        options: Options,
    },
    /// Record what a model's routers choose.
    Trace {
        /// The file.
        model: PathBuf,
        /// Prompts, one a line.
        prompts: PathBuf,
        /// The routing trace.
        out: PathBuf,
        /// What to record beside the model.
        trace: TraceOptions,
        /// The common options.
        options: Options,
    },
    /// Write a model with its matrices in another type.
    Requantize {
        /// The file.
        input: PathBuf,
        /// The new file.
        output: PathBuf,
        /// The type.
        kind: TensorType,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Verb {
    Run,
    Host,
    Join,
    Trace,
    Requantize,
}

/// The arguments as they are written. Every option may come with every verb and in any order; the last one counts.
#[derive(Debug, Parser)]
#[command(
    name = "potluck-node",
    about = "A peer of a Potluck room without a browser",
    override_usage = USAGE,
    args_override_self = true
)]
struct Arguments {
    #[arg(hide = true)]
    verb: Option<Verb>,
    #[arg(hide = true)]
    target: Option<String>,
    #[arg(hide = true)]
    output: Option<PathBuf>,
    /// host: the relay's address
    #[arg(long, value_name = "URL")]
    relay: Option<String>,
    /// host: keep the room's keys, bans and invites in this file, and open the room again that it holds
    #[arg(long, value_name = "FILE")]
    room_keys: Option<PathBuf>,
    /// host: list the room on the relay's start page
    #[arg(long)]
    visible: bool,
    /// join: only chat, contribute nothing
    #[arg(long)]
    guest: bool,
    /// requantize: F32, F16, Q8_0, Q6_K, Q4_K, Q4_0 or Q2_K
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    kind: Option<TensorType>,
    #[command(flatten)]
    trace: TraceOptions,
    #[command(flatten)]
    options: Options,
}

/// The options of all commands.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct Options {
    /// Ask this and print the answer (join: the program ends then)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Maximum tokens of the answer
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_tokens: u32,
    /// Sampling temperature; 0 is greedy
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_hyphen_values = true)]
    pub temperature: f32,
    /// The same seed gives the same answer
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Continue the prompt as it is, without the chat template
    #[arg(long)]
    pub raw: bool,
    /// Measure the model; with a prompt: print timings as JSON on standard error
    #[arg(long)]
    pub bench: bool,
    /// What `--bench` measures.
    #[command(flatten)]
    pub benchmark: BenchOptions,
    /// KV cache type: f32, f16, q8_0 or q4_0 (default: the largest that fits; bench: f32)
    #[arg(long = "kv", value_name = "TYPE", value_parser = parse_cache_type)]
    pub cache_type: Option<KvCacheType>,
    /// host, run: how products are computed: exact or packed (vectors quantized to 8 bits); run: also matrix (prompts as half
    /// floats, by matrix units)
    #[arg(long, value_name = "HOW", default_value_t, value_parser = parse_arithmetic)]
    pub arithmetic: Arithmetic,
    /// GPU memory to contribute: 900M, 4G; 0 contributes nothing
    #[arg(long, value_name = "BYTES", default_value = "4G", value_parser = parse_budget)]
    pub budget: u64,
    /// host, run: positions of context
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub context: u32,
    /// host, run: how work is shared: fastest, everyone or experts
    #[arg(long, value_name = "WHO", default_value = "fastest", value_parser = parse_sharing)]
    pub share: Sharing,
    /// host: on how many devices each expert lies where experts are spread and memory allows
    #[arg(long, value_name = "N", default_value_t = Pooling::default().replicas, value_parser = clap::value_parser!(u8).range(1..))]
    pub replicas: u8,
    /// host: how many holders of an expert are asked: off (one), adaptive, or a number at once (at most 3)
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = parse_hedging)]
    pub hedging: Hedging,
    /// host: number format of vectors to and from devices that hold experts: f32 (exact), f16, bf16 or int8
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = parse_wire)]
    pub wire: WireType,
    /// host: let a device whose memory does not hold all experts load them when they are chosen
    #[arg(long)]
    pub on_demand: bool,
    /// host: keep everything but experts of a file on this device, and send each device only the experts that it is to hold
    #[arg(long)]
    pub protect: bool,
    /// Who guesses which experts come next.
    #[command(flatten)]
    pub guesses: GuessArguments,
    /// The name that others see
    #[arg(long, default_value = "Native peer")]
    pub name: String,
    /// Part of the adapter's name, if there are several
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    /// Which of the adapters with that name, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu_index: usize,
    /// Folder for downloaded weights
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// SHA-256 fingerprint of the relay's own certificate, as the relay shows it (default: the link's)
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// Let links to models lead to this device and its network, and over http
    #[arg(long)]
    pub allow_private_links: bool,
    /// For measurements: how many times the device runs its work, to act as a slower one; 0 computes no experts
    #[arg(long, hide = true, default_value_t = 1)]
    pub slow: u32,
    /// For measurements: delay of this device's messages, MEDIAN_MS, or MEDIAN_MS,SIGMA of a log-normal delay
    #[arg(long, hide = true, value_name = "MILLIS")]
    pub delay: Option<Delay>,
    /// For measurements: how long outputs of this device's experts wait before they are sent, each for itself: like --delay
    #[arg(long, hide = true, value_name = "MILLIS")]
    pub hesitate: Option<Delay>,
    /// For measurements: they do not wait any more once this file exists
    #[arg(long, hide = true, value_name = "FILE")]
    pub hesitate_until: Option<PathBuf>,
    /// How often the prompt is asked, and from how many conversations.
    #[command(flatten)]
    pub rounds: RoundOptions,
    /// For measurements and tests: treat the device as this tier, whatever it reports
    #[arg(long, hide = true, value_parser = parse_tier)]
    pub tier: Option<Tier>,
    /// For measurements: what the planner of a hosted room must not know
    #[arg(skip)]
    pub hidden: Vec<Measure>,
}

impl Options {
    /// How experts are pooled where this peer hosts.
    pub(super) fn pooling(&self) -> Pooling {
        Pooling { replicas: self.replicas, hedging: self.hedging, wire: self.wire, ..Pooling::default() }
    }
}

impl Default for Options {
    /// The options of an empty command line.
    fn default() -> Self {
        Self {
            prompt: None,
            max_tokens: 256,
            temperature: 0.0,
            seed: 0,
            raw: false,
            bench: false,
            benchmark: BenchOptions::default(),
            budget: 4_000_000_000,
            context: 4096,
            cache_type: None,
            arithmetic: Arithmetic::Exact,
            share: Sharing::Fastest,
            replicas: Pooling::default().replicas,
            hedging: Pooling::default().hedging,
            wire: WireType::F32,
            on_demand: false,
            protect: false,
            guesses: GuessArguments::default(),
            name: "Native peer".to_owned(),
            gpu: None,
            gpu_index: 0,
            cache: None,
            relay_fingerprint: None,
            allow_private_links: false,
            slow: 1,
            delay: None,
            hesitate: None,
            hesitate_until: None,
            rounds: RoundOptions::default(),
            tier: None,
            hidden: Vec::new(),
        }
    }
}

/// Why the command line cannot be used.
#[derive(Debug, Error)]
pub enum UsageError {
    /// An argument is not valid, or help was requested.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    /// An argument is missing.
    #[error("{0}")]
    Missing(&'static str),
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// An argument is not valid or missing, or help was requested.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let program = std::iter::once(OsString::from("potluck-node"));
    let Arguments { verb, target, output, relay, room_keys, visible, guest, kind, trace, mut options } =
        Arguments::try_parse_from(program.chain(arguments))?;
    if let Some(cache) = options.cache_type {
        options.benchmark.cache = cache;
    }
    match (&verb, options.arithmetic) {
        (Some(Verb::Run), _) | (Some(Verb::Host), Arithmetic::Exact | Arithmetic::Packed) | (_, Arithmetic::Exact) => {}
        (Some(Verb::Host), Arithmetic::Matrix) => {
            return Err(UsageError::Missing("--arithmetic matrix is for \"run\": not every device has matrix units."));
        }
        _ => {
            return Err(UsageError::Missing(
                "--arithmetic is for \"run\" and \"host\": the host chooses it for the room.",
            ));
        }
    }
    options.benchmark.arithmetic = options.arithmetic;
    let target = |missing| target.ok_or(UsageError::Missing(missing));
    match verb {
        Some(Verb::Run) => {
            if options.prompt.is_none() && !options.bench {
                return Err(UsageError::Missing("\"run\" needs a prompt: --prompt TEXT."));
            }
            Ok(Command::Run { model: target("\"run\" needs a model file.")?.into(), options })
        }
        Some(Verb::Host) => Ok(Command::Host {
            model: target("\"host\" needs a model: a file, a name on the relay, or a link.")?,
            relay: relay.ok_or(UsageError::Missing("\"host\" needs the relay's address: --relay URL."))?,
            keys: room_keys,
            visible,
            options,
        }),
        Some(Verb::Join) => {
            Ok(Command::Join { link: target("\"join\" needs a room's link.")?, contribute: !guest, options })
        }
        Some(Verb::Trace) => Ok(Command::Trace {
            model: target("\"trace\" needs a model file.")?.into(),
            prompts: trace.prompts.clone().ok_or(UsageError::Missing("\"trace\" needs prompts: --prompts FILE."))?,
            out: trace.out.clone().ok_or(UsageError::Missing("\"trace\" needs a file to write: --out FILE."))?,
            trace,
            options,
        }),
        Some(Verb::Requantize) => Ok(Command::Requantize {
            input: target("\"requantize\" needs a model file.")?.into(),
            output: output.ok_or(UsageError::Missing("\"requantize\" needs a second file, to write."))?,
            kind: kind.ok_or(UsageError::Missing("\"requantize\" needs a type: --type Q8_0."))?,
        }),
        None => Err(UsageError::Missing("Say what to do: run, host, join, trace or requantize.")),
    }
}

/// The text of `--help`.
pub fn help() -> String {
    Arguments::command().render_help().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::path::Path;

    use super::*;
    use potluck_panel::BenchWorkload;

    fn read(line: &[&str]) -> Result<Command, UsageError> {
        parse(line.iter().map(OsString::from))
    }

    #[test]
    fn options_and_defaults_are_read() {
        let line = [
            "host",
            "tiny",
            "--relay",
            "http://localhost:1",
            "--room-keys",
            "room.json",
            "--budget",
            "1.5G",
            "--share",
            "everyone",
        ];
        let Command::Host { model, relay, keys, options, .. } = read(&line).unwrap() else { panic!("a host") };
        assert_eq!((model.as_str(), relay.as_str()), ("tiny", "http://localhost:1"));
        assert_eq!(keys, Some(PathBuf::from("room.json")));
        let expected = Options { budget: 1_500_000_000, share: Sharing::Everyone, ..Options::default() };
        assert_eq!(options, expected, "everything else has its default");
    }

    #[test]
    fn options_come_in_any_order_and_the_last_one_counts() {
        let line = ["--seed", "1", "run", "--prompt", "- a list", "x.gguf", "--seed", "2", "--kv", "q8_0", "--untuned"];
        let Command::Run { model, options } = read(&line).unwrap() else { panic!("a run") };
        assert_eq!((model, options.seed), (PathBuf::from("x.gguf"), 2));
        assert_eq!(options.prompt.as_deref(), Some("- a list"));
        assert_eq!((options.cache_type, options.benchmark.cache), (Some(KvCacheType::Q8_0), KvCacheType::Q8_0));
        assert!(!options.benchmark.tuned);
    }

    #[test]
    fn workloads_and_depths_are_lists() {
        let line = ["run", "x.gguf", "--bench", "--workloads", "25/128, 1024/1", "--depths", "0,4096", "--runs", "2"];
        let Command::Run { options, .. } = read(&line).unwrap() else { panic!("a run") };
        let workloads = [(25, 128), (1024, 1)].map(|(prompt, answer)| BenchWorkload { prompt, answer });
        assert_eq!(options.benchmark.workloads, workloads);
        assert_eq!((options.benchmark.depths, options.benchmark.runs), (vec![0, 4096], 2));
        for wrong in [["--workloads", "25"], ["--workloads", "25/many"], ["--depths", "deep"], ["--slow", "-1"]] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn shadows_come_with_their_alignment() {
        let line =
            ["trace", "x.gguf", "--prompts", "p.txt", "--out", "t.bin", "--shadows", "y.gguf,y.gguf@T1KV4", "--cpu"];
        let Command::Trace { model, trace, .. } = read(&line).unwrap() else { panic!("a trace") };
        let alignments: Vec<String> = trace.shadows.iter().map(|shadow| shadow.alignment.to_string()).collect();
        assert_eq!((model, alignments), (PathBuf::from("x.gguf"), vec!["unaligned".to_owned(), "T1 KV4".to_owned()]));
        assert!(trace.cpu && trace.shadows.iter().all(|shadow| shadow.file == Path::new("y.gguf")));
        let line = ["requantize", "x.gguf", "y.gguf", "--type", "q4_0"];
        let Command::Requantize { output, kind, .. } = read(&line).unwrap() else { panic!("a new file") };
        assert_eq!((output, kind), (PathBuf::from("y.gguf"), TensorType::Q4_0));
    }

    #[test]
    fn missing_and_wrong_arguments_are_explained() {
        let error = |line: &[&str]| read(line).unwrap_err().to_string();
        assert_eq!(error(&["run", "x.gguf"]), "\"run\" needs a prompt: --prompt TEXT.");
        assert!(error(&["join", "l", "--arithmetic", "packed"]).contains("the host chooses it for the room"));
        assert!(
            error(&["host", "l", "--relay", "x", "--arithmetic", "matrix"])
                .contains("not every device has matrix units")
        );
        assert!(error(&["run", "x", "--arithmetic", "f16"]).contains("expected exact, packed or matrix"));
        assert_eq!(error(&["host", "x"]), "\"host\" needs the relay's address: --relay URL.");
        assert_eq!(error(&[]), "Say what to do: run, host, join, trace or requantize.");
        assert_eq!(error(&["trace", "x.gguf"]), "\"trace\" needs prompts: --prompts FILE.");
        assert_eq!(error(&["requantize", "x.gguf"]), "\"requantize\" needs a second file, to write.");
        assert!(error(&["requantize", "x", "y", "--type", "Q9"]).contains("use F32, F16, Q8_0"));
        assert!(error(&["trace", "x", "--shadows", "y@often"]).contains("T4KV8"));
        assert!(error(&["join", "l", "--budget", "many"]).contains("a number of bytes, such as 900M or 4G"));
        assert!(error(&["join", "l", "--frobnicate"]).contains("frobnicate"));
    }

    #[test]
    fn the_help_names_every_public_option() {
        let help = help();
        for option in [
            "--prompt",
            "--workloads",
            "--kv",
            "--arithmetic",
            "--budget",
            "--room-keys",
            "--guest",
            "--gpu-index",
            "--relay-fingerprint",
            "--allow-private-links",
            "--shadows",
            "--type",
        ] {
            assert!(help.contains(option), "{option} is missing in\n{help}");
        }
        assert!(!help.contains("--slow") && !help.contains("--tier"), "for measurements only");
    }
}
