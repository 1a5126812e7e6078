//! The list of the page's files: `SHA256SUMS`, as `sha256sum` writes it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use potluck_text::texts;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The page has some thirty files.
const MAX_FILES: usize = 1_024;

/// The page itself.
pub(super) const INDEX: &str = "index.html";

/// SHA-256 of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHash([u8; 32]);

/// A text is no such hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected 64 hexadecimal digits")]
pub struct BadHash;

impl FileHash {
    /// The hash of a file's bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl FromStr for FileHash {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Self, BadHash> {
        let digits: Option<Vec<u32>> = text.chars().map(|letter| letter.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(BadHash)?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The files of a page and their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileList(pub BTreeMap<String, FileHash>);

impl FileList {
    /// Reads a list. The error completes a sentence.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let texts = &texts().verify;
        let text = String::from_utf8_lossy(bytes);
        if text.lines().next().is_none() || text.lines().nth(MAX_FILES).is_some() {
            return Err(texts.bad_length().to_owned());
        }
        let mut files = BTreeMap::new();
        for (number, line) in (1u32..).zip(text.lines()) {
            let (name, hash) = read_line(line).ok_or_else(|| texts.bad_line(number))?;
            if files.insert(name.to_owned(), hash).is_some() {
                return Err(texts.twice(name));
            }
        }
        if !files.contains_key(INDEX) {
            return Err(texts.no_index().to_owned());
        }
        Ok(Self(files))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// A name is one part of a path, so nothing but the relay's own page is fetched.
fn read_line(line: &str) -> Option<(&str, FileHash)> {
    let (hash, name) = line.split_once("  ")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&letter);
    let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
    is_name.then_some(())?;
    Some((name, hash.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    // SHA-256 of "abc", from FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn hashes_are_read_and_written() {
        assert_eq!(ABC.parse(), Ok(FileHash::of(b"abc")));
        assert_eq!(ABC.to_uppercase().parse(), Ok(FileHash::of(b"abc")));
        assert_eq!(FileHash::of(b"abc").to_string(), ABC);
        for wrong in ["", &ABC[1..], &format!("{ABC}0"), &ABC.replace('b', "g"), &ABC.replace('b', "é")] {
            assert_eq!(wrong.parse::<FileHash>(), Err(BadHash), "{wrong:?}");
        }
    }

    #[test]
    fn a_list_names_files_of_one_folder_once_and_the_page_among_them() {
        let list = FileList::read(format!("{ABC}  a-1_b.js\n{ABC}  index.html\n").as_bytes()).unwrap();
        assert!(list.has("a-1_b.js") && list.has("index.html") && list.0.len() == 2);
        for wrong in [
            String::new(),
            format!("{ABC}  a.js\n"),
            format!("{ABC}  index.html\n{ABC}  index.html\n"),
            format!("{ABC}  index.html\n{ABC}  ../a\n"),
            format!("{ABC}  index.html\n{ABC}  http://elsewhere/a\n"),
            format!("{ABC}  index.html\n{ABC}  .hidden\n"),
            format!("{ABC} index.html\n"),
            "<!doctype html>\n".to_owned(),
            format!("{ABC}  index.html\n").repeat(MAX_FILES + 1),
        ] {
            assert!(FileList::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
