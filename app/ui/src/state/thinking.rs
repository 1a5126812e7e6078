//! Some models think between `<think>` and `</think>` before they answer; the page folds that part.

/// An answer's text in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The model's thinking, if any.
    pub thinking: Option<&'a str>,
    /// The thinking has ended, or there was none.
    pub answering: bool,
    /// The actual answer.
    pub answer: &'a str,
}

/// Separates the thinking at the start of an answer.
#[must_use]
pub fn split_thinking(text: &str) -> Parts<'_> {
    let Some(rest) = text.trim_start().strip_prefix("<think>") else {
        return Parts { thinking: None, answering: true, answer: text };
    };
    let (thinking, answering, answer) = match rest.split_once("</think>") {
        Some((thinking, answer)) => (thinking.trim(), true, answer.trim_start()),
        None => (rest.trim(), false, ""),
    };
    Parts { thinking: (!answering || !thinking.is_empty()).then_some(thinking), answering, answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_split_off_while_it_streams_and_after() {
        assert_eq!(split_thinking("<think>\nhm"), Parts { thinking: Some("hm"), answering: false, answer: "" });
        assert_eq!(
            split_thinking("<think>hm</think>\n\nHi"),
            Parts { thinking: Some("hm"), answering: true, answer: "Hi" }
        );
    }

    #[test]
    fn empty_thinking_and_plain_answers_show_nothing_extra() {
        assert_eq!(split_thinking("<think>\n\n</think>Hi").thinking, None);
        assert_eq!(split_thinking("1 < 2").answer, "1 < 2");
    }
}
