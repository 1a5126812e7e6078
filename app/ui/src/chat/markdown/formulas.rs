//! Formulas as models write them: `\(a\)`, `\[a\]`, `$a$`, `$$a$$`. Markdown would take their backslashes, underscores and
//! asterisks for its own, so each is replaced by a mark before parsing and put back as it was written. So is what nests too deeply
//! for the parser, and what looks like such a mark. [`crate::chat::maths`] reads formulas.

mod ahead;

use std::{cell::Cell, collections::VecDeque, ops::Range};

use self::ahead::{Ahead, run};
use super::{Span, nesting, titles};

/// A mark is a number between two characters of the private use area.
const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';

/// A formula, or code within lines, is not longer than this, in bytes, so that finding out costs little.
const LONGEST: usize = 4 << 10;
/// Nor is `$a$`: what is longer is two prices.
const LONGEST_IN_LINE: usize = 400;
/// How often a text's bytes may be put back, taken together: once in their places, and in addresses that links refer to.
const RESTORED: usize = 4;

/// Formulas of a text that are drawn as such. Each becomes several elements.
const MOST_DRAWN: usize = 1_000;

/// A text's formulas, and the text with marks in their places.
pub struct Formulas<'a> {
    /// The text with marks.
    pub marked: String,
    found: Vec<Part<'a>>,
    /// What is not a formula, but must not reach the parser either: what lies ahead, in order.
    hidden: VecDeque<Range<usize>>,
    /// Bytes that may still be put back.
    left: Cell<usize>,
    /// Formulas that may still be drawn as such.
    drawn: Cell<usize>,
}

impl<'a> Formulas<'a> {
    /// Replaces all formulas outside of code.
    pub fn find(text: &'a str) -> Self {
        Self::find_with(text, &mut Ahead::default())
    }

    fn find_with(text: &'a str, ahead: &mut Ahead) -> Self {
        let mut hidden = nesting::too_deep(text);
        hidden.extend(titles::too_long(text));
        hidden.extend(text.match_indices([OPEN, CLOSE]).map(|(at, mark)| at..at + mark.len()));
        hidden.sort_unstable_by_key(|part| part.start);
        let mut formulas = Self {
            marked: String::with_capacity(text.len()),
            found: Vec::new(),
            hidden: hidden.into(),
            left: Cell::new(RESTORED * text.len()),
            drawn: Cell::new(MOST_DRAWN),
        };
        let mut at = 0;
        let has_formulas = text.contains(['$', '\\']);
        while has_formulas && let Some(skip) = text[at..].find(['$', '\\', '`', '~']) {
            formulas.copy(text, at..at + skip);
            at += skip;
            let (taken, kind) = match code_at(text, at, ahead) {
                0 => formula(text, at, ahead),
                code => (code, Kind::Text),
            };
            ahead.looked_at += skip + taken;
            let part = &text[at..at + taken];
            match kind {
                Kind::Text => formulas.copy(text, at..at + taken),
                Kind::Mark => formulas.mark(Part::Hidden(part)),
                Kind::Formula => formulas.mark(Part::Formula(part)),
            }
            at += taken;
        }
        formulas.copy(text, at..text.len());
        formulas
    }

    /// Takes over a part of the text, with marks in place of what is hidden.
    fn copy(&mut self, text: &'a str, part: Range<usize>) {
        let mut at = part.start;
        while let Some(hidden) = self.hidden.pop_front_if(|hidden| hidden.start < part.end) {
            // What is within a formula has its mark.
            if hidden.start >= at {
                self.marked.push_str(&text[at..hidden.start]);
                at = hidden.end;
                self.mark(Part::Hidden(&text[hidden]));
            }
        }
        self.marked.push_str(&text[at..part.end]);
    }

    fn mark(&mut self, part: Part<'a>) {
        self.marked.push_str(&format!("{OPEN}{}{CLOSE}", self.found.len()));
        self.found.push(part);
    }

    /// The text with its formulas again, in place of marks.
    pub fn restore(&self, text: &str) -> String {
        self.parts(text).into_iter().map(Part::text).collect()
    }

    /// The text as spans.
    pub fn spans(&self, text: &str) -> Vec<Span> {
        let span = |part| match part {
            Part::Text(text) => Span::Text(text.to_owned()),
            Part::Formula(formula) if self.may_draw() => Span::Formula(formula.to_owned()),
            Part::Formula(text) | Part::Hidden(text) => Span::AsWritten(text.to_owned()),
        };
        self.parts(text).into_iter().map(span).collect()
    }

    fn may_draw(&self) -> bool {
        let left = self.drawn.get();
        self.drawn.set(left.saturating_sub(1));
        left > 0
    }

    /// Text and formulas in turn.
    fn parts<'b>(&'b self, text: &'b str) -> Vec<Part<'b>> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !self.found.is_empty()
            && let Some((before, marked)) = rest.split_once(OPEN)
        {
            let (number, after) = marked.split_once(CLOSE).unwrap_or((marked, ""));
            let part = number.parse().ok().and_then(|number: usize| self.found.get(number)).copied();
            let part = part.filter(|part| part.text().len() <= self.left.get()).unwrap_or(Part::Text(""));
            self.left.update(|left| left - part.text().len());
            parts.extend([Part::Text(before), part]);
            rest = after;
        }
        parts.push(Part::Text(rest));
        parts.retain(|part| !part.text().is_empty());
        parts
    }
}

/// A part of a text.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a str),
    Formula(&'a str),
    /// What the parser must not see.
    Hidden(&'a str),
}

/// What stands at a place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// A mark of a formula that nothing closes, or opens. It keeps its backslash.
    Mark,
    Formula,
}

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Formula(text) | Self::Hidden(text) => text,
        }
    }
}

