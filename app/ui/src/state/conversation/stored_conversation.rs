//! Conversations as browsers have stored them.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{super::AnswerSettings, Answer, Conversation, Turn, TurnKey};

/// A larger key leaves too few for the turns to come.
const LARGEST_KEY: TurnKey = TurnKey(u32::MAX / 2);

/// Any form of a stored conversation. Older pages stored one branch, without keys.
#[derive(Deserialize)]
pub(super) struct StoredConversation {
    id: String,
    title: String,
    renamed: bool,
    #[serde(default)]
    pinned: bool,
    changed: f64,
    #[serde(default)]
    own_answers: Option<AnswerSettings>,
    #[serde(default)]
    sent_from: Option<TurnKey>,
    #[serde(default)]
    counts_from: Option<TurnKey>,
    turns: Vec<StoredTurn>,
    #[serde(default)]
    aside: Vec<StoredTurn>,
}

#[derive(Deserialize)]
struct StoredTurn {
    #[serde(default)]
    key: Option<TurnKey>,
    #[serde(default)]
    follows: Option<TurnKey>,
    question: String,
    answer: Answer,
}

impl From<StoredConversation> for Conversation {
    fn from(stored: StoredConversation) -> Self {
        let StoredConversation { turns, aside, .. } = stored;
        let (turns, aside, is_tree) = if is_tree(&turns, &aside) {
            let as_stored = |StoredTurn { key, follows, question, answer }| Turn {
                key: key.unwrap_or_default(),
                follows,
                question,
                answer,
            };
            (turns.into_iter().map(as_stored).collect(), aside.into_iter().map(as_stored).collect(), true)
        } else {
            let (turns, aside) = with_new_keys(turns, aside);
            (turns, aside, false)
        };
        let mut conversation = Self {
            id: stored.id,
            title: stored.title,
            renamed: stored.renamed,
            pinned: stored.pinned,
            changed: stored.changed,
            own_answers: stored.own_answers,
            // They name turns by their former keys.
            sent_from: stored.sent_from.filter(|_| is_tree),
            counts_from: stored.counts_from.filter(|_| is_tree),
            turns,
            aside,
        };
        conversation.go_to_end();
        conversation
    }
}

/// Each turn has a key of its own and follows a turn with a smaller one; those of the chosen branch follow one another.
fn is_tree(turns: &[StoredTurn], aside: &[StoredTurn]) -> bool {
    let mut keys = BTreeSet::new();
    let mut all = turns.iter().chain(aside);
    let has_own_key = |turn: &StoredTurn| turn.key.is_some_and(|key| key <= LARGEST_KEY && keys.insert(key));
    let are_named = all.clone().all(has_own_key);
    let follows_one = |turn: &StoredTurn| turn.follows.is_none_or(|key| keys.contains(&key) && Some(key) < turn.key);
    let before = std::iter::once(None).chain(turns.iter().map(|turn| turn.key));
    are_named && all.all(follows_one) && turns.iter().zip(before).all(|(turn, before)| turn.follows == before)
}

