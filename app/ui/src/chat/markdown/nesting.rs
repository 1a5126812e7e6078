//! Marks of quotations and lists that nest too deeply to be drawn. The parser walks through all open levels in each line that
//! follows, so it must not see them: a text of a thousand `>` and a thousand lines would take it a million steps.

use std::ops::Range;

/// Levels that a line can open or continue: its marks, and two columns of blanks for each level above.
const DEEPEST: usize = 32;
/// Columns of a tab, at most.
const TAB: usize = 4;
/// Digits of a number of a list, at most.
const DIGITS: usize = 9;

/// The marks of each line that are too deep, in order.
pub fn too_deep(text: &str) -> Vec<Range<usize>> {
    let mut begin = 0;
    let mut all = Vec::new();
    for line in text.split_inclusive(['\n', '\r']) {
        all.extend(of_line(line.as_bytes()).map(|marks| begin + marks.start..begin + marks.end));
        begin += line.len();
    }
    all
}

fn of_line(line: &[u8]) -> Option<Range<usize>> {
    let (mut at, mut columns, mut marks) = (0, 0, 0);
    let mut first = None;
    while let Some(letter) = line.get(at) {
        let length = match letter {
            b' ' => {
                columns += 1;
                1
            }
            b'\t' => {
                columns += TAB;
                1
            }
            _ => {
                let Some(length) = mark(&line[at..]) else { break };
                marks += 1;
                if marks + columns / 2 > DEEPEST {
                    first = first.or(Some(at));
                }
                length
            }
        };
        at += length;
    }
    let first = first.filter(|first| !is_rule(line) && !is_rule(&line[*first..]))?;
    Some(first..at)
}

/// Bytes of the mark that a line begins with.
fn mark(line: &[u8]) -> Option<usize> {
    let digits = line.iter().take(DIGITS).take_while(|letter| letter.is_ascii_digit()).count();
    let length = match line.first()? {
        b'>' => return Some(1),
        b'-' | b'*' | b'+' => 1,
        _ if digits > 0 && matches!(line.get(digits), Some(b'.' | b')')) => digits + 1,
        _ => return None,
    };
    line.get(length).is_none_or(|next| b" \t\r\n".contains(next)).then_some(length)
}

/// A line, or its rest, is a rule, `* * *`, which nests nothing.
fn is_rule(line: &[u8]) -> bool {
    let mut marks = line.iter().filter(|letter| !b" \t\r\n".contains(letter)).peekable();
    let Some(first) = marks.peek().copied().filter(|mark| b"-*".contains(mark)) else { return false };
    let all = marks.clone().count();
    all >= 3 && marks.all(|mark| mark == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_too_deep_from_some_level_on() {
        let marks = |text: &str| too_deep(text).iter().map(|marks| text[marks.clone()].to_owned()).collect::<Vec<_>>();
        let quoted = format!("{}> > a > b", ">".repeat(DEEPEST));
        assert_eq!(marks(&format!("> a\n{quoted}\r{quoted}")), ["> > ", "> > "]);
        assert_eq!(marks(&format!("{}12. b", " ".repeat(2 * DEEPEST))), ["12. "]);
        assert_eq!(marks(&format!("{}-b 12", "\t".repeat(DEEPEST))), [""; 0], "no mark");
        assert_eq!(marks(&"* ".repeat(DEEPEST + 1)), [""; 0], "a rule");
        assert_eq!(marks(&format!("{}-\n", "  ".repeat(DEEPEST))), ["-"], "no rule");
    }
}
