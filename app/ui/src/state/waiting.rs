//! Questions that wait until the answer before them has ended.

use serde::{Deserialize, Serialize};

/// Most questions that wait in one tab.
const MOST: usize = 8;

/// The questions that wait in a tab, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting(Vec<WaitingQuestion>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WaitingQuestion {
    /// The room whose host is meant to read it.
    #[serde(default)]
    room: String,
    conversation: String,
    question: String,
}

impl Waiting {
    /// Lets a question wait in a conversation, for a room; `false` if it is blank, or too many wait.
    pub fn add(&mut self, room: &str, conversation: &str, question: &str) -> bool {
        let question = question.trim();
        let may_wait = !question.is_empty() && self.0.len() < MOST;
        if may_wait {
            let [room, conversation, question] = [room, conversation, question].map(str::to_owned);
            self.0.push(WaitingQuestion { room, conversation, question });
        }
        may_wait
    }

    /// No more can wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// The next question of a conversation was meant for this room.
    #[must_use]
    pub fn is_next_for(&self, room: &str, conversation: &str) -> bool {
        self.0.iter().find(|waiting| waiting.conversation == conversation).is_some_and(|waiting| waiting.room == room)
    }

    /// A conversation goes on under another id.
    pub fn rename(&mut self, from: &str, to: &str) {
        let here = self.0.iter_mut().filter(|waiting| waiting.conversation == from);
        here.for_each(|waiting| to.clone_into(&mut waiting.conversation));
    }

    /// What waits in a conversation.
    #[must_use]
    pub fn of(&self, conversation: &str) -> Vec<String> {
        let here = self.0.iter().filter(|waiting| waiting.conversation == conversation);
        here.map(|waiting| waiting.question.clone()).collect()
    }

    /// Takes the question at this place of a conversation's line out of it.
    pub fn take(&mut self, conversation: &str, at: usize) -> Option<String> {
        let here = |(_, waiting): &(usize, &WaitingQuestion)| waiting.conversation == conversation;
        let (index, _) = self.0.iter().enumerate().filter(here).nth(at)?;
        Some(self.0.remove(index).question)
    }

    /// The conversation is gone, and with it what waits there.
    pub fn forget(&mut self, conversation: &str) {
        self.0.retain(|waiting| waiting.conversation != conversation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_in_line_each_in_its_conversation() {
        let mut waiting = Waiting::default();
        assert!(waiting.add("r", "a", " First ") && waiting.add("s", "b", "Other") && waiting.add("r", "a", "Second"));
        assert!(!waiting.add("r", "a", " \n"), "a blank one does not wait");
        assert!(waiting.is_next_for("r", "a") && !waiting.is_next_for("s", "a"), "another room's host does not get it");
        assert_eq!(waiting.of("a"), ["First", "Second"]);
        assert_eq!(waiting.take("a", 1).as_deref(), Some("Second"), "it may be taken back");
        assert_eq!(waiting.take("a", 0).as_deref(), Some("First"));
        assert_eq!(waiting.take("a", 0), None);
        waiting.rename("b", "c");
        assert_eq!((waiting.of("b").len(), waiting.of("c").len()), (0, 1), "the conversation goes on as a copy");
        waiting.forget("c");
        assert_eq!(waiting, Waiting::default());
    }

    #[test]
    fn only_so_many_wait() {
        let mut waiting = Waiting::default();
        let taken = (0..100).filter(|_| waiting.add("r", "a", "Again?")).count();
        assert_eq!((taken, waiting.is_full()), (MOST, true));
    }
}
