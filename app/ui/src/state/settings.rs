//! The user's settings, stored in the browser.

use potluck_panel::{AccessTokens, BadPooling, DirectConnections, Ends, Pooling};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AnswerSettings, SavedAnswers};

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
    /// Where the ends of the model may be in a room that this device hosts.
    pub ends: Ends,
    /// How experts are spread in a room that this device hosts.
    pub pooling: Pooling,
    /// Why what was stored of [`Self::pooling`] is not used.
    #[serde(skip)]
    pub bad_pooling: Option<BadPooling>,
    /// Where this device connects to others past the relay.
    pub direct: DirectConnections,
    /// Keep the screen awake while lending.
    pub awake: bool,
    /// How answers are generated, in conversations that have no settings of their own.
    #[serde(flatten)]
    pub answers: AnswerSettings,
    /// Instructions and sampling that the user saved.
    pub saved: SavedAnswers,
    /// Addresses of GGUF files that the user kept, the latest first.
    pub links: Vec<String>,
    /// For links to files that a server gives only to those it knows. Stored apart, so that no tab brings back what another one forgot.
    #[serde(skip)]
    pub access_tokens: AccessTokens,
}

/// Most addresses that are kept.
const MOST_LINKS: usize = 50;

impl Default for Settings {
    fn default() -> Self {
        Self {
            appearance: Appearance::System,
            name: None,
            lend: None,
            ends: Ends::Anywhere,
            pooling: Pooling::default(),
            bad_pooling: None,
            direct: DirectConnections::default(),
            awake: true,
            answers: AnswerSettings::default(),
            saved: SavedAnswers::default(),
            links: Vec::new(),
            access_tokens: AccessTokens::default(),
        }
    }
}

impl Settings {
    /// Reads stored settings. Older pages stored the sampling parameters beside the others.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut stored: Map<String, Value> = serde_json::from_str(text).ok()?;
        if !stored.contains_key("sampling") {
            let mut sampling = stored.clone();
            sampling.remove("seed");
            stored.insert("sampling".to_owned(), sampling.into());
        }
        // Whoever can read all the rest loses none of it.
        let pooling = stored.remove("pooling").map_or(Ok(Pooling::default()), |value| {
            serde_json::from_value(value).map_err(|_| BadPooling::Unreadable).and_then(Pooling::checked)
        });
        let settings: Self = serde_json::from_value(stored.into()).ok()?;
        let bad_pooling = pooling.err();
        Some(Self { pooling: pooling.unwrap_or_default(), bad_pooling, ..settings })
    }

    /// Keeps an address, as the latest.
    pub fn keep_link(&mut self, link: &str) {
        self.links.retain(|kept| kept != link);
        self.links.insert(0, link.to_owned());
        self.links.truncate(MOST_LINKS);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_panel::{Hedging, Sampling, WireType};

    #[test]
    fn old_settings_still_read() {
        let settings = Settings::read(r#"{"appearance":"Dark","temperature":0.2,"top_k":7,"seed":null}"#).unwrap();
        assert_eq!(settings.appearance, Appearance::Dark);
        assert_eq!(settings.answers.max_tokens, AnswerSettings::default().max_tokens);
        assert_eq!(settings.answers.sampling, Sampling { temperature: 0.2, top_k: 7, ..Sampling::default() });
        assert_eq!(Settings::read(r#"{"temperature":0.2,"seed":5}"#).unwrap().answers.seed, Some(5));
    }

    #[test]
    fn settings_are_read_as_they_were_stored() {
        let sampling = Sampling { top_p: 0.9, ..Sampling::default() };
        let pooling = Pooling { replicas: 1, hedging: Hedging::Copies(2), wire: WireType::F16 };
        let answers = AnswerSettings { sampling, seed: Some(u64::MAX), ..AnswerSettings::default() };
        let settings = Settings { answers, awake: false, pooling, ..Settings::default() };
        assert_eq!(Settings::read(&serde_json::to_string(&settings).unwrap()), Some(settings));
    }

    #[test]
    fn a_stored_spreading_of_experts_that_no_room_can_have_is_told_and_the_rest_is_read() {
        let read = |pooling: &str| {
            let settings = Settings::read(&format!(r#"{{"name":"Desk","pooling":{pooling}}}"#)).unwrap();
            assert_eq!(settings.name.as_deref(), Some("Desk"), "the rest is read: {pooling}");
            (settings.pooling, settings.bad_pooling)
        };
        let usual = Pooling::default();
        assert_eq!(read(r#"{"wire":"F16"}"#), (Pooling { wire: WireType::F16, ..usual }, None));
        assert_eq!(read(r#"{"replicas":0}"#), (usual, Some(BadPooling::NoHolder)));
        assert_eq!(read(r#"{"hedging":{"Copies":9}}"#), (usual, Some(BadPooling::Copies(9))));
        for unknown in [r#"{"wire":"F8"}"#, r#"{"replicas":-1}"#, r#"{"replicas":300}"#, r#"{"hedging":"Always"}"#, "7"]
        {
            assert_eq!(read(unknown), (usual, Some(BadPooling::Unreadable)), "{unknown}");
        }
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
}