/// The chosen branch as it stands. What is aside loses its place and no text: each turn becomes another beginning.
fn with_new_keys(turns: Vec<StoredTurn>, aside: Vec<StoredTurn>) -> (Vec<Turn>, Vec<Turn>) {
    let mut keys = (0..).map(TurnKey);
    let mut turn = |StoredTurn { question, answer, .. }, follows| {
        let key = keys.next().unwrap_or_default();
        Turn { key, follows, question, answer }
    };
    let mut last = None;
    let turns = turns.into_iter().map(|stored| {
        let turn = turn(stored, last);
        last = Some(turn.key);
        turn
    });
    let turns = turns.collect();
    (turns, aside.into_iter().map(|stored| turn(stored, None)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::RequestId;
    use serde_json::{Value, json};

    use super::*;
    use crate::state::Versioned;

    fn turn(key: Option<u32>, follows: Option<u32>, question: &str) -> Value {
        let answer = json!({"request": null, "text": "Yes.", "state": "Complete", "timings": null, "model": "tiny"});
        let mut turn = json!({"question": question, "answer": answer});
        if let Some(key) = key {
            turn["key"] = json!(key);
            turn["follows"] = json!(follows);
        }
        turn
    }

    fn read(turns: &[Value], aside: &[Value]) -> Conversation {
        let stored =
            json!({"id": "c", "title": "Soup", "renamed": true, "changed": 1.0, "turns": turns, "aside": aside});
        serde_json::from_value(stored).unwrap()
    }

    fn questions(turns: &[Turn]) -> Vec<&str> {
        turns.iter().map(|turn| turn.question.as_str()).collect()
    }

    #[test]
    fn a_conversation_of_an_older_page_is_one_branch() {
        let old = json!({
            "id": "c", "title": "Soup", "renamed": false, "changed": 7.0,
            "turns": [turn(None, None, "Soup?"), turn(None, None, "Bread?")],
        });
        let mut soup: Conversation = serde_json::from_value(old).unwrap();
        assert_eq!(questions(&soup.turns), ["Soup?", "Bread?"]);
        assert_eq!(soup.turns[1].follows, Some(soup.turns[0].key));
        assert_eq!((soup.title.as_str(), soup.changed, soup.aside.len()), ("Soup", 7.0, 0));
        assert!(soup.edit(1, "Cake?", RequestId(1), "tiny"), "and goes on as any other");
        assert_eq!(soup.versions(1, Versioned::Question).count, 2);
    }

    #[test]
    fn branches_are_read_as_they_were_stored() {
        let mut soup = read(&[turn(None, None, "Soup?"), turn(None, None, "Bread?")], &[]);
        soup.edit(0, "Stew?", RequestId(1), "tiny");
        soup.regenerate(RequestId(2), "tiny");
        soup.choose(0, Versioned::Question, 0);
        let stored = serde_json::to_string(&soup).unwrap();
        assert_eq!(serde_json::from_str::<Conversation>(&stored).unwrap(), soup);
        let plain = read(&[turn(None, None, "Soup?")], &[]);
        assert!(!serde_json::to_string(&plain).unwrap().contains("aside"), "one branch takes no more room");
    }

    #[test]
    fn settings_of_a_conversation_are_stored_with_it_and_those_of_the_page_are_not() {
        let mut soup = read(&[turn(None, None, "Soup?")], &[]);
        assert_eq!(soup.own_answers, None, "an older page stored none");
        assert!(!serde_json::to_string(&soup).unwrap().contains("own_answers"));
        soup.own_answers = Some(AnswerSettings { instructions: "Be brief.".into(), ..AnswerSettings::default() });
        assert_eq!(serde_json::from_str::<Conversation>(&serde_json::to_string(&soup).unwrap()).unwrap(), soup);
    }

    #[test]
    fn what_is_no_tree_loses_its_places_and_no_text() {
        let first = || turn(Some(1), None, "Soup?");
        for (why, turns, aside) in [
            ("a key twice", vec![first(), turn(Some(1), Some(1), "Bread?")], vec![]),
            ("a key that nobody has", vec![first()], vec![turn(Some(2), Some(9), "Bread?")]),
            ("a circle", vec![first()], vec![turn(Some(2), Some(3), "Bread?"), turn(Some(3), Some(2), "Cake?")]),
            ("no path", vec![first(), turn(Some(2), None, "Bread?")], vec![]),
            ("keys that are used up", vec![turn(Some(u32::MAX), None, "Soup?")], vec![]),
            ("half without keys", vec![first(), turn(None, None, "Bread?")], vec![]),
        ] {
            let count = turns.len() + aside.len();
            let mut soup = read(&turns, &aside);
            assert_eq!(soup.all_turns().count(), count, "{why}");
            assert!(soup.edit(0, "Stew?", RequestId(1), "tiny"), "{why}");
            assert_eq!(soup.all_turns().count(), count + 1, "{why}");
        }
    }

    #[test]
    fn where_no_branch_is_chosen_the_last_one_is() {
        let soup = read(&[], &[turn(Some(0), None, "Soup?"), turn(Some(1), Some(0), "Bread?")]);
        assert_eq!(questions(&soup.turns), ["Soup?", "Bread?"]);
        assert!(soup.aside.is_empty());
    }
}
