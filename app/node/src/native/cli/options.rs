//! Reading the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::{Long, Short, Value, ValueExt};
use potluck_engine::Tier;
use potluck_panel::{KvCacheType, Sharing};
use potluck_planner::measures::Measure;
use thiserror::Error;

use super::bench::{BenchOptions, parse_depths, parse_workloads};

/// What `--help` prints.
pub const HELP: &str = "\
potluck-node: a peer of a Potluck room without a browser

potluck-node run MODEL.gguf --prompt TEXT    one device, no network; prints the answer
potluck-node run MODEL.gguf --bench          measures the model on this device; a table and JSON
potluck-node host MODEL --relay URL          opens a room; MODEL is a file, a name on the relay, or a link
potluck-node join LINK                       lends this GPU to a room

  --prompt TEXT        ask this and print the answer (join: the program ends then)
  --max-tokens N       most tokens of the answer (256)
  --temperature T      0 is greedy (0)
  --seed N             the same seed gives the same answer (0)
  --raw                the prompt is continued as it is, without the chat template
  --bench              with a prompt: print timings as JSON on standard error
  --workloads LIST     bench: tokens of prompt and answer (25/128,25/1024,1024/128,512/128)
  --depths LIST        bench: positions before the prompt (0,2048)
  --runs N             bench: runs that count; one more before does not (5)
  --untuned            bench: with the kernels that are good everywhere, not those measured to be quickest here
  --kv TYPE            keys and values as f32, f16, q8_0 or q4_0 (the largest that fits; bench: f32)
  --budget BYTES       GPU memory to lend: 900M, 4G; 0 lends none (4G)
  --context N          host, run: positions of context (4096)
  --share WHO          host, run: fastest (default) or everyone
  --room ID#KEY        host: open this room again
  --visible            host: list the room on the relay's door
  --guest              join: only ask, lend nothing
  --name NAME          what others see
  --gpu NAME           part of the adapter's name, if there are several
  --gpu-index N        the so-many-th of the adapters with that name (0)
  --cache FOLDER       where downloaded weights are kept
  --insecure           take any TLS certificate: the relay's own is signed by nobody
  --help";

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Print the help.
    Help,
    /// One prompt on this device alone.
    Run {
        /// The file.
        model: PathBuf,
        /// The rest.
        options: Options,
    },
    /// Open a room.
    Host {
        /// A file, a name on the relay, or a link.
        model: String,
        /// The relay's origin.
        relay: String,
        /// Id and key of a room to open again.
        room: Option<(String, String)>,
        /// List it.
        visible: bool,
        /// The rest.
        options: Options,
    },
    /// Take part in a room.
    Join {
        /// The room's link.
        link: String,
        /// Lend the GPU.
        lend: bool,
        /// The rest.
        options: Options,
    },
}

/// What all commands share.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Asked once the room can answer.
    pub prompt: Option<String>,
    /// Most tokens to write.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: f32,
    /// The same seed gives the same answer.
    pub seed: u64,
    /// Without the chat template.
    pub raw: bool,
    /// Print timings, or measure if there is no prompt.
    pub bench: bool,
    /// What to measure.
    pub benchmark: BenchOptions,
    /// Bytes to lend.
    pub budget: u64,
    /// Positions of context.
    pub context: u32,
    /// How keys and values are stored; nothing for the largest type that fits.
    pub cache_type: Option<KvCacheType>,
    /// How work is shared.
    pub share: Sharing,
    /// What others see.
    pub name: String,
    /// Part of the adapter's name.
    pub gpu: Option<String>,
    /// Which of the adapters with that name.
    pub gpu_index: usize,
    /// Folder of downloaded weights.
    pub cache: Option<PathBuf>,
    /// Take any certificate.
    pub insecure: bool,
    /// For measurements only, and not in the help: the device repeats its work so often, as a slower one would take longer.
    pub slow: u32,
    /// For measurements and tests only: treats the device as this, instead of by what it says of itself.
    pub tier: Option<Tier>,
    /// For measurements only: what the planner of a hosted room must not know.
    pub hidden: Vec<Measure>,
}

