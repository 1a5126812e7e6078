//! What a screen reader says of an answer while it is written: whole sentences, each once.

/// How much of a growing text was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The text as it was last.
    text: String,
    /// Bytes of it that were said.
    said: usize,
}

/// Ends of sentences, also in the scripts of East Asia, India and Arabia.
const ENDS: [char; 10] = ['.', '!', '?', '…', '。', '！', '？', '।', '؟', '۔'];
/// These ends need no blank after them.
const CLEAR_ENDS: [char; 3] = ['。', '！', '？'];

impl Spoken {
    /// Begins behind a text that is there already.
    pub fn behind(text: String) -> Self {
        Self { said: text.trim_end().len(), text }
    }

    /// The sentences of `text` that have ended since, or all that is left if the text `ended`. Each line ends a sentence.
    pub fn next(&mut self, text: String, ended: bool) -> Option<String> {
        if !text.starts_with(&self.text[..self.said]) {
            // Markdown reads the beginning otherwise now, a line as a table's header, say: about as much as before is left.
            let unsaid = self.text.len() - self.said;
            let about = text.floor_char_boundary(text.len().saturating_sub(unsaid));
            self.said = text[about..].find('\n').map_or(about, |end| about + end);
        }
        let whole = text.trim_end();
        let start = self.said.min(whole.len());
        let end = if ended { whole.len() } else { last_end(whole).max(start) };
        let news = whole[start..end].trim().to_owned();
        self.said = self.said.max(end);
        self.text = text;
        (!news.is_empty()).then_some(news)
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
    fn said_of(text: &str) -> Vec<String> {
        let mut spoken = Spoken::default();
        let grown = text.char_indices().map(|(at, letter)| &text[..at + letter.len_utf8()]);
        let mut said: Vec<_> = grown.filter_map(|text| spoken.next(text.to_owned(), false)).collect();
        said.extend(spoken.next(text.to_owned(), true));
        said
    }

    #[test]
    fn each_sentence_is_said_once_when_it_is_complete() {
        assert_eq!(said_of("It is 3.5 m. Is it? Yes"), ["It is 3.5 m.", "Is it?", "Yes"]);
        assert_eq!(said_of("One line\nand another\n"), ["One line", "and another"]);
        assert_eq!(said_of("空は青い。海も。"), ["空は青い。", "海も。"]);
        assert!(said_of("").is_empty());
    }

    #[test]
    fn an_answer_that_goes_on_is_not_said_from_its_beginning() {
        let mut spoken = Spoken::behind("It was said. And\n".into());
        let longer = "It was said. And then. ".to_owned();
        assert_eq!(spoken.next(longer.clone(), true).as_deref(), Some("then."));
        assert_eq!(spoken.next(longer, true), None);
    }

    #[test]
    fn what_markdown_reads_otherwise_loses_no_sentence() {
        let mut spoken = Spoken::default();
        assert_eq!(spoken.next("| Name | Value |\n|--".into(), false).as_deref(), Some("| Name | Value |"));
        let table = "Name\nValue\n";
        spoken.next(table.into(), false);
        assert_eq!(spoken.next(format!("{table}Ann\n12\n"), true).as_deref(), Some("Ann\n12"));
    }

    #[test]
    fn a_text_that_shrinks_does_no_harm() {
        let mut spoken = Spoken::behind("Eine längere Antwort.".into());
        spoken.next("ä".into(), false);
        assert_eq!(spoken.next("ä".into(), true), None);
    }
}
