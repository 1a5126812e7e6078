//! What a screen reader says of an answer while it is written: whole sentences, each once.

/// How much of a growing text was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// Bytes of it.
    said: usize,
}

/// Ends of sentences, also in the scripts of East Asia, India and Arabia.
const ENDS: [char; 10] = ['.', '!', '?', '…', '。', '！', '？', '।', '؟', '۔'];
/// These ends need no blank after them.
const CLEAR_ENDS: [char; 3] = ['。', '！', '？'];

impl Spoken {
    /// Begins behind a text that is there already.
    pub fn behind(text: &str) -> Self {
        Self { said: text.trim_end().len() }
    }

    /// The sentences of `text` that have ended since, or all that is left if the text `ended`. Each line ends a sentence.
    pub fn next(&mut self, text: &str, ended: bool) -> Option<String> {
        let text = text.trim_end();
        let start = text.floor_char_boundary(self.said);
        let end = if ended { text.len() } else { last_end(text).max(start) };
        self.said = self.said.max(end);
        let news = text[start..end].trim();
        (!news.is_empty()).then(|| news.to_owned())
    }
}

/// Where the last complete sentence ends.
fn last_end(text: &str) -> usize {
    let mut before = None;
    for (at, letter) in text.char_indices().rev() {
        let ends = match before {
            None => CLEAR_ENDS.contains(&letter),
            Some(next) => CLEAR_ENDS.contains(&letter) || (ENDS.contains(&letter) && char::is_whitespace(next)),
        };
        if ends || letter == '\n' {
            return at + letter.len_utf8();
        }
        before = Some(letter);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that is said while a text grows letter by letter.
    fn told(text: &str) -> Vec<String> {
        let mut spoken = Spoken::default();
        let grown = text.char_indices().map(|(at, letter)| &text[..at + letter.len_utf8()]);
        let mut told: Vec<_> = grown.filter_map(|text| spoken.next(text, false)).collect();
        told.extend(spoken.next(text, true));
        told
    }

    #[test]
    fn each_sentence_is_said_once_when_it_is_complete() {
        assert_eq!(told("It is 3.5 m. Is it? Yes"), ["It is 3.5 m.", "Is it?", "Yes"]);
        assert_eq!(told("One line\nand another\n"), ["One line", "and another"]);
        assert_eq!(told("空は青い。海も。"), ["空は青い。", "海も。"]);
        assert!(told("").is_empty());
    }

    #[test]
    fn an_answer_that_goes_on_is_not_said_from_its_beginning() {
        let mut spoken = Spoken::behind("It was said. And\n");
        assert_eq!(spoken.next("It was said. And then. ", true).as_deref(), Some("then."));
        assert_eq!(spoken.next("It was said. And then. ", true), None);
    }

    #[test]
    fn a_text_that_shrinks_does_no_harm() {
        let mut spoken = Spoken::behind("Eine längere Antwort.");
        assert_eq!(spoken.next("ä", false), None);
        assert_eq!(spoken.next("ä", true), None);
    }
}
