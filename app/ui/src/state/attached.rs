//! Text files that go along with a question. They are part of its text, so whatever keeps, sends or exports questions needs to know
//! nothing of them.

use std::collections::BTreeMap;

use potluck_text::{Lines, visible};

/// How the line before a file begins, and how it ends.
const HEAD: (&str, &str) = ("File \"", "\":");
/// Fewest signs of the fences around a file.
const SHORTEST_FENCE: usize = 3;
/// Most letters of a file's name.
const LONGEST_NAME: usize = 120;
/// Bytes that are looked at to find out in which encoding a file is.
const LOOKED_AT: usize = 64 << 10;

/// A text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl AttachedFile {
    /// A file with a name that cannot disturb the text around it.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let name = visible(name.trim(), Lines::One).replace('"', "'");
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        Self { name: name.chars().take(LONGEST_NAME).collect(), text: text.trim_end().to_owned() }
    }

    /// The end of its name: models know many languages by it.
    fn language(&self) -> &str {
        let end = self.name.rsplit_once('.').map_or("", |(_, end)| end);
        if end.len() <= 12 && end.chars().all(|letter| letter.is_ascii_alphanumeric()) { end } else { "" }
    }
}

/// A question, apart from the files that go along with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionParts {
    /// What somebody wrote.
    pub text: String,
    /// The files, in order.
    pub files: Vec<AttachedFile>,
}

impl QuestionParts {
    /// Takes a question apart.
    #[must_use]
    pub fn of(question: &str) -> Self {
        let whole = || Self { text: question.to_owned(), files: Vec::new() };
        let mut files = Vec::new();
        // Where the first of the files begins that reach to the end.
        let mut start = None;
        let mut lines = Lined::new(question);
        while let Some((at, line)) = lines.next() {
            let before = lines.at;
            match read_file(line, &mut lines) {
                Some(file) => {
                    start.get_or_insert(at);
                    files.push(file);
                }
                None => {
                    lines.at = before;
                    if !line.trim().is_empty() {
                        files.clear();
                        start = None;
                    }
                }
            }
        }
        let Some(start) = start else { return whole() };
        Self { text: question[..start].trim_end().to_owned(), files }
    }

    /// Several questions as one: their texts one below the other, then their files.
    #[must_use]
    pub fn joined<'a>(questions: impl IntoIterator<Item = &'a str>) -> Self {
        let mut joined = Self::default();
        for part in questions.into_iter().map(Self::of) {
            if !joined.text.is_empty() && !part.text.trim().is_empty() {
                joined.text.push('\n');
            }
            joined.text.push_str(part.text.trim());
            joined.files.extend(part.files);
        }
        joined
    }

    /// The question as it is kept and sent.
    #[must_use]
    pub fn whole(&self) -> String {
        let mut whole = self.text.clone();
        for file in &self.files {
            let fence = "`".repeat(longest_fence(&file.text).max(SHORTEST_FENCE - 1) + 1);
            if !whole.is_empty() {
                whole.truncate(whole.trim_end().len());
                whole.push_str("\n\n");
            }
            let (before, after) = HEAD;
            let AttachedFile { name, text } = file;
            whole.push_str(&format!("{before}{name}{after}\n{fence}{}\n{text}\n{fence}", file.language()));
        }
        whole
    }

    /// In one line: what somebody wrote, or else the files' names.
    #[must_use]
    pub fn summary(&self) -> String {
        let names: Vec<_> = self.files.iter().map(|file| file.name.as_str()).collect();
        match (self.text.trim(), names.join(", ")) {
            ("", names) => names,
            (text, names) if names.is_empty() => text.to_owned(),
            (text, names) => format!("{text} ({names})"),
        }
    }
}

/// The lines of a text, one after the other.
struct Lined<'a> {
    text: &'a str,
    at: usize,
    /// Where lines begin that are nothing but a fence, by their length: a text of many open fences is read once, too.
    fences: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Lined<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = Self { text, at: 0, fences: BTreeMap::new() };
        while let Some((at, line)) = lines.next() {
            if !line.is_empty() && line.bytes().all(|sign| sign == b'`') {
                lines.fences.entry(line.len()).or_default().push(at);
            }
        }
        lines.at = 0;
        lines
    }

    /// Where the next line begins, and the line.
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split('\n').next().unwrap_or_default();
        let start = self.at;
        self.at += line.len() + 1;
        Some((start, line))
    }

    /// Where the next line begins that is nothing but a fence of this length.
    fn fence(&self, length: usize) -> Option<usize> {
        let fences = self.fences.get(&length)?;
        fences.get(fences.partition_point(|at| *at < self.at)).copied()
    }
}

