//! What was asked and answered since the start, as Prometheus reads it. The names are those of llama.cpp's server, where it has them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::question::Usage;

/// Counts. None of them tells what was said.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    prompt: AtomicU64,
    cached: AtomicU64,
    answer: AtomicU64,
    answers: AtomicU64,
    waiting: AtomicU64,
}

/// A question that waits for its turn, until this is dropped.
pub(crate) struct Waiting<'a>(&'a Meter);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Meter {
    /// An answer has ended and took so much.
    pub fn add(&self, usage: Usage) {
        let add = |count: &AtomicU64, more: u32| _ = count.fetch_add(more.into(), Ordering::Relaxed);
        add(&self.prompt, usage.prompt.saturating_sub(usage.cached));
        add(&self.cached, usage.cached);
        add(&self.answer, usage.answer);
        add(&self.answers, 1);
    }

    /// A question waits.
    pub fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// All counts, with how many questions the room has now.
    pub fn text(&self, processing: usize) -> String {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let rows = [
            ("llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were computed", get(&self.prompt)),
            (
                "potluck:cached_tokens_total",
                "counter",
                "Tokens of prompts that were in the KV cache",
                get(&self.cached),
            ),
            ("llamacpp:tokens_predicted_total", "counter", "Tokens of answers", get(&self.answer)),
            ("potluck:answers_total", "counter", "Answers that were completed", get(&self.answers)),
            ("llamacpp:requests_processing", "gauge", "Questions that the room has now", processing as u64),
            ("llamacpp:requests_deferred", "gauge", "Questions that wait here for their turn", get(&self.waiting)),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in rows {
            // Writing to a string does not fail.
            _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_no_computed_ones() {
        let meter = Meter::default();
        meter.add(Usage { prompt: 10, cached: 4, answer: 3, reasoning: 1 });
        meter.add(Usage { prompt: 5, cached: 0, answer: 2, reasoning: 0 });
        let waiting = meter.wait();
        let text = meter.text(2);
        for line in [
            "llamacpp:prompt_tokens_total 11",
            "potluck:cached_tokens_total 4",
            "llamacpp:tokens_predicted_total 5",
            "potluck:answers_total 2",
            "llamacpp:requests_processing 2",
            "llamacpp:requests_deferred 1",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}:\n{text}");
        }
        drop(waiting);
        assert!(meter.text(0).contains("llamacpp:requests_deferred 0\n"));
    }
}