impl Default for Options {
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
            share: Sharing::Fastest,
            name: "Native peer".to_owned(),
            gpu: None,
            gpu_index: 0,
            cache: None,
            insecure: false,
            slow: 1,
            tier: None,
            hidden: Vec::new(),
        }
    }
}

/// A command line that makes no sense.
#[derive(Debug, Error)]
pub enum UsageError {
    /// lexopt's own sentence.
    #[error("{0}")]
    Arguments(#[from] lexopt::Error),
    /// Something is missing.
    #[error("{0}")]
    Missing(&'static str),
    /// A value that is none.
    #[error("\"{value}\" is no {what}.")]
    Bad {
        /// What it should be.
        what: &'static str,
        /// What was given.
        value: String,
    },
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// One sentence on what is wrong.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut words: Vec<String> = Vec::new();
    let mut options = Options::default();
    let (mut relay, mut room, mut visible, mut lend) = (None, None, false, true);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("prompt") => options.prompt = Some(parser.value()?.string()?),
            Long("max-tokens") => options.max_tokens = parser.value()?.parse()?,
            Long("temperature") => options.temperature = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("raw") => options.raw = true,
            Long("bench") => options.bench = true,
            Long("workloads") => {
                let value = parser.value()?.string()?;
                let workloads = parse_workloads(&value);
                options.benchmark.workloads =
                    workloads.ok_or(UsageError::Bad { what: "list of workloads, such as 25/128,1024/128", value })?;
            }
            Long("depths") => {
                let value = parser.value()?.string()?;
                let depths = parse_depths(&value);
                options.benchmark.depths =
                    depths.ok_or(UsageError::Bad { what: "list of depths, such as 0,2048", value })?;
            }
            Long("runs") => options.benchmark.runs = parser.value()?.parse()?,
            Long("untuned") => options.benchmark.tuned = false,
            Long("kv") => {
                let value = parser.value()?.string()?;
                let Ok(cache) = value.parse::<KvCacheType>() else {
                    return Err(UsageError::Bad { what: "type of keys and values (f32, f16, q8_0 or q4_0)", value });
                };
                options.benchmark.cache = cache;
                options.cache_type = Some(cache);
            }
            Long("budget") => {
                let value = parser.value()?.string()?;
                let bytes = parse_bytes(&value);
                options.budget = bytes.ok_or(UsageError::Bad { what: "number of bytes, such as 900M or 4G", value })?;
            }
            Long("context") => options.context = parser.value()?.parse()?,
            Long("share") => {
                let value = parser.value()?.string()?;
                options.share = match value.as_str() {
                    "fastest" => Sharing::Fastest,
                    "everyone" => Sharing::Everyone,
                    _ => return Err(UsageError::Bad { what: "way to share (fastest or everyone)", value }),
                };
            }
            Long("relay") => relay = Some(parser.value()?.string()?),
            Long("room") => {
                let value = parser.value()?.string()?;
                let Some((id, key)) = value.split_once('#') else {
                    return Err(UsageError::Bad { what: "room and key, ID#KEY", value });
                };
                room = Some((id.to_owned(), key.to_owned()));
            }
            Long("visible") => visible = true,
            Long("guest") => lend = false,
            Long("name") => options.name = parser.value()?.string()?,
            Long("gpu") => options.gpu = Some(parser.value()?.string()?),
            Long("gpu-index") => options.gpu_index = parser.value()?.parse()?,
            Long("cache") => options.cache = Some(parser.value()?.into()),
            Long("insecure") => options.insecure = true,
            Long("tier") => {
                let value = parser.value()?.string()?;
                options.tier = match value.as_str() {
                    "software" => Some(Tier::Software),
                    "full" => Some(Tier::Full),
                    _ => return Err(UsageError::Bad { what: "tier (software or full)", value }),
                };
            }
            Long("slow") => {
                let value = parser.value()?.string()?;
                let times = value.parse().ok().filter(|times| *times >= 1);
                options.slow = times.ok_or(UsageError::Bad { what: "number of repetitions", value })?;
            }
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut words = words.into_iter();
    let (verb, target) = (words.next(), words.next());
    if words.next().is_some() {
        return Err(UsageError::Missing("Too many words; put quotes around a prompt."));
    }
    let target = |missing| target.ok_or(UsageError::Missing(missing));
    match verb.as_deref() {
        Some("run") => {
            if options.prompt.is_none() && !options.bench {
                return Err(UsageError::Missing("\"run\" needs a prompt: --prompt TEXT."));
            }
            Ok(Command::Run { model: target("\"run\" needs a model file.")?.into(), options })
        }
        Some("host") => Ok(Command::Host {
            model: target("\"host\" needs a model: a file, a name on the relay, or a link.")?,
            relay: relay.ok_or(UsageError::Missing("\"host\" needs the relay's address: --relay URL."))?,
            room,
            visible,
            options,
        }),
        Some("join") => Ok(Command::Join { link: target("\"join\" needs a room's link.")?, lend, options }),
        _ => Err(UsageError::Missing("Say what to do: run, host or join.")),
    }
}

/// `900M`, `4G`, `1.5g`, `123456`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let unit = |letter: char| match letter.to_ascii_uppercase() {
        'K' => Some(1e3),
        'M' => Some(1e6),
        'G' => Some(1e9),
        _ => None,
    };
    let (number, factor) = match text.chars().last().and_then(unit) {
        Some(factor) => (&text[..text.len() - 1], factor),
        None => (text, 1.0),
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    (bytes.is_finite() && (0.0..9e18).contains(&bytes)).then_some(bytes as u64)
}

/// Origin, room and key of `https://host/r/ROOM#KEY`.
pub fn parse_link(link: &str) -> Option<(String, String, Option<String>)> {
    let (scheme, rest) = link.split_once("://")?;
    let (host, path) = rest.split_once("/r/")?;
    let (room, key) = match path.split_once('#') {
        Some((room, key)) => (room, Some(key.to_owned()).filter(|key| !key.is_empty())),
        None => (path, None),
    };
    let room = room.trim_end_matches('/');
    let plain = !room.is_empty() && room.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (plain && !host.is_empty()).then(|| (format!("{scheme}://{host}"), room.to_owned(), key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(line: &[&str]) -> Result<Command, UsageError> {
        parse(line.iter().map(OsString::from))
    }

    #[test]
    fn a_whole_line_is_read() {
        let line = [
            "host",
            "tiny",
            "--relay",
            "http://localhost:1",
            "--room",
            "abc#k",
            "--budget",
            "1.5G",
            "--share",
            "everyone",
        ];
        let Command::Host { model, relay, room, options, .. } = read(&line).unwrap() else { panic!("a host") };
        assert_eq!((model.as_str(), relay.as_str()), ("tiny", "http://localhost:1"));
        assert_eq!(room, Some(("abc".to_owned(), "k".to_owned())));
        assert_eq!((options.budget, options.share), (1_500_000_000, Sharing::Everyone));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let said = |line: &[&str]| read(line).unwrap_err().to_string();
        assert_eq!(said(&["run", "x.gguf"]), "\"run\" needs a prompt: --prompt TEXT.");
        assert_eq!(said(&["host", "x"]), "\"host\" needs the relay's address: --relay URL.");
        assert_eq!(said(&[]), "Say what to do: run, host or join.");
        assert_eq!(said(&["join", "l", "--budget", "many"]), "\"many\" is no number of bytes, such as 900M or 4G.");
        assert!(said(&["join", "l", "--frobnicate"]).contains("frobnicate"));
    }

    #[test]
    fn links_and_sizes_are_understood() {
        let link = parse_link("https://192.168.1.5:8787/r/k3v9#00ff").unwrap();
        assert_eq!(link, ("https://192.168.1.5:8787".into(), "k3v9".into(), Some("00ff".into())));
        assert_eq!(parse_link("http://h/r/k3v9").unwrap().2, None);
        assert_eq!(parse_link("http://h/rooms/k3v9"), None);
        assert_eq!(parse_link("http://h/r/a b"), None);
        assert_eq!(parse_bytes("900M"), Some(900_000_000));
        assert_eq!(parse_bytes("12"), Some(12));
        assert_eq!(parse_bytes("-1G"), None);
        assert_eq!(parse_bytes("G"), None);
    }
}
