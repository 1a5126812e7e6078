//! The user's settings, stored in the browser.

use potluck_panel::Sampling;
use serde::{Deserialize, Serialize};

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Appearance {
    /// The system's setting.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Appearance {
    /// Value of the document's `data-appearance` attribute, which the style sheet uses.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Light or dark.
    pub appearance: Appearance,
    /// The name that others see; `None` for a default derived from the browser.
    pub name: Option<String>,
    /// Bytes to lend; `None` for the default of this kind of device.
    pub lend: Option<u64>,
    /// Keep the screen awake while lending.
    pub awake: bool,
    /// Instructions at the start of every conversation.
    pub instructions: String,
    /// Maximum tokens per answer.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: f32,
    /// Keeps the best `k` tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the most likely tokens up to this total probability.
    pub top_p: f32,
    /// Drops tokens below this probability relative to the best.
    pub min_p: f32,
    /// 1 is off.
    pub repetition_penalty: f32,
    /// A fixed seed; `None` for a new one each time.
    pub seed: Option<u64>,
    /// Addresses of GGUF files that the user kept, the latest first.
    pub links: Vec<String>,
}

/// Most addresses that are kept.
const MOST_LINKS: usize = 50;

impl Default for Settings {
    fn default() -> Self {
        let sampling = Sampling::default();
        Self {
            appearance: Appearance::System,
            name: None,
            lend: None,
            awake: true,
            instructions: String::new(),
            max_tokens: 1024,
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            repetition_penalty: sampling.repetition_penalty,
            seed: None,
            links: Vec::new(),
        }
    }
}

impl Settings {
    /// Keeps an address, as the latest.
    pub fn keep_link(&mut self, link: &str) {
        self.links.retain(|kept| kept != link);
        self.links.insert(0, link.to_owned());
        self.links.truncate(MOST_LINKS);
    }

    /// The sampling parameters of a prompt; `fresh` is the seed unless one is fixed.
    #[must_use]
    pub fn sampling(&self, fresh: u64) -> Sampling {
        Sampling {
            temperature: self.temperature.clamp(0.0, 5.0),
            top_k: self.top_k,
            top_p: self.top_p.clamp(0.01, 1.0),
            min_p: self.min_p.clamp(0.0, 1.0),
            repetition_penalty: self.repetition_penalty.clamp(0.5, 2.0),
            seed: self.seed.unwrap_or(fresh),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn old_settings_still_read() {
        let settings: Settings = serde_json::from_str(r#"{"appearance":"Dark","temperature":0.2}"#).unwrap();
        assert_eq!(settings.appearance, Appearance::Dark);
        assert_eq!(settings.max_tokens, Settings::default().max_tokens);
    }

    #[test]
    fn a_link_is_kept_once_and_the_latest_comes_first() {
        let mut settings = Settings::default();
        for link in ["a", "b", "a"] {
            settings.keep_link(link);
        }
        assert_eq!(settings.links, ["a", "b"]);
        (0..100).for_each(|number| settings.keep_link(&number.to_string()));
        assert_eq!(settings.links.len(), MOST_LINKS);
    }

    #[test]
    fn a_fixed_seed_wins_and_values_stay_sane() {
        let settings = Settings { seed: Some(5), temperature: 90.0, ..Settings::default() };
        let sampling = settings.sampling(9);
        assert_eq!(sampling.seed, 5);
        assert!(sampling.temperature <= 5.0);
        assert_eq!(Settings::default().sampling(9).seed, 9);
    }
}
