//! `potluck-node run MODEL --bench`: the bench of the page, at a terminal.

use std::fmt::Write;
use std::path::Path;

use potluck_panel::{BenchChoice, BenchEvent, BenchReport, BenchWorkload, Bytes, ModelSource, ToNode, ToPage};

use super::{Options, Session};
use crate::native::open_model_files;
use crate::node::Input;

/// What `--workloads`, `--depths` and `--runs` say, without the model.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchOptions {
    /// Prompts and answers.
    pub workloads: Vec<BenchWorkload>,
    /// Positions before the prompt.
    pub depths: Vec<u32>,
    /// Runs that count.
    pub runs: u32,
    /// How keys and values are stored.
    pub cache: potluck_panel::KvCacheType,
    /// By the kernels that are quickest here.
    pub tuned: bool,
}

impl Default for BenchOptions {
    /// Chat, creative writing and summarization (dynamic-partitioning.txt 7.1.3), and the prompt of llamaweb.txt section 4.
    fn default() -> Self {
        let workloads = [(25, 128), (25, 1024), (1024, 128), (512, 128)];
        let workloads = workloads.map(|(prompt, answer)| BenchWorkload { prompt, answer }).into();
        Self { workloads, depths: vec![0, 2048], runs: 5, cache: potluck_panel::KvCacheType::F32, tuned: true }
    }
}

/// `25/128,1024/128`.
pub fn parse_workloads(text: &str) -> Option<Vec<BenchWorkload>> {
    let workload = |text: &str| {
        let (prompt, answer) = text.trim().split_once('/')?;
        Some(BenchWorkload { prompt: prompt.parse().ok()?, answer: answer.parse().ok()? })
    };
    text.split(',').map(workload).collect()
}

/// `0,2048`.
pub fn parse_depths(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(|depth| depth.trim().parse().ok()).collect()
}

/// Measures a file on this device; the table and, as the last line, the JSON go to standard output.
///
/// # Errors
/// One sentence.
pub async fn bench(model: &Path, options: &Options) -> Result<(), String> {
    let files = open_model_files(model)?;
    let BenchOptions { workloads, depths, runs, cache, tuned } = options.benchmark.clone();
    let choice = BenchChoice {
        model: ModelSource::File {
            name: files.first().map(|file| file.name()).unwrap_or_default(),
            bytes: Bytes(files.first().map_or(0, |file| file.len())),
        },
        workloads,
        depths,
        repeats: runs,
        cache,
        kernels: true,
        tuned,
    };
    let mut session = Session::start("http://localhost", options);
    session.send(Input::Page(ToNode::Bench(choice), files));
    loop {
        let ToPage::Bench(event) = session.next().await? else { continue };
        match event {
            BenchEvent::Loading(_) => {}
            BenchEvent::Running { what, done, total } => eprintln!("{} of {total}: {what}", done + 1),
            BenchEvent::Done(mut report) => {
                report.device.browser = format!("potluck-node {}", env!("CARGO_PKG_VERSION"));
                print!("{}", table(&report));
                println!("{}", serde_json::to_string(&report).map_err(|error| error.to_string())?);
                return Ok(());
            }
            BenchEvent::Stopped => return Err("The benchmark was stopped.".to_owned()),
            BenchEvent::Failed(sentence) => return Err(sentence),
        }
    }
}

/// The report in lines of text.
fn table(report: &BenchReport) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    let device = &report.device;
    line(format!("{} {}, {:.0} MB", report.model.name, report.model.quantization, report.model.bytes as f64 / 1e6));
    line(format!("{} ({}), streams {:.1} GB/s", device.adapter, device.backend, device.streaming / 1e9));
    let load = report.load;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    line(format!(
        "loaded in {:.1} s: {:.0} MB of weights, {:.0} MB in all",
        load.millis / 1e3,
        megabytes(load.weights),
        megabytes(load.allocated)
    ));
    line(format!(
        "\n{:>8} {:>8} {:>8} {:>16} {:>16} {:>14} {:>10}",
        "context", "prompt", "answer", "prefill tok/s", "decode tok/s", "first token ms", "streaming"
    ));
    for result in &report.workloads {
        line(format!(
            "{:>8} {:>8} {:>8} {:>16.1} {:>16.2} {:>14.1} {:>8.1} %",
            result.depth,
            result.prompt,
            result.answer,
            result.prefill,
            result.decode,
            result.first_token,
            100.0 * result.streaming_share
        ));
    }
    if !device.tuned.is_empty() {
        line(String::new());
    }
    device.tuned.iter().for_each(|(name, value)| line(format!("{name}: {value}")));
    for kernels in &report.kernels {
        let rows = if kernels.rows == 1 { "one row".to_owned() } else { format!("{} rows", kernels.rows) };
        line(format!(
            "\n{} of {rows} after {}: {:.3} ms in kernels ({})",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_and_depths_are_read() {
        let workloads = [(25, 128), (1024, 1)].map(|(prompt, answer)| BenchWorkload { prompt, answer });
        assert_eq!(parse_workloads("25/128, 1024/1"), Some(workloads.into()));
        assert_eq!(parse_workloads("25"), None);
        assert_eq!(parse_workloads("25/many"), None);
        assert_eq!(parse_depths("0,2048"), Some(vec![0, 2048]));
        assert_eq!(parse_depths("deep"), None);
    }
}
