//! Results as a table and as JSON.

use std::fmt;

use potluck_panel::PlanReport;
use serde_json::{Value, json};

use crate::configurations::Configuration;
use crate::model::Measured;
use crate::room::Outcome;

/// A configuration with what came of it.
pub struct Measurement {
    configuration: &'static str,
    one_way_ms: f64,
    round: u32,
    result: Result<Outcome, String>,
}

impl Measurement {
    /// Of one run.
    pub fn new(configuration: &Configuration, round: u32, result: Result<Outcome, String>) -> Self {
        Self { configuration: configuration.name, one_way_ms: configuration.one_way_ms, round, result }
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
    let errors: Vec<(f64, f64)> = results.iter().filter_map(Measurement::errors).collect();
    let count = errors.len().max(1) as f64;
    let (before, running) =
        errors.iter().fold((0.0, 0.0), |sum, error| (sum.0 + error.0 / count, sum.1 + error.1 / count));
    format!(
        "{} runs, {} failed; mean absolute percentage error {before:.1}% before a plan ran, {running:.1}% with the first 15 tokens",
        results.len(),
        results.len() - errors.len()
    )
}

/// Everything, for a program.
pub fn json(model: &Measured, results: &[Measurement]) -> String {
    let result = |measurement: &Measurement| -> Value {
        let (name, round, one_way) = (measurement.configuration, measurement.round, measurement.one_way_ms);
        match &measurement.result {
            Err(sentence) => json!({ "name": name, "round": round, "one_way_ms": one_way, "failed": sentence }),
            Ok(outcome) => json!({
                "name": name,
                "round": round,
                "one_way_ms": one_way,
                "crossings": outcome.before.crossings,
                "before": outcome.before,
                "running": outcome.running,
                "measured_ms": outcome.measured(),
                "gaps_ms": outcome.gaps,
            }),
        }
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    let all = json!({ "model": model.name, "bytes": model.whole.0, "results": results });
    format!("{all:#}\n")
}
