//! Finds the markers of a template that is not in the table: what it writes around reasoning.

use crate::{ChatTemplate, LocalTime, Message, RenderOptions};

const QUESTION: &str = "Question-7f3a";
const REASONING: &str = "Reasoning-7f3a";
const ANSWER: &str = "Answer-7f3a";
/// Longest marker, in bytes.
const LONGEST: usize = 64;

/// The markers around reasoning. `None`: the template writes no reasoning, or what is around it does not look like markers.
pub(super) fn reasoning(template: &ChatTemplate) -> Option<(String, String)> {
    let question = Message::new("user", QUESTION);
    let answer = Message { reasoning: Some(REASONING.to_owned()), ..Message::new("assistant", ANSWER) };
    let now = Some(LocalTime::from_unix(0));
    let options = |add_generation_prompt| RenderOptions { add_generation_prompt, now, ..RenderOptions::default() };
    let prompt = template.render(std::slice::from_ref(&question), &options(true)).ok()?;
    let whole = template.render(&[question, answer], &options(false)).ok()?;
    let (before, rest) = whole.split_once(REASONING)?;
    let (between, _) = rest.split_once(ANSWER)?;
    let prompt = prompt.trim_end();
    // Some prompts end with the marker already.
    let open = before.strip_prefix(prompt).map(str::trim).filter(|open| !open.is_empty());
    let open = open.or_else(|| last_marker(before.trim_end()))?;
    let close = between.trim();
    (is_marker(open) && is_marker(close)).then(|| (open.to_owned(), close.to_owned()))
}

/// The `<word>` or `[word]` with which a text ends.
fn last_marker(text: &str) -> Option<&str> {
    let end = text.chars().next_back()?;
    let begin = match end {
        '>' => '<',
        ']' => '[',
        _ => return None,
    };
    text.rfind(begin).map(|at| &text[at..])
}

/// One word in brackets.
fn is_marker(text: &str) -> bool {
    let is_in = |open, close| text.starts_with(open) && text.ends_with(close) && text.matches(open).count() == 1;
    let is_one_word = !text.contains(char::is_whitespace);
    (3..=LONGEST).contains(&text.len()) && is_one_word && (is_in('<', '>') || is_in('[', ']'))
}
