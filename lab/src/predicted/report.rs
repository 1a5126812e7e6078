//! Results as lines, as a table and as JSON.

use std::fmt;
use std::path::Path;

use super::measure::Measure;
use serde_json::{Value, json};

use super::configurations::{Case, Cut};
use super::model::Measured;
use super::room::{Outcome, Token};

/// Something that was run, with what came of it.
pub struct Measurement {
    model: String,
    configuration: &'static str,
    devices: usize,
    one_way_ms: f64,
    cut: Cut,
    hidden: Option<Measure>,
    round: u32,
    result: Result<Outcome, String>,
}

impl Measurement {
    /// Of one run.
    pub fn new(model: &str, case: &Case, round: u32, result: Result<Outcome, String>) -> Self {
        Self {
            model: model.to_owned(),
            configuration: case.configuration.name,
            devices: case.configuration.devices.len(),
            one_way_ms: case.configuration.one_way_ms,
            cut: case.cut,
            hidden: case.hidden,
            round,
            result,
        }
    }

    /// Errors in percent: before the plan ran, and after the first tokens.
    fn errors(&self) -> Option<(f64, f64)> {
        let outcome = self.result.as_ref().ok()?;
        let measured = outcome.measured();
        let error = |expected: f64| (expected - measured).abs() / measured * 100.0;
        Some((error(outcome.before.token_ms), error(outcome.forecast.forecast_ms)))
    }

    fn millis(&self) -> Option<f64> {
        Some(self.result.as_ref().ok()?.measured())
    }

    /// What was varied: the cut, or what the planner did not know.
    fn variant(&self) -> String {
        match (self.hidden, self.cut) {
            (Some(hidden), _) => format!("without {hidden}"),
            (None, Cut::Equal) => "equal parts".to_owned(),
            (None, Cut::Found) => "all measures".to_owned(),
        }
    }

    /// The run of the same room in the same round in which nothing is varied.
    fn plain<'a>(&self, results: &'a [Self]) -> Option<&'a Self> {
        results.iter().find(|other| {
            (&other.model, other.configuration, other.round) == (&self.model, self.configuration, self.round)
                && (other.cut, other.hidden) == (Cut::Found, None)
        })
    }
}

fn blocks(outcome: &Outcome) -> String {
    let stages = outcome.before.stages.iter().map(|stage| (stage.end_block - stage.first_block).to_string());
    stages.collect::<Vec<_>>().join("+")
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:34} ", self.configuration)?;
        if (self.cut, self.hidden) != (Cut::Found, None) {
            write!(f, "{:18} ", self.variant())?;
        }
        match (&self.result, self.errors()) {
            (Ok(outcome), Some((before, forecast))) => write!(
                f,
                "blocks {:12} hops {}  predicted {:7.2} ms, forecast {:7.2} ms, measured {:7.2} ms  errors {before:5.1}% {forecast:5.1}%",
                blocks(outcome),
                outcome.before.network_hops,
                outcome.before.token_ms,
                outcome.forecast.forecast_ms,
                outcome.measured(),
            ),
            (Err(sentence), _) => write!(f, "failed: {sentence}"),
            (Ok(_), None) => write!(f, "nothing was measured"),
        }
    }
}

/// Mean and median absolute percentage errors over everything that was planned with all measures.
pub fn summary(results: &[Measurement]) -> String {
    // A forced cut is there to be compared with; how it is predicted counts as well.
    let counted = results.iter().filter(|result| result.hidden.is_none());
    let (before, forecast): (Vec<f64>, Vec<f64>) = counted.filter_map(Measurement::errors).unzip();
    let (ran, failed) = (results.len(), results.iter().filter(|result| result.result.is_err()).count());
    let mut lines = vec![format!(
        "{ran} runs, {failed} failed; absolute percentage error {} before a plan ran, {} of the forecast after 15 tokens",
        mean_and_median(before),
        mean_and_median(forecast)
    )];
    lines.extend(results.iter().filter(|result| result.cut == Cut::Equal).filter_map(|equal| gain(equal, results)));
    lines.join("\n")
}

