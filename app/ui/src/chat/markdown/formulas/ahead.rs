//! What comes next in a text that is read from its beginning to its end, so that no part of it is searched again and again: a
//! text in which much opens and nothing closes takes no longer than others.

use std::collections::{HashMap, VecDeque};

/// Different marks that are looked for.
const MARKS: usize = 6;

/// Positions of what closes, and what a line begins with. Places that are asked for move forward, or back by no more than the
/// length of a mark.
#[derive(Default)]
pub struct Ahead {
    marks: [Option<(&'static str, Option<usize>)>; MARKS],
    ticks: Option<Ticks>,
    line: Line,
    /// Bytes that were looked at, for tests.
    pub looked_at: usize,
}

/// Where runs of backticks begin that are still ahead, in order, by their length.
type Ticks = HashMap<usize, VecDeque<usize>>;

/// The line of a place.
#[derive(Clone, Copy)]
struct Line {
    at: usize,
    /// Only marks of quotations and lists stand in it before.
    is_bare: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self { at: 0, is_bare: true }
    }
}

impl Ahead {
    /// The next position of `mark` from a place on.
    pub fn find(&mut self, text: &str, mark: &'static str, from: usize) -> Option<usize> {
        let mut looked_at = 0;
        let mut search = || {
            let found = text[from..].find(mark);
            looked_at = found.map_or(text.len() - from, |at| at + mark.len());
            found.map(|at| from + at)
        };
        let is_its = |place: &&mut Option<(&str, Option<usize>)>| place.is_none_or(|(known, _)| known == mark);
        let found = match self.marks.iter_mut().find(is_its) {
            Some(Some((_, known))) if known.is_none_or(|known| known >= from) => *known,
            Some(place) => place.insert((mark, search())).1,
            None => search(),
        };
        self.looked_at += looked_at;
        found
    }

    /// Where a run of so many backticks begins, neither more nor fewer, from a place on at which no run is cut.
    pub fn ticks(&mut self, text: &str, length: usize, from: usize) -> Option<usize> {
        let ticks = self.ticks.get_or_insert_with(|| {
            self.looked_at += text.len();
            runs(text)
        });
        let ahead = ticks.get_mut(&length)?;
        while ahead.front().is_some_and(|begin| *begin < from) {
            self.looked_at += 1;
            ahead.pop_front();
        }
        ahead.front().copied()
    }

    /// Only marks of quotations and lists stand before a place in its line.
    pub fn begins_line(&mut self, text: &str, at: usize) -> bool {
        let passed = &text[self.line.at..at];
        self.looked_at += passed.len();
        let is_mark = |mark: char| mark.is_whitespace() || ">-*+.)".contains(mark) || mark.is_ascii_digit();
        let is_bare = passed.chars().fold(self.line.is_bare, |bare, letter| letter == '\n' || bare && is_mark(letter));
        self.line = Line { at, is_bare };
        is_bare
    }
}

fn runs(text: &str) -> Ticks {
    let mut runs = Ticks::new();
    let mut at = 0;
    while let Some(skip) = text[at..].find('`') {
        let begin = at + skip;
        let length = run(&text[begin..], '`');
        runs.entry(length).or_default().push_back(begin);
        at = begin + length;
    }
    runs
}

/// How often a text begins with a mark of one byte.
pub fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}
