//! Searches conversations. Letters count the same in upper and lower case; each word must be somewhere in the conversation.

use std::collections::BTreeSet;

use super::Conversation;

/// Letters of a conversation that are shown around what was found, before and behind.
const AROUND: usize = 40;

/// The texts of conversations, as they are searched.
#[derive(Clone, Debug, Default)]
pub struct Search {
    entries: Vec<Entry>,
    /// What was searched last, and the entries where it was found.
    last: Option<(Words, Vec<usize>)>,
    /// Texts that were looked through so far.
    looked: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    id: String,
    text: String,
}

/// The words of a query, folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// The words of what somebody typed. None of them if it is blank.
    #[must_use]
    pub fn of(query: &str) -> Option<Self> {
        let words: Vec<_> = fold(query).split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn are_in(&self, text: &str) -> bool {
        self.0.iter().all(|word| text.contains(word.as_str()))
    }

    /// Wherever all these words are, those of `former` are, too.
    fn narrow(&self, former: &Self) -> bool {
        former.0.iter().all(|before| self.0.iter().any(|word| word.contains(before.as_str())))
    }
}

impl Search {
    /// Reads the texts once.
    pub fn add(&mut self, conversation: &Conversation) {
        self.entries.push(Entry { id: conversation.id.clone(), text: fold(&text_of(conversation)) });
    }

    /// The conversations with all these words. Where words only become longer, none is looked through that lacked them before.
    pub fn find(&mut self, words: Words) -> BTreeSet<String> {
        let candidates = match self.last.take() {
            Some((former, found)) if words.narrow(&former) => found,
            _ => (0..self.entries.len()).collect(),
        };
        self.looked += candidates.len();
        let is_found = |at: &usize| self.entries.get(*at).is_some_and(|entry| words.are_in(&entry.text));
        let found: Vec<_> = candidates.into_iter().filter(is_found).collect();
        let ids = found.iter().map(|at| self.entries[*at].id.clone()).collect();
        self.last = Some((words, found));
        ids
    }
}

/// A conversation's words around the first word that is found in its turns; none if all of them are in its title alone.
#[must_use]
pub fn excerpt(conversation: &Conversation, words: &Words) -> Option<String> {
    let text = text_of(conversation);
    let folded = fold(&text);
    let title = conversation.title.len();
    let first = |word: &String| folded.get(title..)?.find(word.as_str()).map(|at| (title + at, word.len()));
    let (at, length) = words.0.iter().filter_map(first).min()?;
    let before = text[..at].char_indices().rev().take(AROUND).last().map_or(at, |(start, _)| start).max(title + 1);
    let after = text[at + length..].char_indices().nth(AROUND).map_or(text.len(), |(end, _)| at + length + end);
    let (start, end) = (if before > title + 1 { "…" } else { "" }, if after < text.len() { "…" } else { "" });
    let words: Vec<_> = text[before..after].split_whitespace().collect();
    Some(format!("{start}{}{end}", words.join(" ")))
}

/// The title and the texts of all branches, a line each.
fn text_of(conversation: &Conversation) -> String {
    let mut text = conversation.title.clone();
    for turn in conversation.all_turns() {
        for part in [&turn.question, &turn.answer.text] {
            text.push('\n');
            text.push_str(part);
        }
    }
    text
}

/// Small letters. One that would become longer or shorter stays, so that each stands where it stood.
fn fold(text: &str) -> String {
    text.chars()
        .map(|letter| {
            let mut small = letter.to_lowercase();
            match (small.next(), small.next()) {
                (Some(one), None) if one.len_utf8() == letter.len_utf8() => one,
                _ => letter,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use potluck_panel::RequestId;

    use super::*;

    fn conversation(id: &str, title: &str, questions: &[&str]) -> Conversation {
        let mut conversation = Conversation::new(id.into());
        for question in questions {
            conversation.ask(question, RequestId(1), "tiny");
        }
        conversation.title = title.into();
        conversation
    }

    fn over(conversations: &[Conversation]) -> Search {
        let mut search = Search::default();
        conversations.iter().for_each(|conversation| search.add(conversation));
        search
    }

    fn found(search: &mut Search, query: &str) -> Vec<String> {
        search.find(Words::of(query).expect("it has words")).into_iter().collect()
    }

    #[test]
    fn words_are_found_anywhere_in_a_conversation_in_any_case_and_order() {
        let soup = conversation("a", "Soup", &["Is it HOT?", "And the Brot, Käse und Ärger?"]);
        let mut search = over(&[soup, conversation("b", "Bread", &["Is it hot?"])]);
        assert_eq!(found(&mut search, "hot"), ["a", "b"]);
        assert_eq!(found(&mut search, "brot HOT"), ["a"]);
        assert_eq!(found(&mut search, "ärger käse"), ["a"]);
        assert_eq!(found(&mut search, "bread"), ["b"], "titles count");
        assert!(found(&mut search, "hot cake").is_empty());
        assert_eq!(Words::of(" \n"), None);
    }

    #[test]
    fn other_branches_are_searched_too() {
        let mut soup = conversation("a", "Soup", &["Is it hot?"]);
        soup.edit(0, "Is it cold?", RequestId(2), "tiny");
        assert_eq!(found(&mut over(&[soup]), "hot"), ["a"]);
    }

    #[test]
    fn a_thousand_conversations_are_looked_through_once_and_then_only_where_something_was_found() {
        let many: Vec<_> = (0..1_000)
            .map(|n| conversation(&format!("c{n}"), "Chat", &[&format!("Question number {n}"), "More of the same"]))
            .collect();
        let mut search = over(&many);
        let looked = |search: &Search| search.looked;
        assert_eq!(found(&mut search, "number 12").len(), 20, "12, 112, …, 912 and 120 to 129");
        assert_eq!(looked(&search), 1_000);
        found(&mut search, "number 123");
        assert_eq!(looked(&search), 1_020);
        found(&mut search, "number 123x");
        found(&mut search, "number 123xy");
        assert_eq!(looked(&search), 1_021, "nothing is left to look through");
        found(&mut search, "number");
        assert_eq!(looked(&search), 2_021, "a shorter word is looked for everywhere");
    }

    #[test]
    fn what_was_found_is_shown_with_the_words_around_it() {
        let long = format!("{} Is the Soup\nhot? {}", "word ".repeat(40), "word ".repeat(40));
        let soup = conversation("a", "Of soup", &[&long]);
        let excerpt = |query: &str| Words::of(query).and_then(|words| excerpt(&soup, &words));
        let shown = excerpt("soup").expect("it is there");
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("Is the Soup hot?"), "{shown}");
        assert!(shown.chars().count() < 2 * AROUND + 20, "{shown}");
        assert_eq!(excerpt("of"), None, "the title shows it");
        let short = conversation("b", "Chat", &["İSTANBUL çorbası"]);
        let words = Words::of("çorba").expect("it has words");
        assert_eq!(super::excerpt(&short, &words).as_deref(), Some("İSTANBUL çorbası"));
    }
}
