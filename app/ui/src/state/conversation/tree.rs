//! The branches of a conversation. Its turns are a tree: an edited question, and an answer that was asked for again, stand beside
//! the former ones. One branch is chosen; the others wait aside, those that were chosen last behind the others.

use serde::{Deserialize, Serialize};

use super::{Answer, Conversation, Turn};

/// Names a turn within its conversation. A turn's key is larger than that of the turn that it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnKey(pub u32);

/// What has versions to step through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versioned {
    /// The questions at one place of the conversation.
    Question,
    /// The answers to one question.
    Answer,
}

/// The versions at a place of the chosen branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Which one is shown; the oldest is 0.
    pub shown: usize,
    /// How many there are.
    pub count: usize,
}

impl Conversation {
    /// The turns of all branches; a turn of the chosen one comes after those that it follows.
    pub fn all_turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().chain(&self.aside)
    }

    pub(in crate::state) fn all_turns_mut(&mut self) -> impl Iterator<Item = &mut Turn> {
        self.turns.iter_mut().chain(&mut self.aside)
    }

    /// Begins a branch at this place. What stood there waits aside.
    pub(super) fn branch(&mut self, at: usize, question: String, answer: Answer) {
        let key = self.next_key();
        self.put_aside(at);
        let follows = self.turns.last().map(|turn| turn.key);
        self.turns.push(Turn { key, follows, question, answer });
    }

    pub(super) fn next_key(&self) -> TurnKey {
        self.all_turns().map(|turn| turn.key.0 + 1).max().map_or(TurnKey::default(), TurnKey)
    }

    /// The turn with this key, if it is another answer to the question at this place, and not shown.
    #[must_use]
    pub fn beside(&self, at: usize, key: TurnKey) -> Option<&Turn> {
        let shown = self.turns.get(at)?;
        let is_its = |turn: &&Turn| turn.key == key && turn.follows == shown.follows && turn.question == shown.question;
        self.aside.iter().find(is_its)
    }

    /// The answer that stands beside the one at this place if both are compared: the version before it, or else the one after it.
    #[must_use]
    pub fn neighbour(&self, at: usize) -> Option<TurnKey> {
        let shown = self.turns.get(at)?;
        let keys = self.version_keys(shown, Versioned::Answer);
        let place = keys.iter().position(|key| *key == shown.key)?;
        keys.get(place.checked_sub(1).unwrap_or(place + 1)).copied()
    }

    /// Shows the turn with this key in place of the one at this place; `false` if it is no other answer to its question.
    pub fn choose_beside(&mut self, at: usize, key: TurnKey) -> bool {
        let is_there = self.beside(at, key).is_some();
        if is_there {
            self.put_aside(at);
            self.show(key);
        }
        is_there
    }

    /// The versions at this place.
    #[must_use]
    pub fn versions(&self, at: usize, of: Versioned) -> Versions {
        let alone = Versions { shown: 0, count: 1 };
        if self.aside.is_empty() {
            return alone;
        }
        let Some(turn) = self.turns.get(at) else { return alone };
        let keys = self.version_keys(turn, of);
        let is_shown = |key: &TurnKey| match of {
            Versioned::Answer => *key == turn.key,
            Versioned::Question => self.question_of(*key) == Some(&turn.question),
        };
        Versions { shown: keys.iter().position(is_shown).unwrap_or_default(), count: keys.len() }
    }

    /// Shows another version at this place, with what followed it when it was shown last; `false` if there is no such version, or it
    /// is shown.
    pub fn choose(&mut self, at: usize, of: Versioned, version: usize) -> bool {
        let Some(turn) = self.turns.get(at) else { return false };
        let Some(&key) = self.version_keys(turn, of).get(version) else { return false };
        let chosen = match of {
            Versioned::Answer => Some(key).filter(|key| *key != turn.key),
            Versioned::Question => {
                let question = self.question_of(key).filter(|question| **question != turn.question);
                let is_its = |other: &&Turn| other.follows == turn.follows && Some(&other.question) == question;
                self.aside.iter().rev().find(is_its).map(|turn| turn.key)
            }
        };
        if let Some(chosen) = chosen {
            self.put_aside(at);
            self.show(chosen);
        }
        chosen.is_some()
    }

    /// Deletes a turn of the chosen branch. What followed it stays, and follows the turn before. Where nothing followed it, another
    /// version is shown. `false` if there is no such turn.
    pub fn delete_turn(&mut self, at: usize) -> bool {
        if at >= self.turns.len() {
            return false;
        }
        let Turn { key, follows, .. } = self.turns.remove(at);
        if self.sent_from == Some(key) {
            self.sent_from = self.turns.get(at).map(|turn| turn.key);
        }
        for turn in self.all_turns_mut().filter(|turn| turn.follows == Some(key)) {
            turn.follows = follows;
        }
        self.go_to_end();
        true
    }

    /// The version at the same place that was shown before the last turn.
    pub(super) fn former(&self) -> Option<&Turn> {
        let follows = self.turns.last()?.follows;
        self.aside.iter().rev().find(|turn| turn.follows == follows)
    }

    /// Follows the chosen branch to its end: of several turns, the one that was shown last.
    pub(in crate::state) fn go_to_end(&mut self) {
        let next = |this: &Self| {
            let end = this.turns.last().map(|turn| turn.key);
            this.aside.iter().rposition(|turn| turn.follows == end)
        };
        while let Some(index) = next(self) {
            let turn = self.aside.remove(index);
            self.turns.push(turn);
        }
    }

    fn put_aside(&mut self, from: usize) {
        let rest = self.turns.split_off(from.min(self.turns.len()));
        self.aside.extend(rest);
    }

    /// Shows a turn that waits aside and follows the end of the chosen branch.
    fn show(&mut self, key: TurnKey) {
        if let Some(index) = self.aside.iter().position(|turn| turn.key == key) {
            let turn = self.aside.remove(index);
            self.turns.push(turn);
        }
        self.go_to_end();
    }

    fn question_of(&self, key: TurnKey) -> Option<&String> {
        self.all_turns().find(|turn| turn.key == key).map(|turn| &turn.question)
    }

    /// The answers to this turn's question, or the first turn of each question at its place, oldest first.
    fn version_keys(&self, turn: &Turn, of: Versioned) -> Vec<TurnKey> {
        let mut beside: Vec<&Turn> = self.all_turns().filter(|other| other.follows == turn.follows).collect();
        beside.sort_by_key(|turn| turn.key);
        match of {
            Versioned::Answer => beside.retain(|other| other.question == turn.question),
            Versioned::Question => {
                let mut known: Vec<&str> = Vec::new();
                beside.retain(|other| {
                    let is_new = !known.contains(&other.question.as_str());
                    if is_new {
                        known.push(&other.question);
                    }
                    is_new
                });
            }
        }
        beside.iter().map(|turn| turn.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{AnswerPart, AnswerStop, Channel, RequestId, Timings};

    use super::*;

    /// Ends the answer that runs with this text.
    fn answer(conversation: &mut Conversation, text: &str) {
        let request = conversation.running().expect("an answer runs");
        let delta = AnswerPart::Text {
            index: 0,
            channel: Channel::Answer,
            delta: text.into(),
            tokens: vec![1],
            logprobs: Vec::new(),
        };
        conversation.apply(request, &delta);
        let end = AnswerPart::End { pieces: 1, stop: AnswerStop::Complete, timings: Timings::default() };
        conversation.apply(request, &end);
    }

    /// Two questions, answered.
    fn soup() -> Conversation {
        let mut soup = Conversation::new("c".into());
        soup.ask("Soup?", RequestId(1), "tiny");
        answer(&mut soup, "Hot.");
        soup.ask("Bread?", RequestId(2), "tiny");
        answer(&mut soup, "Fresh.");
        soup
    }

    /// The chosen branch, as "question answer".
    fn shown(conversation: &Conversation) -> Vec<String> {
        conversation.turns.iter().map(|turn| format!("{} {}", turn.question, turn.answer.text)).collect()
    }

    fn versions(conversation: &Conversation, at: usize, of: Versioned) -> (usize, usize) {
        let Versions { shown, count } = conversation.versions(at, of);
        (shown, count)
    }

    #[test]
    fn an_edited_question_begins_a_branch_and_the_former_one_stays_with_all_that_followed() {
        let mut soup = soup();
        assert_eq!(versions(&soup, 0, Versioned::Question), (0, 1));
        assert!(soup.edit(0, "Stew?", RequestId(3), "tiny"));
        answer(&mut soup, "Thick.");
        assert_eq!(shown(&soup), ["Stew? Thick."]);
        assert_eq!(versions(&soup, 0, Versioned::Question), (1, 2));
        assert_eq!(soup.messages("").len(), 2, "only what is shown is sent");
        assert!(soup.choose(0, Versioned::Question, 0));
        assert_eq!(shown(&soup), ["Soup? Hot.", "Bread? Fresh."]);
        assert!(soup.choose(0, Versioned::Question, 1));
        assert_eq!(shown(&soup), ["Stew? Thick."]);
        assert!(!soup.choose(0, Versioned::Question, 1), "it is shown");
        assert!(!soup.choose(0, Versioned::Question, 2) && !soup.choose(9, Versioned::Question, 0), "there is none");
        assert!(!soup.edit(9, "x", RequestId(4), "tiny"), "there is no such turn");
    }

    #[test]
    fn an_answer_that_is_asked_for_again_stands_beside_the_former_one() {
        let mut soup = soup();
        assert!(soup.regenerate(RequestId(3), "tiny"));
        answer(&mut soup, "Dry.");
        assert_eq!(versions(&soup, 1, Versioned::Answer), (1, 2));
        assert_eq!(versions(&soup, 1, Versioned::Question), (0, 1), "it is the same question");
        soup.ask("Salt?", RequestId(4), "tiny");
        answer(&mut soup, "Yes.");
        assert!(soup.choose(1, Versioned::Answer, 0));
        assert_eq!(shown(&soup), ["Soup? Hot.", "Bread? Fresh."]);
        assert!(soup.choose(1, Versioned::Answer, 1));
        assert_eq!(shown(&soup), ["Soup? Hot.", "Bread? Dry.", "Salt? Yes."], "what followed it comes back");
    }

    #[test]
    fn an_answer_without_any_text_is_no_version() {
        let mut soup = soup();
        soup.ask("Salt?", RequestId(3), "tiny");
        let failed = AnswerPart::End {
            pieces: 0,
            stop: AnswerStop::Failed("The room is closed.".into()),
            timings: Timings::default(),
        };
        soup.apply(RequestId(3), &failed);
        soup.regenerate(RequestId(4), "tiny");
        assert_eq!(versions(&soup, 2, Versioned::Answer), (0, 1));
        assert!(soup.aside.is_empty());
    }

    #[test]
    fn of_the_answers_to_a_question_the_one_that_was_shown_last_comes_back_with_it() {
        let mut soup = soup();
        soup.regenerate(RequestId(3), "tiny");
        answer(&mut soup, "Dry.");
        soup.choose(1, Versioned::Answer, 0);
        soup.edit(1, "Cake?", RequestId(4), "tiny");
        answer(&mut soup, "Sweet.");
        assert_eq!(versions(&soup, 1, Versioned::Question), (1, 2), "two questions, one of them with two answers");
        soup.choose(1, Versioned::Question, 0);
        assert_eq!(shown(&soup)[1], "Bread? Fresh.");
        assert_eq!(versions(&soup, 1, Versioned::Answer), (0, 2));
    }

    #[test]
    fn the_same_question_asked_again_is_another_answer() {
        let mut soup = soup();
        soup.edit(1, "Bread?", RequestId(3), "tiny");
        assert_eq!(versions(&soup, 1, Versioned::Question), (0, 1));
        assert_eq!(versions(&soup, 1, Versioned::Answer), (1, 2));
    }

    #[test]
    fn an_answer_grows_on_aside() {
        let mut soup = soup();
        soup.edit(1, "Cake?", RequestId(3), "tiny");
        assert!(soup.choose(1, Versioned::Question, 0));
        assert_eq!(soup.running(), Some(RequestId(3)));
        answer(&mut soup, "Sweet.");
        soup.choose(1, Versioned::Question, 1);
        assert_eq!(shown(&soup)[1], "Cake? Sweet.");
    }

    #[test]
    fn a_deleted_turn_takes_nothing_along() {
        let mut soup = soup();
        soup.edit(1, "Cake?", RequestId(3), "tiny");
        answer(&mut soup, "Sweet.");
        assert!(soup.delete_turn(0));
        assert_eq!(shown(&soup), ["Cake? Sweet."], "what followed it stays");
        assert_eq!(versions(&soup, 0, Versioned::Question), (1, 2), "with its versions");
        assert!(soup.delete_turn(0));
        assert_eq!(shown(&soup), ["Bread? Fresh."], "the former version is shown");
        assert!(soup.delete_turn(0));
        assert!(soup.turns.is_empty() && soup.aside.is_empty());
        assert!(!soup.delete_turn(0), "there is nothing left to delete");
    }

    #[test]
    fn a_key_is_never_given_twice() {
        let mut soup = soup();
        for request in 3..40 {
            let at = request as usize % soup.turns.len();
            soup.edit(at, &format!("Question {request}"), RequestId(request), "tiny");
            answer(&mut soup, "Yes.");
            if request % 5 == 0 {
                soup.delete_turn(soup.turns.len() - 1);
            }
            let mut keys: Vec<_> = soup.all_turns().map(|turn| turn.key).collect();
            keys.sort_unstable();
            let count = keys.len();
            keys.dedup();
            assert_eq!(keys.len(), count);
            assert!(soup.all_turns().all(|turn| turn.follows.is_none_or(|before| before < turn.key)));
        }
    }
}
