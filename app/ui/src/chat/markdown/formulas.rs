//! Formulas as models write them: `\(a\)`, `\[a\]`, `$a$`, `$$a$$`. Markdown would take their backslashes, underscores and
//! asterisks for its own, so each is replaced by a mark before parsing and put back as it was written.

use super::Span;

/// A mark is a number between two characters of the private use area.
const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';

/// A formula, or code within lines, is not longer than this, in bytes, so that finding out costs little.
const LONGEST: usize = 4 << 10;
/// Letters before a fence that are looked at.
const INDENT: usize = 100;
/// Nor is `$a$`: what is longer is two prices.
const LONGEST_IN_LINE: usize = 400;

/// A text's formulas, and the text with marks in their places.
pub struct Formulas<'a> {
    /// The text with marks.
    pub marked: String,
    found: Vec<&'a str>,
}

impl<'a> Formulas<'a> {
    /// Replaces all formulas outside of code.
    pub fn find(text: &'a str) -> Self {
        let mut formulas = Self { marked: String::with_capacity(text.len()), found: Vec::new() };
        // With marks of its own in it, a text is taken as it is.
        if !text.contains(['$', '\\']) || text.contains([OPEN, CLOSE]) {
            formulas.marked.push_str(text);
            return formulas;
        }
        let mut at = 0;
        let mut ahead = Ahead::default();
        while let Some(skip) = text[at..].find(['$', '\\', '`', '~']) {
            formulas.marked.push_str(&text[at..at + skip]);
            at += skip;
            let rest = &text[at..];
            let (taken, is_formula) = match code_at(text, at, &mut ahead) {
                0 => formula(text, at, &mut ahead),
                code => (code, false),
            };
            if is_formula {
                formulas.mark(&rest[..taken]);
            } else {
                formulas.marked.push_str(&rest[..taken]);
            }
            at += taken;
        }
        formulas.marked.push_str(&text[at..]);
        formulas
    }

    fn mark(&mut self, formula: &'a str) {
        self.marked.push_str(&format!("{OPEN}{}{CLOSE}", self.found.len()));
        self.found.push(formula);
    }

    /// The text with its formulas again, in place of marks.
    pub fn restore(&self, text: &str) -> String {
        self.parts(text).into_iter().map(Part::text).collect()
    }

    /// The text as spans.
    pub fn spans(&self, text: &str) -> Vec<Span> {
        let span = |part| match part {
            Part::Text(text) => Span::Text(text.to_owned()),
            Part::Formula(formula) => Span::AsWritten(formula.to_owned()),
        };
        self.parts(text).into_iter().map(span).collect()
    }

    /// Text and formulas in turn.
    fn parts<'b>(&'b self, text: &'b str) -> Vec<Part<'b>> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !self.found.is_empty()
            && let Some((before, marked)) = rest.split_once(OPEN)
        {
            let (number, after) = marked.split_once(CLOSE).unwrap_or((marked, ""));
            let formula = number.parse().ok().and_then(|number: usize| self.found.get(number));
            parts.extend([Part::Text(before), Part::Formula(formula.copied().unwrap_or_default())]);
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
}

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Formula(text) => text,
        }
    }
}

/// Positions of closing marks. Each is searched once, not again from every earlier place, so a text in which much opens and
/// nothing closes takes no longer than others.
#[derive(Default)]
struct Ahead([Option<(&'static str, Option<usize>)>; Ahead::MARKS]);

impl Ahead {
    /// Different marks that are looked for.
    const MARKS: usize = 6;

    /// The next position of `mark` from a place on. That place never moves back by more than the length of a mark.
    fn find(&mut self, text: &str, mark: &'static str, from: usize) -> Option<usize> {
        let is_its = |place: &&mut Option<(&str, Option<usize>)>| place.is_none_or(|(known, _)| known == mark);
        let Some(place) = self.0.iter_mut().find(is_its) else { return text[from..].find(mark).map(|at| from + at) };
        match place {
            Some((_, known)) if known.is_none_or(|known| known >= from) => *known,
            _ => {
                let found = text[from..].find(mark).map(|at| from + at);
                *place = Some((mark, found));
                found
            }
        }
    }

    /// Bytes from `at` to the end of `close`, in the same paragraph and near.
    fn closed(&mut self, text: &str, at: usize, open: usize, close: &'static str) -> Option<usize> {
        let end = self.find(text, close, at + open)? + close.len();
        let paragraph = self.find(text, "\n\n", at).unwrap_or(text.len());
        (end <= paragraph && end - at <= LONGEST).then_some(end - at)
    }
}

/// Bytes of the formula at `at`, or of text that is not one; true if it is one.
fn formula(text: &str, at: usize, ahead: &mut Ahead) -> (usize, bool) {
    let rest = &text[at..];
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("\\(") {
        // A bracket that nothing closes keeps its backslash all the same.
        (ahead.closed(text, at, 2, "\\)").unwrap_or(2), true)
    } else if rest.starts_with("\\[") {
        (ahead.closed(text, at, 2, "\\]").unwrap_or(2), true)
    } else if rest.starts_with("\\)") || rest.starts_with("\\]") {
        (2, true)
    } else if rest.starts_with('\\') {
        // The next character is escaped, so it begins nothing.
        (first + rest[first..].chars().next().map_or(0, char::len_utf8), false)
    } else if rest.starts_with("$$") {
        ahead.closed(text, at, 2, "$$").map_or((2, false), |length| (length, true))
    } else if rest.starts_with('$') && !text[..at].ends_with(|before: char| before.is_alphanumeric()) {
        in_line(rest).map_or((first, false), |length| (length, true))
    } else {
        (first, false)
    }
}

/// What code within lines can reach: the paragraph, as far as it is near.
fn paragraph(rest: &str) -> &str {
    rest[..rest.floor_char_boundary(LONGEST)].split("\n\n").next().unwrap_or_default()
}

/// Bytes of `$a$`, by Pandoc's rule: no blank inside of its ends, and no digit after it, so that prices are none.
fn in_line(rest: &str) -> Option<usize> {
    let inner = &rest[1..];
    let end = inner.find(['$', '\n', '`'])?;
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
    let run = rest.len() - rest.trim_start_matches(tick).len();
    let fence = &rest[..run];
    let body = &rest[run..];
    // A fence of backticks has none after it in its line.
    let mut has_tick = || {
        let line = ahead.find(text, "\n", at + run).unwrap_or(text.len());
        ahead.find(text, "`", at + run).is_some_and(|tick| tick < line)
    };
    if run >= 3 && begins_line(&text[..at]) && !(tick == '`' && has_tick()) {
        let closes = |line: &str| line.trim_start_matches([' ', '\t', '>']).starts_with(fence);
        let mut end = run;
        for (number, line) in body.split_inclusive('\n').enumerate() {
            end += line.len();
            if number > 0 && closes(line) {
                break;
            }
        }
        return end;
    }
    if tick == '~' {
        return run;
    }
    // A run of the same length closes it; without one in the paragraph, the backticks are text.
    let body = paragraph(body);
    let mut from = 0;
    while let Some(found) = body[from..].find('`') {
        let start = from + found;
        let length = body[start..].len() - body[start..].trim_start_matches('`').len();
        if length == run {
            return run + start + length;
        }
        from = start + length;
    }
    run
}

/// Only marks of quotations and lists stand before in the line.
fn begins_line(before: &str) -> bool {
    let is_mark = |mark: char| mark.is_whitespace() || ">-*+.)".contains(mark) || mark.is_ascii_digit();
    before.chars().rev().take(INDENT).take_while(|letter| *letter != '\n').all(is_mark)
}
