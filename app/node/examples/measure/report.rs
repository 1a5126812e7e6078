//! Results as a table and as JSON.

use std::fmt;

use potluck_panel::PlanReport;
use serde_json::{Value, json};

use crate::configurations::{Configuration, Cut};
use crate::model::Measured;
use crate::room::Outcome;

/// A configuration with what came of it.
pub struct Measurement {
    configuration: &'static str,
    one_way_ms: f64,
    cut: Cut,
    round: u32,
    result: Result<Outcome, String>,
}

impl Measurement {
    /// Of one run.
    pub fn new(configuration: &Configuration, cut: Cut, round: u32, result: Result<Outcome, String>) -> Self {
        Self { configuration: configuration.name, one_way_ms: configuration.one_way_ms, cut, round, result }
    }

    /// Errors in percent: before the plan ran, and with the measures of the warm-up.
    fn errors(&self) -> Option<(f64, f64)> {
        let outcome = self.result.as_ref().ok()?;
        let measured = outcome.measured();
        let error = |plan: &PlanReport| (plan.token_ms - measured).abs() / measured * 100.0;
        Some((error(&outcome.before), error(&outcome.running)))
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:34} ", self.configuration)?;
        if self.cut == Cut::Equal {
            write!(f, "equal ")?;
        }
        match (&self.result, self.errors()) {
            (Ok(outcome), Some((before, running))) => {
                let stages =
                    outcome.before.stages.iter().map(|stage| (stage.end_block - stage.first_block).to_string());
                write!(
                    f,
                    "blocks {:12} hops {}  predicted {:7.2} ms, running {:7.2} ms, measured {:7.2} ms  errors {before:5.1}% {running:5.1}%",
                    stages.collect::<Vec<_>>().join("+"),
                    outcome.before.crossings,
                    outcome.before.token_ms,
                    outcome.running.token_ms,
                    outcome.measured(),
                )
            }
            (Err(sentence), _) => write!(f, "failed: {sentence}"),
            (Ok(_), None) => write!(f, "nothing was measured"),
        }
    }
}

/// Mean absolute percentage errors over everything that was run.
pub fn summary(results: &[Measurement]) -> String {
    // A forced cut is there to be compared with; how it is predicted counts as well.
    let errors: Vec<(f64, f64)> = results.iter().filter_map(Measurement::errors).collect();
    let count = errors.len().max(1) as f64;
    let (before, running) =
        errors.iter().fold((0.0, 0.0), |sum, error| (sum.0 + error.0 / count, sum.1 + error.1 / count));
    let (ran, failed) = (results.len(), results.len() - errors.len());
    let mut lines = vec![format!(
        "{ran} runs, {failed} failed; mean absolute percentage error {before:.1}% before a plan ran, {running:.1}% with the first 15 tokens"
    )];
    lines.extend(results.iter().filter(|result| result.cut == Cut::Equal).filter_map(|equal| gain(equal, results)));
    lines.join("\n")
}

/// How much quicker the plan that was found is than equal parts in the same round.
fn gain(equal: &Measurement, results: &[Measurement]) -> Option<String> {
    let same = |other: &&Measurement| {
        other.cut == Cut::Found && (other.configuration, other.round) == (equal.configuration, equal.round)
    };
    let millis = |measurement: &Measurement| Some(measurement.result.as_ref().ok()?.measured());
    let (found, equal_millis) = (millis(results.iter().find(same)?)?, millis(equal)?);
    Some(format!("{}: {:.2} times the tokens per second of equal parts", equal.configuration, equal_millis / found))
}

/// Everything, for a program.
pub fn json(model: &Measured, results: &[Measurement]) -> String {
    let result = |measurement: &Measurement| -> Value {
        let (name, round, one_way) = (measurement.configuration, measurement.round, measurement.one_way_ms);
        let cut = format!("{:?}", measurement.cut);
        match &measurement.result {
            Err(sentence) => {
                json!({ "name": name, "cut": cut, "round": round, "one_way_ms": one_way, "failed": sentence })
            }
            Ok(outcome) => json!({
                "name": name,
                "cut": cut,
                "round": round,
                "one_way_ms": one_way,
                "crossings": outcome.before.crossings,
                "before": outcome.before,
                "running": outcome.running,
                "after": outcome.after,
                "moved": outcome.moved(),
                "round_trips_ms": outcome.round_trips,
                "measured_ms": outcome.measured(),
                "gaps_ms": outcome.gaps,
            }),
        }
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    let all = json!({ "model": model.name, "bytes": model.whole.0, "results": results });
    format!("{all:#}\n")
}
