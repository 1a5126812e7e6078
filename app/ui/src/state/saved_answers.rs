//! Instructions and sampling under a name, to be used in any conversation.

use serde::{Deserialize, Serialize};

use super::AnswerSettings;

/// Most of them that are kept.
const MOST: usize = 50;
/// Most letters of a name.
const LONGEST_NAME: usize = 60;

/// How answers are generated, under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedAnswers {
    /// What the user calls it.
    pub name: String,
    /// Instructions and sampling.
    pub answers: AnswerSettings,
}

/// All of them, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SavedAnswers(Vec<NamedAnswers>);

impl SavedAnswers {
    /// Keeps them under a name, in place of others of that name; `false` if it is blank, or there are too many.
    pub fn keep(&mut self, name: &str, answers: AnswerSettings) -> bool {
        let name: String = name.trim().chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
        if let Some(known) = self.0.iter_mut().find(|known| known.name == name) {
            known.answers = answers;
            return true;
        }
        let may_keep = !name.is_empty() && self.0.len() < MOST;
        if may_keep {
            self.0.push(NamedAnswers { name, answers });
            self.0.sort_by_cached_key(|known| known.name.to_lowercase());
        }
        may_keep
    }

    /// Forgets those of this name.
    pub fn forget(&mut self, name: &str) {
        self.0.retain(|known| known.name != name);
    }

    /// Those of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AnswerSettings> {
        self.0.iter().find(|known| known.name == name).map(|known| &known.answers)
    }

    /// The name of settings that are just like these.
    #[must_use]
    pub fn name_of(&self, answers: &AnswerSettings) -> Option<&str> {
        self.0.iter().find(|known| known.answers == *answers).map(|known| known.name.as_str())
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|known| known.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(instructions: &str) -> AnswerSettings {
        AnswerSettings { instructions: instructions.into(), ..AnswerSettings::default() }
    }

    #[test]
    fn they_are_kept_by_name_and_in_order() {
        let mut saved = SavedAnswers::default();
        assert!(
            saved.keep(" Pirate\n", told("Arr."))
                && saved.keep("cook", told("Cook."))
                && saved.keep("Pirate", told("Ahoy."))
        );
        assert_eq!(saved.names().collect::<Vec<_>>(), ["cook", "Pirate"]);
        assert_eq!(saved.get("Pirate"), Some(&told("Ahoy.")), "the newer ones");
        assert_eq!(saved.name_of(&told("Cook.")), Some("cook"));
        saved.forget("cook");
        assert_eq!(saved.get("cook"), None);
    }

    #[test]
    fn names_and_their_number_have_limits() {
        let mut saved = SavedAnswers::default();
        assert!(!saved.keep(" \n", told("x")), "it has no name");
        assert!(saved.keep(&"ä".repeat(4_000), told("x")));
        assert!(saved.names().all(|name| name.chars().count() == LONGEST_NAME));
        let kept = (0..100).filter(|number| saved.keep(&number.to_string(), told("x"))).count();
        assert_eq!(kept, MOST - 1);
        assert!(saved.keep("7", told("y")), "a known one changes");
    }
}
