//! The catalogue's entries.

use potluck_model::Architecture;
use potluck_text::texts;
use serde::Deserialize;

use crate::text::{bytes, model_size};

/// What a model is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Conversation.
    Chat,
    /// Programming.
    Code,
    /// Thinking before the answer.
    Reasoning,
    /// Many languages.
    Languages,
}

impl Task {
    /// All tasks, in order.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Code, Self::Reasoning, Self::Languages];

    /// Its value in forms and in the catalogue.
    #[must_use]
    pub const fn value(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Code => "code",
            Self::Reasoning => "reasoning",
            Self::Languages => "languages",
        }
    }
}

/// A file of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// The model's name.
    pub name: String,
    /// What it is best at.
    pub task: Task,
    /// What it is good for, a short phrase.
    pub good_for: String,
    /// Its address.
    pub address: String,
    /// Length of the file.
    pub bytes: u64,
    /// The weights' type, as model makers name it.
    pub quantization: String,
    /// SPDX identifier or name of the licence.
    pub licence: String,
    /// `general.architecture`.
    pub architecture: String,
    /// Parameters in total.
    pub parameters: u64,
    /// Parameters that work on a token.
    pub active: u64,
    /// Longest context of the file, tokens.
    pub context: u32,
    /// Values in the KV cache per position, all blocks together.
    pub kv_values: u64,
    /// Bytes of recurrent state that a room reserves.
    #[serde(default)]
    pub state: u64,
}

impl Entry {
    /// True if this build knows the architecture. `app/engine/tests/architectures.rs` fails for a known architecture whose
    /// answers were not compared with llama.cpp's, on random weights of its shape.
    #[must_use]
    pub fn runs_here(&self) -> bool {
        Architecture::from_name(&self.architecture).is_some()
    }

    /// Bytes of full-precision (f32) KV cache per position.
    #[must_use]
    pub fn kv_cache_per_position(&self) -> u64 {
        self.kv_values.saturating_mul(4)
    }

    /// About the bytes of weights that a token reads.
    #[must_use]
    pub fn active_bytes(&self) -> u64 {
        let share = self.active.min(self.parameters) as f64 / self.parameters.max(1) as f64;
        (self.bytes as f64 * share) as u64
    }

    /// "4 B parameters · 2.5 GB · Q4_K_M · 40,960 tokens of context · Apache-2.0".
    #[must_use]
    pub fn facts(&self) -> String {
        let context = texts().host.context(self.context);
        let size = model_size(self.parameters, self.active);
        [size, bytes(self.bytes), self.quantization.clone(), context, self.licence.clone()].join(" · ")
    }

    /// True if the filter's words all occur.
    #[must_use]
    pub fn matches(&self, filter: &str) -> bool {
        let text = [&self.name, &self.good_for, &self.licence, &self.architecture, &self.quantization]
            .map(|text| text.to_lowercase())
            .join(" ");
        filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

/// The file `catalog.json`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Catalog {
    /// The files, smallest first.
    pub models: Vec<Entry>,
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::collections::BTreeSet;

    use super::*;
    use crate::host::choice::is_gguf_address;

    const FILE: &str = include_str!("../../../../../public/catalog.json");
    /// Bits per parameter, from the smallest quantizations to 8 bits with a vocabulary in a wider type.
    const PLAUSIBLE_BITS: std::ops::Range<f64> = 2.0..10.0;

    pub fn listed() -> Vec<Entry> {
        serde_json::from_str::<Catalog>(FILE).unwrap().models
    }

    #[test]
    fn names_and_addresses_are_unique() {
        let models = listed();
        let names: BTreeSet<_> = models.iter().map(|entry| &entry.name).collect();
        let addresses: BTreeSet<_> = models.iter().map(|entry| &entry.address).collect();
        assert_eq!((names.len(), addresses.len()), (models.len(), models.len()));
    }

    #[test]
    fn the_list_is_sorted_by_size() {
        assert!(listed().is_sorted_by_key(|entry| (entry.bytes, entry.name.clone())));
    }

    #[test]
    fn addresses_name_whole_files_over_https() {
        for Entry { name, address, .. } in listed() {
            assert!(address.starts_with("https://huggingface.co/") && is_gguf_address(&address), "{name}: {address}");
            assert!(address.contains("/resolve/main/"), "{name}: {address}");
            assert!(!address.contains("-of-0"), "{name}: bytes of a split file would be those of its first part");
        }
    }

    #[test]
    fn sizes_fit_the_parameters() {
        for entry in listed() {
            let bits = entry.bytes as f64 * 8.0 / entry.parameters as f64;
            assert!(PLAUSIBLE_BITS.contains(&bits), "{}: {bits:.1} bits a parameter", entry.name);
            assert!(entry.active > 0 && entry.active <= entry.parameters, "{}", entry.name);
        }
    }

    #[test]
    fn every_entry_says_what_a_person_needs() {
        for entry in listed() {
            assert!(!entry.licence.trim().is_empty() && !entry.good_for.trim().is_empty(), "{}", entry.name);
            assert!(entry.good_for.len() <= 70, "{}: a short phrase", entry.name);
            assert!(entry.context >= 2048, "{}", entry.name);
        }
        for task in Task::ALL {
            assert!(listed().iter().any(|entry| entry.task == task), "{task:?}");
        }
    }

    #[test]
    fn architectures_are_known_and_states_are_counted() {
        for entry in listed() {
            assert!(entry.runs_here(), "{}: {}", entry.name, entry.architecture);
            let is_hybrid = ["lfm2", "lfm2moe", "qwen35", "qwen35moe", "qwen3next", "granitehybrid"]
                .contains(&entry.architecture.as_str());
            assert_eq!(entry.state > 0, is_hybrid, "{}: its recurrent state", entry.name);
            assert!(entry.kv_values > 0, "{}: its KV cache", entry.name);
        }
        assert!(listed().len() >= 30);
    }

    #[test]
    fn a_filter_needs_all_its_words_in_any_order() {
        let entry = &listed()[0];
        assert!(entry.matches("") && entry.matches("apache smollm2") && entry.matches("  360m LLAMA "));
        assert!(!entry.matches("smollm2 gemma"));
    }

    #[test]
    fn experts_count_by_what_a_token_reads() {
        let models = listed();
        let experts = models.iter().find(|entry| entry.name == "gpt-oss 20B").unwrap();
        assert!(experts.active_bytes() < experts.bytes / 5);
        assert_eq!(models[0].active_bytes(), models[0].bytes);
    }

    #[test]
    fn facts_make_one_line() {
        let entry = &listed()[0];
        assert_eq!(entry.facts(), "362 M parameters · 386 MB · Q8_0 · 8,192 tokens of context · Apache-2.0");
    }
}
