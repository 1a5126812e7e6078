//! What a choice asks to measure, and whether that can be done.

use potluck_engine::bench::Workload;
use potluck_panel::BenchChoice;

use super::error::BenchError;

/// Maximum runs of a workload, and maximum number of workloads and of depths: far above any use.
const MAX_COUNT: usize = 100;
/// Largest token count of a workload, and deepest context.
const MAX_TOKENS: u32 = 1 << 20;

/// Refuses a choice that cannot be measured.
///
/// # Errors
/// Why.
pub(super) fn check(choice: &BenchChoice) -> Result<(), BenchError> {
    let tokens = choice.workloads.iter().flat_map(|workload| [workload.prompt, workload.answer]);
    if choice.workloads.is_empty() || choice.depths.is_empty() {
        return Err(BenchError::Choice("There is nothing to measure: choose a workload and a depth."));
    }
    if tokens.clone().any(|tokens| tokens == 0) {
        return Err(BenchError::Choice("A prompt and an answer need at least one token."));
    }
    if tokens.chain(choice.depths.iter().copied()).any(|tokens| tokens > MAX_TOKENS) {
        return Err(BenchError::Choice("A prompt, answer or context can have at most a million tokens."));
    }
    let counts = [choice.repeats as usize, choice.workloads.len(), choice.depths.len()];
    if choice.repeats == 0 || counts.iter().any(|count| *count > MAX_COUNT) {
        return Err(BenchError::Choice("Choose between 1 and 100 runs, workloads and depths."));
    }
    Ok(())
}

/// Lengths of context to measure after, each once.
pub(super) fn depths(choice: &BenchChoice) -> impl Iterator<Item = u32> {
    let mut depths = choice.depths.clone();
    depths.sort_unstable();
    depths.dedup();
    depths.into_iter()
}

/// The workloads that fit the model's context, and sentences about those that do not.
pub(super) fn possible(choice: &BenchChoice, context: u32) -> (Vec<Workload>, Vec<String>) {
    let all = depths(choice)
        .flat_map(|depth| choice.workloads.iter().map(move |w| Workload { depth, prompt: w.prompt, answer: w.answer }));
    let (fits, not): (Vec<Workload>, Vec<Workload>) = all.partition(|workload| workload.positions() <= context);
    let sentence = |workload: &Workload| {
        let Workload { depth, prompt, answer } = workload;
        format!("{prompt} / {answer} tokens after {depth} is longer than the model's context of {context}.")
    };
    (fits, not.iter().map(sentence).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_panel::{BenchWorkload, KvCacheType};

    fn choice() -> BenchChoice {
        BenchChoice {
            model: potluck_panel::ModelSource::Relay { name: "tiny".into() },
            workloads: vec![BenchWorkload { prompt: 25, answer: 128 }],
            depths: vec![0, 2048],
            repeats: 3,
            cache: KvCacheType::F32,
            arithmetic: potluck_plan::Arithmetic::Exact,
            kernels: true,
            sampled: true,
            tuned: true,
        }
    }

    #[test]
    fn a_choice_that_measures_nothing_is_refused() {
        assert!(check(&choice()).is_ok());
        let refused = |change: fn(&mut BenchChoice)| {
            let mut choice = choice();
            change(&mut choice);
            check(&choice).unwrap_err().to_string()
        };
        assert!(refused(|choice| choice.workloads.clear()).contains("nothing to measure"));
        assert!(refused(|choice| choice.workloads[0].answer = 0).contains("at least one token"));
        assert!(refused(|choice| choice.depths.push(u32::MAX)).contains("a million"));
        assert!(refused(|choice| choice.repeats = 0).contains("between 1 and 100"));
    }
}
