//! The table as a whole, as a translator sees it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use potluck_text::{Message, texts};

fn forms(message: &Message) -> impl Iterator<Item = &'static str> {
    message.one.into_iter().chain([message.other])
}

#[test]
fn ids_are_unique_and_fluent_reads_them() {
    let mut known = BTreeSet::new();
    for Message { id, .. } in texts().all() {
        let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(id.starts_with(|letter: char| letter.is_ascii_lowercase()) && id.chars().all(is_allowed), "{id}");
        assert!(known.insert(id.clone()), "{id} is there twice");
    }
}

#[test]
fn fluent_reads_each_text_as_it_is_meant() {
    for message in texts().all() {
        for text in forms(&message) {
            assert_eq!(text.trim(), text, "{}: Fluent drops blanks at the ends", message.id);
            assert!(!text.is_empty() && !text.contains('\n'), "{}", message.id);
            assert!(!text.starts_with(['[', '*', '.', '#']), "{}: has a meaning of its own", message.id);
        }
    }
}

/// The same label may be translated otherwise at another place; a sentence that is there twice is one text.
#[test]
fn no_sentence_is_there_twice() {
    let mut known = BTreeMap::new();
    for message in texts().all() {
        for text in forms(&message).filter(|text| text.split(' ').count() > 4) {
            if let Some(other) = known.insert(text, message.id.clone()) {
                panic!("{} and {} are the same: {text}", message.id, other);
            }
        }
    }
}

#[test]
fn a_text_is_printed_as_fluent_writes_it() {
    let all = texts().all();
    let printed = |id: &str| all.iter().find(|message| message.id == id).unwrap().fluent();
    assert_eq!(
        printed("answer-queued"),
        "# Place in the queue.\nanswer-queued = Others are asking too. You are number { $place }.\n"
    );
    let counted = printed("guesser-measured");
    assert!(
        counted.contains("guesser-measured =\n    { $tokens ->\n        [one] Over { $tokens } token, "),
        "{counted}"
    );
    assert!(
        counted.contains("\n       *[other] Over { $tokens } tokens, ") && counted.ends_with("\n    }\n"),
        "{counted}"
    );
}

#[test]
fn one_has_a_form_of_its_own() {
    let guesser = &texts().guesser;
    assert!(
        guesser
            .measured(1_u64, 87.4, 14_000_000)
            .starts_with("Over 1 token, a smaller copy of the model guessed 87% of the experts")
    );
    assert!(guesser.measured(1_900_u64, 87.4, 14_000_000).starts_with("Over 1,900 tokens, "));
}