/// Reads a file whose head this line is, up to its last fence.
fn read_file(head: &str, lines: &mut Lined) -> Option<AttachedFile> {
    let name = head.strip_prefix(HEAD.0)?.strip_suffix(HEAD.1)?;
    let (_, opening) = lines.next()?;
    let fence = opening.len() - opening.trim_start_matches('`').len();
    let end = lines.fence(fence).filter(|_| fence >= SHORTEST_FENCE)?;
    let text = lines.text[lines.at..end].strip_suffix('\n').unwrap_or_default();
    lines.at = end + fence + 1;
    Some(AttachedFile { name: name.to_owned(), text: text.to_owned() })
}

/// The longest run of the sign that fences consist of.
fn longest_fence(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default()
}

/// The encoding that a text file is in, by the name that browsers know it by; `None` if it is no text.
#[must_use]
pub fn encoding_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] => return Some("utf-16le"),
        [0xfe, 0xff, ..] => return Some("utf-16be"),
        _ => {}
    }
    let looked_at = &bytes[..bytes.len().min(LOOKED_AT)];
    let is_no_text = |byte: &u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    if looked_at.iter().any(is_no_text) {
        return None;
    }
    // Older files from Windows have nearly every byte as a letter, so nothing but UTF-8 is refused by what it has.
    Some(if std::str::from_utf8(bytes).is_ok() { "utf-8" } else { "windows-1252" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> AttachedFile {
        AttachedFile::new(name, text)
    }

    fn question(text: &str, files: &[AttachedFile]) -> QuestionParts {
        QuestionParts { text: text.to_owned(), files: files.to_vec() }
    }

    #[test]
    fn a_model_reads_a_question_and_then_its_files() {
        let whole = question("Which is dearer?", &[file("prices.csv", "soup,3\r\nstew,4\r\n")]).whole();
        assert_eq!(whole, "Which is dearer?\n\nFile \"prices.csv\":\n```csv\nsoup,3\nstew,4\n```");
    }

    #[test]
    fn what_is_put_together_can_be_taken_apart() {
        let tricky = [
            file("a.md", "# Soup\n\n````\nFile \"b.txt\":\n```\nno\n```\n````\n\nEnd `x`"),
            file("b", ""),
            file("c.rs", "```"),
            file("no end.", "one\n\n\nfour\n`"),
            file("Ärger \"und\" so.txt", "\n\nblank before"),
        ];
        for text in ["", "Soup?", "two\nlines", "a fence\n```\ncode\n```\nand on", "File \"x\":\nbut no fence"] {
            for files in [&tricky[..], &tricky[..1], &tricky[2..4], &[]] {
                let parts = question(text, files);
                assert_eq!(QuestionParts::of(&parts.whole()), parts, "{:?}", parts.whole());
            }
        }
    }

    #[test]
    fn a_file_that_something_follows_is_part_of_the_text() {
        for text in
            ["File \"a\":\n```\nx\n```\nand on", "File \"a\":\n```\nx", "File \"a\":\n", "File \"a\":\n``\nx\n``"]
        {
            assert_eq!(QuestionParts::of(text), question(text, &[]), "{text:?}");
        }
    }

    #[test]
    fn questions_are_joined_with_their_files_behind() {
        let first = question("Which?", &[file("a.txt", "1")]).whole();
        let only_file = question("", &[file("b.txt", "2")]).whole();
        let joined = QuestionParts::joined([first.as_str(), &only_file, "And why?", ""]);
        assert_eq!(joined, question("Which?\nAnd why?", &[file("a.txt", "1"), file("b.txt", "2")]));
        assert_eq!(joined.summary(), "Which?\nAnd why? (a.txt, b.txt)");
        assert_eq!(QuestionParts::of(&only_file).summary(), "b.txt");
    }

    #[test]
    fn a_name_cannot_disturb_what_is_around_it() {
        let name = format!("a\n```\u{202e}\"{}", "x".repeat(4_000));
        let parts = question("", &[file(&name, "1")]);
        assert_eq!(parts.files[0].name.chars().count(), LONGEST_NAME);
        assert!(!parts.files[0].name.contains(['\n', '\u{202e}', '"']));
        assert_eq!(QuestionParts::of(&parts.whole()), parts);
    }

    #[test]
    fn a_hostile_question_is_read_once() {
        for fence in ["```", "```open"] {
            let heads = format!("File \"a\":\n{fence}\n").repeat(50_000) + "x";
            assert_eq!(QuestionParts::of(&heads).files, [], "none reaches to the end");
        }
    }

    #[test]
    fn encodings_are_told_apart_and_what_is_no_text_is_refused() {
        for (bytes, encoding) in [
            (&b"plain"[..], Some("utf-8")),
            ("\u{feff}Ärger".as_bytes(), Some("utf-8")),
            (b"", Some("utf-8")),
            (b"\xff\xfeA\0", Some("utf-16le")),
            (b"\xfe\xff\0A", Some("utf-16be")),
            (b"\xc4rger\x85", Some("windows-1252")),
            (b"PK\x03\x04\0\0", None),
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x01", None),
            (b"GGUF\x03\0\0\0", None),
        ] {
            assert_eq!(encoding_of(bytes), encoding, "{bytes:?}");
        }
    }
}
