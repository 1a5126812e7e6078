//! Looks through all conversations.

use leptos::prelude::*;

use super::{
    super::{Search, Words, excerpt},
    Chats,
};

impl Chats {
    /// The texts of all conversations as they are now.
    pub fn search(self) -> Search {
        let mut search = Search::default();
        self.shelved.with_value(|shelved| shelved.values().for_each(|conversation| search.add(conversation)));
        self.open.with_untracked(|open| search.add(open));
        search
    }

    /// What a conversation says around these words.
    pub fn excerpt(self, id: &str, words: &Words) -> Option<String> {
        self.inspect(id, |conversation| excerpt(conversation, words)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixtures::*, *};

    #[test]
    fn the_open_conversation_and_those_on_the_shelf_are_searched() {
        Owner::new().with(|| {
            let browser = Browser::with(vec![answered("x", "Because of air."), answered("y", "Because of moss.")]);
            let chats = browser.tab(Vec::new(), Some("x"));
            let words = |query| Words::of(query).expect("it has words");
            let mut search = chats.search();
            assert_eq!(search.find(words("because")).into_iter().collect::<Vec<_>>(), ["x", "y"]);
            assert_eq!(search.find(words("because air")).into_iter().collect::<Vec<_>>(), ["x"]);
            assert_eq!(chats.excerpt("y", &words("moss")).as_deref(), Some("Why? Because of moss."));
            assert_eq!(chats.excerpt("gone", &words("moss")), None);
        });
    }
}