/// Bytes from `at` to the end of `close`, in the same paragraph and near.
fn closed(ahead: &mut Ahead, text: &str, at: usize, open: usize, close: &'static str) -> Option<usize> {
    let end = ahead.find(text, close, at + open)? + close.len();
    is_near(ahead, text, at, end).then_some(end - at)
}

/// What ends at `end` is in the same paragraph as `at`, and near.
fn is_near(ahead: &mut Ahead, text: &str, at: usize, end: usize) -> bool {
    end - at <= LONGEST && ahead.find(text, "\n\n", at).is_none_or(|paragraph| end <= paragraph)
}

/// Bytes of the formula at `at`, or of text that is not one.
fn formula(text: &str, at: usize, ahead: &mut Ahead) -> (usize, Kind) {
    let rest = &text[at..];
    let first = rest.chars().next().map_or(1, char::len_utf8);
    let or = |found: Option<usize>, other| found.map_or(other, |length| (length, Kind::Formula));
    if rest.starts_with("\\(") {
        or(closed(ahead, text, at, 2, "\\)"), (2, Kind::Mark))
    } else if rest.starts_with("\\[") {
        or(closed(ahead, text, at, 2, "\\]"), (2, Kind::Mark))
    } else if rest.starts_with("\\)") || rest.starts_with("\\]") {
        (2, Kind::Mark)
    } else if rest.starts_with('\\') {
        // The next character is escaped, so it begins nothing.
        (first + rest[first..].chars().next().map_or(0, char::len_utf8), Kind::Text)
    } else if rest.starts_with("$$") {
        or(closed(ahead, text, at, 2, "$$"), (2, Kind::Text))
    } else if rest.starts_with('$') && !text[..at].ends_with(|before: char| before.is_alphanumeric()) {
        or(in_line(rest, ahead), (first, Kind::Text))
    } else {
        (first, Kind::Text)
    }
}

/// Bytes of `$a$`, by Pandoc's rule: no blank inside of its ends, and no digit after it, so that prices are none.
fn in_line(rest: &str, ahead: &mut Ahead) -> Option<usize> {
    let inner = &rest[1..];
    let end = inner.find(['$', '\n', '`']);
    ahead.looked_at += end.unwrap_or(inner.len());
    let end = end?;
    let (body, after) = (&inner[..end], &inner[end..]);
    let is_tight =
        !body.starts_with(char::is_whitespace) && !body.ends_with(|last: char| last.is_whitespace() || last == '\\');
    let is_closed = after.starts_with('$') && !after[1..].starts_with(|next: char| next.is_ascii_digit());
    (is_closed && is_tight && (1..=LONGEST_IN_LINE).contains(&end)).then_some(end + 2)
}

/// Bytes of the code that begins at `at`, to its end or to that of the text; 0 if none begins there.
fn code_at(text: &str, at: usize, ahead: &mut Ahead) -> usize {
    let rest = &text[at..];
    let Some(tick) = rest.chars().next().filter(|first| matches!(first, '`' | '~')) else { return 0 };
    let run = run(rest, tick);
    // A fence of backticks has none after it in its line.
    let mut has_tick = || {
        let line = ahead.find(text, "\n", at + run).unwrap_or(text.len());
        ahead.find(text, "`", at + run).is_some_and(|tick| tick < line)
    };
    if run >= 3 && !(tick == '`' && has_tick()) && ahead.begins_line(text, at) {
        return fenced(rest, run);
    }
    if tick == '~' {
        return run;
    }
    // A run of the same length closes it; without one in the paragraph, the backticks are text.
    match ahead.ticks(text, run, at + run).map(|begin| begin + run) {
        Some(end) if is_near(ahead, text, at, end) => end - at,
        _ => run,
    }
}

/// Bytes of the code that a fence of so many marks begins, to the end of the line of another such fence.
fn fenced(rest: &str, run: usize) -> usize {
    let (fence, body) = rest.split_at(run);
    let mut end = run;
    for (number, line) in body.split_inclusive('\n').enumerate() {
        end += line.len();
        if number > 0 && closes(line, fence) {
            break;
        }
    }
    end
}

/// Whether a line has a fence at least as long, and nothing after it.
fn closes(line: &str, fence: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '>']);
    let after = line.strip_prefix(fence).map(|after| after.trim_start_matches(|mark| fence.starts_with(mark)));
    after.is_some_and(|after| after.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What closes formulas and code, and what keeps it from doing so.
    const MARKS: [&str; 15] =
        ["`", "``", "```", "~~~", "$", "$$", "\\", "\\(", "\\)", "\\[", "\\]", "\n", "\n\n", "> ", "a"];

    fn looked_at(text: &str) -> usize {
        let mut ahead = Ahead::default();
        Formulas::find_with(text, &mut ahead);
        ahead.looked_at
    }

    #[test]
    fn a_fence_with_words_after_it_closes_no_code() {
        let text = "```\n``` rust $a$\n````\n$b$";
        let found: Vec<_> = Formulas::find(text).found.iter().map(|part| part.text()).collect();
        assert_eq!(found, ["$b$"]);
    }

    #[test]
    fn no_text_is_searched_again_and_again() {
        const LENGTH: usize = 16 << 10;
        let units = MARKS.iter().flat_map(|one| {
            let of_two = MARKS.iter().map(move |other| format!("{one}{other}"));
            of_two.flat_map(|two| [two.clone(), format!("{two}$"), format!("{two}\\```"), format!("{two}a`")])
        });
        for unit in units {
            let text = unit.repeat(LENGTH / unit.len());
            let times = looked_at(&text) as f64 / text.len() as f64;
            assert!(times < 12.0, "{unit:?} again and again: each byte is looked at {times:.0} times");
        }
    }
}
