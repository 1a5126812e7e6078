//! Lines of a width for `wordwrap`.

/// Python's `textwrap.wrap` without replacing white space. Words end at white space, and behind hyphens between letters.
pub(super) fn wrapped(line: &str, width: usize, break_long: bool, hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<Vec<char>> = pieces(line, hyphens);
    chunks.reverse();
    let mut lines = Vec::new();
    let is_blank = |chunk: &[char]| chunk.iter().all(|c| " \t\n\x0b\x0c\r".contains(*c));
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.last().is_some_and(|chunk| is_blank(chunk)) {
            chunks.pop();
        }
        let (mut current, mut length): (Vec<Vec<char>>, usize) = (Vec::new(), 0);
        while let Some(chunk) = chunks.pop() {
            if length + chunk.len() > width {
                chunks.push(chunk);
                break;
            }
            length += chunk.len();
            current.push(chunk);
        }
        if let Some(chunk) = chunks.last_mut().filter(|chunk| chunk.len() > width) {
            if break_long {
                let room = (width - length).min(chunk.len());
                let mut cut = room;
                if hyphens && chunk.len() > room {
                    let hyphen = chunk[..room].iter().rposition(|c| *c == '-').unwrap_or(0);
                    if hyphen > 0 && chunk[..hyphen].iter().any(|c| *c != '-') {
                        cut = hyphen + 1;
                    }
                }
                let rest = chunk.split_off(cut);
                current.push(std::mem::replace(chunk, rest));
            } else if current.is_empty() {
                current.extend(chunks.pop());
            }
        }
        if current.last().is_some_and(|chunk| is_blank(chunk)) {
            current.pop();
        }
        if !current.is_empty() {
            lines.push(current.into_iter().flatten().collect());
        }
    }
    lines
}

/// Words and the white space between them.
fn pieces(line: &str, hyphens: bool) -> Vec<Vec<char>> {
    let is_blank = |c: char| " \t\n\x0b\x0c\r".contains(c);
    let mut pieces: Vec<Vec<char>> = Vec::new();
    let chars: Vec<char> = line.chars().collect();
    let mut begins = true;
    for (at, c) in chars.iter().enumerate() {
        let previous = at.checked_sub(1).map(|at| chars[at]);
        begins |= previous.is_some_and(|previous| is_blank(previous) != is_blank(*c));
        match pieces.last_mut().filter(|_| !begins) {
            Some(piece) => piece.push(*c),
            None => pieces.push(vec![*c]),
        }
        let next = chars.get(at + 1).copied();
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphabetic() || c == '_');
        begins = hyphens
            && *c == '-'
            && at >= 2
            && is_word(previous)
            && (is_word(Some(chars[at - 2])) || chars[at - 2] == '-')
            && is_word(next);
    }
    pieces
}