fn mean_and_median(mut errors: Vec<f64>) -> String {
    errors.sort_by(f64::total_cmp);
    match errors.get(errors.len() / 2) {
        Some(median) => format!("{:.1}% (median {median:.1}%)", errors.iter().sum::<f64>() / errors.len() as f64),
        None => "nothing".to_owned(),
    }
}

/// How much quicker the plan that was found is than equal parts in the same round.
fn gain(equal: &Measurement, results: &[Measurement]) -> Option<String> {
    let (found, equal_millis) = (equal.plain(results)?.millis()?, equal.millis()?);
    Some(format!("{}: {:.2} times the tokens per second of equal parts", equal.configuration, equal_millis / found))
}

/// All runs as a table in Markdown; tokens a second beside those of the same room with all measures.
pub fn table(results: &[Measurement]) -> String {
    let head = "| model | room | devices | one way, ms | plan | blocks | expected, ms | measured, ms | first token expected, ms | measured, ms | tokens/s | of all measures |";
    let rows = results.iter().map(|result| {
        let (room, devices, away) = (result.configuration, result.devices, result.one_way_ms);
        let start = format!("| {} | {room} | {devices} | {away} | {} ", result.model, result.variant());
        match &result.result {
            Err(sentence) => format!("{start}| failed: {sentence} | | | | | | |"),
            Ok(outcome) => {
                let measured = outcome.measured();
                let plain = result.plain(results).and_then(Measurement::millis);
                let share = plain.map_or(String::new(), |plain| format!("{:.0}%", plain / measured * 100.0));
                let (blocks, expected) = (blocks(outcome), outcome.before.token_ms);
                let (first, took) = (outcome.timings.expected_first_ms, outcome.timings.first_token_ms);
                let (both, pace) = (format!("{expected:.2} | {measured:.2}"), 1e3 / measured);
                format!("{start}| {blocks} | {both} | {first:.0} | {took:.0} | {pace:.1} | {share} |")
            }
        }
    });
    [head.to_owned(), "|---|---|--:|--:|---|---|--:|--:|--:|--:|--:|--:|".to_owned()]
        .into_iter()
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Everything, for a program: also each token of each answer, and what the devices found when they timed themselves.
pub fn json(models: &[Measured], cache: &Path, results: &[Measurement]) -> String {
    let models: Vec<Value> =
        models.iter().map(|model| json!({ "model": model.name, "bytes": model.whole.0 })).collect();
    let results: Vec<Value> = results.iter().map(of_result).collect();
    let all = json!({ "models": models, "results": results, "timings": timings(cache) });
    format!("{all:#}\n")
}

fn of_result(measurement: &Measurement) -> Value {
    let mut value = json!({
        "model": measurement.model,
        "name": measurement.configuration,
        "cut": format!("{:?}", measurement.cut),
        "hidden": measurement.hidden.map(|hidden| hidden.to_string()),
        "round": measurement.round,
        "one_way_ms": measurement.one_way_ms,
    });
    match &measurement.result {
        Err(sentence) => value["failed"] = json!(sentence),
        Ok(outcome) => {
            value["network_hops"] = json!(outcome.before.network_hops);
            value["before"] = json!(outcome.before);
            value["after"] = json!(outcome.after);
            value["forecast"] = json!(outcome.forecast);
            value["moved"] = json!(outcome.moved());
            value["answer"] = json!(outcome.timings);
            value["round_trips_ms"] = json!(outcome.round_trips);
            value["measured_ms"] = json!(outcome.measured());
            value["gaps_ms"] = json!(outcome.gaps);
            let token = |token: &Token| json!({ "at_ms": token.at, "stages_ms": token.stages });
            value["tokens"] = outcome.tokens.iter().map(token).collect();
        }
    }
    value
}

/// The files in which devices keep their times, wherever they lie in the cache.
fn timings(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => timings(&path),
            path if entry.file_name() == "calibration" => {
                let kept = std::fs::read(path).ok().and_then(|json| serde_json::from_slice(&json).ok());
                kept.into_iter().collect()
            }
            _ => Vec::new(),
        })
        .collect()
}
