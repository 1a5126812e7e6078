//! `potluck-node run MODEL --bench`: the bench of the page, at a terminal.

use std::fmt::Write;

use potluck_node::node::Input;
use potluck_panel::{BenchChoice, BenchEvent, BenchReport, BenchWorkload, KvCacheType, ToNode, ToPage};
use potluck_text::texts;

use crate::failure::Failure;
use crate::output::{print, say};
use crate::printable::Printable;
use crate::run::RunOptions;
use crate::session::Session;
use crate::showing::show_loading;
use crate::signals::Stop;
use crate::waiting::Purpose;

/// What a benchmark measures. Unless told otherwise: chat, creative writing and summarization (dynamic-partitioning.txt 7.1.3),
/// and the prompt of llamaweb.txt section 4.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Benchmark")]
pub struct BenchOptions {
    /// Benchmark the model. With --prompt, answer the prompt instead, and print the answer's timings as JSON to standard error
    #[arg(long)]
    pub bench: bool,
    /// Lengths of prompt and answer to measure, in tokens: PROMPT/ANSWER, several separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "25/128,25/1024,1024/128,512/128",
        requires = "bench",
        conflicts_with = "prompt",
        value_parser = parse_workload
    )]
    pub workloads: Vec<BenchWorkload>,
    /// Lengths of the context in front of the prompt, in tokens, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0,2048",
        requires = "bench",
        conflicts_with = "prompt",
        value_parser = parse_depth
    )]
    pub depths: Vec<u32>,
    /// Number of measured runs, from 1 to 100. A warm-up run comes first and does not count
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        requires = "bench",
        conflicts_with = "prompt",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub runs: u32,
    /// Use the default kernels instead of those that were measured to be fastest on this device
    #[arg(long, requires = "bench", conflicts_with = "prompt")]
    pub untuned: bool,
}

fn parse_workload(text: &str) -> Result<BenchWorkload, String> {
    let workload = || {
        let (prompt, answer) = text.trim().split_once('/')?;
        Some(BenchWorkload { prompt: prompt.parse().ok()?, answer: answer.parse().ok()? })
    };
    workload().ok_or_else(|| "expected a list of workloads, such as 25/128,1024/128".to_owned())
}

fn parse_depth(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "expected a list of depths, such as 0,2048".to_owned())
}

/// Measures a file on this device. Prints a table and, as the last line, the JSON to standard output.
///
/// # Errors
/// What failed.
pub(crate) async fn bench(options: &RunOptions, stop: &Stop) -> Result<(), Failure> {
    let (setup, chosen) = options.chosen().await?;
    let (source, files) = chosen.open()?;
    let BenchOptions { workloads, depths, runs, untuned, .. } = options.benchmark.clone();
    let choice = BenchChoice {
        model: source,
        workloads,
        depths,
        repeats: runs,
        cache: options.model_options.cache_type.unwrap_or(KvCacheType::F32),
        arithmetic: options.arithmetic,
        kernels: true,
        sampled: true,
        tuned: !untuned,
    };
    let mut session = Session::start(setup.stopped_by(stop));
    session.set_purpose(Purpose::Alone);
    session.send(Input::Page(ToNode::Bench(choice), files));
    loop {
        let ToPage::Bench(event) = session.step().await? else { continue };
        match event {
            BenchEvent::Loading(loading) => show_loading(&loading),
            BenchEvent::Running { what, done, total } => say(format!("{} of {total}: {what}", done + 1)),
            BenchEvent::Done(mut report) => {
                report.device.browser = format!("potluck-node {}", env!("CARGO_PKG_VERSION"));
                let json = serde_json::to_string(&report).map_err(|error| Failure::Failed(error.to_string()))?;
                print(&Printable::lines(&table(&report)))?;
                return print(&Printable::json(&format!("{json}\n")));
            }
            BenchEvent::Stopped => return Err(Failure::Failed(texts().notice.bench_stopped().to_owned())),
            BenchEvent::Failed(sentence) => return Err(Failure::Failed(sentence)),
        }
    }
}

/// The report as text.
fn table(report: &BenchReport) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    let device = &report.device;
    line(format!("{} {}, {:.0} MB", report.model.name, report.model.quantization, report.model.bytes as f64 / 1e6));
    line(format!("{} ({}), streams {:.1} GB/s", device.adapter, device.backend, device.streaming / 1e9));
    for (name, value) in
        device.tuned.iter().filter(|(name, _)| ["computes at most", "products computed"].contains(&name.as_str()))
    {
        line(format!("{name} {value}"));
    }
    let load = report.load;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    line(format!(
        "loaded in {:.1} s: {:.0} MB of weights, {:.0} MB in all",
        load.millis / 1e3,
        megabytes(load.weights),
        megabytes(load.allocated)
    ));
    line(format!(
        "\n{:>8} {:>8} {:>8} {:>16} {:>16} {:>16} {:>14} {:>10}",
        "context", "prompt", "answer", "prefill tok/s", "decode tok/s", "sampled tok/s", "first token ms", "streaming"
    ));
    for result in &report.workloads {
        line(format!(
            "{:>8} {:>8} {:>8} {:>16.1} {:>16.2} {:>16} {:>14.1} {:>8.1} %",
            result.depth,
            result.prompt,
            result.answer,
            result.prefill,
            result.decode,
            result.sampled.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
            result.first_token,
            100.0 * result.streaming_share
        ));
    }
    if !device.tuned.is_empty() {
        line(String::new());
    }
    device.tuned.iter().for_each(|(name, value)| line(format!("{name}: {value}")));
    for kernels in &report.kernels {
        let tokens = if kernels.rows == 1 { "one token".to_owned() } else { format!("{} tokens", kernels.rows) };
        line(format!(
            "\n{} of {tokens} after {}: {:.3} ms in kernels ({})",
            kernels.phase, kernels.depth, kernels.millis, kernels.clock
        ));
        for class in &kernels.classes {
            line(format!(
                "{:>20} {:>5} × {:>10.3} ms {:>5.1} % {:>10.1} MB {:>6.1} % of streaming",
                class.class,
                class.dispatches,
                class.millis,
                100.0 * class.millis / kernels.millis.max(1e-9),
                megabytes(class.bytes),
                100.0 * class.streaming_share
            ));
        }
    }
    report.skipped.iter().for_each(|sentence| line(format!("\n{sentence}")));
    line(String::new());
    report.method.iter().for_each(|sentence| line(sentence.clone()));
    out
}
