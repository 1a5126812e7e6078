//! What the beginning of a file says.

use potluck_gguf::{HeaderParser, Metadata, Progress};

/// A file that is not a GGUF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGguf;

/// The licence that the first bytes of a file name; `None` if they name none. General keys come first in files.
///
/// # Errors
/// [`NotGguf`] if the bytes are something else.
pub fn licence(beginning: &[u8]) -> Result<Option<String>, NotGguf> {
    let mut parser = HeaderParser::new();
    match parser.push(beginning) {
        Ok(Progress::Done(header)) => Ok(named(&header.metadata)),
        Ok(Progress::NeedMore { .. }) => Ok(named(parser.metadata())),
        Err(_) => Err(NotGguf),
    }
}

/// `general.license`, or the name of a licence without an identifier.
fn named(metadata: &Metadata) -> Option<String> {
    let text = |key: &str| metadata.str(key).ok().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let identifier = text("general.license")?;
    if identifier == "other" { text("general.license.name") } else { Some(identifier) }
}

/// True if two names mean the same licence: "Llama 3.2" and "llama3.2".
#[must_use]
pub fn is_same_licence(one: &str, other: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_gguf::{GgufWriter, Value};

    use super::*;

    fn file(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = GgufWriter::new();
        for (key, value) in pairs {
            writer.set(*key, Value::from(*value));
        }
        writer.to_bytes(|_| Vec::new()).unwrap()
    }

    #[test]
    fn the_licence_is_read_from_a_file_and_from_its_beginning() {
        let long = "x".repeat(1000);
        let file = file(&[("general.architecture", "llama"), ("general.license", "mit"), ("tokenizer.text", &long)]);
        assert_eq!(licence(&file), Ok(Some("mit".into())));
        assert_eq!(licence(&file[..200]), Ok(Some("mit".into())));
        assert_eq!(licence(&file[..30]), Ok(None));
    }

    #[test]
    fn a_licence_without_an_identifier_has_a_name() {
        let file = file(&[("general.license", "other"), ("general.license.name", "lfm1.0")]);
        assert_eq!(licence(&file), Ok(Some("lfm1.0".into())));
    }

    #[test]
    fn other_files_are_told_apart() {
        assert_eq!(licence(b"<!doctype html><title>Sign in</title>"), Err(NotGguf));
    }

    #[test]
    fn licences_are_compared_without_their_punctuation() {
        assert!(is_same_licence("Llama 3.2", "llama3.2") && is_same_licence("Apache-2.0", "apache-2.0"));
        assert!(!is_same_licence("Llama 3.2", "llama3.1"));
    }
}
