//! A secret of the operator's, of which the relay keeps hashes.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::error::StartError;

/// Shorter ones could be guessed.
const SHORTEST: usize = 16;
/// A longer one is some other file.
const LONGEST: usize = 256;
/// What a cookie's hash is for: it is not the token.
const FOR_COOKIE: &str = "potluck 2026-11 cookie of those who may open rooms";

/// A token, by its hashes. Comparing them takes the same time wherever they differ.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    hash: blake3::Hash,
    cookie: blake3::Hash,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Reads one from a file of one line.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, StartError> {
        let text = fs::read_to_string(path).map_err(|source| StartError::Read { path: path.to_owned(), source })?;
        Self::new(text.trim()).ok_or_else(|| StartError::Token { path: path.to_owned() })
    }

    fn new(text: &str) -> Option<Self> {
        let is_token = (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let cookie = blake3::Hash::from_bytes(blake3::derive_key(FOR_COOKIE, text.as_bytes()));
        is_token.then(|| Self { hash: blake3::hash(text.as_bytes()), cookie })
    }

    /// Whether somebody sent it.
    pub fn is(&self, sent: &str) -> bool {
        blake3::hash(sent.as_bytes()) == self.hash
    }

    /// What a cookie says in its place.
    pub fn cookie(&self) -> String {
        self.cookie.to_hex().to_string()
    }

    /// Whether somebody sent that.
    pub fn has_cookie(&self, sent: &str) -> bool {
        blake3::Hash::from_hex(sent).is_ok_and(|sent| sent == self.cookie)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_token_and_its_cookie_are_known_and_nothing_else_is() {
        let token = Token::new("correct-horse-battery").unwrap();
        assert!(token.is("correct-horse-battery") && token.has_cookie(&token.cookie()));
        assert!(!token.is("correct-horse-batterx") && !token.is("") && !token.is(&token.cookie()));
        assert!(
            !token.has_cookie("correct-horse-battery") && !token.has_cookie("") && !token.has_cookie(&"0".repeat(64))
        );
        assert_eq!(format!("{token:?}"), "Token", "no log has it");
    }

    #[test]
    fn what_could_be_guessed_or_is_no_token_is_refused() {
        for wrong in ["", "short", "two words are no token", "umlauts-äöü-are-long", &"a".repeat(LONGEST + 1)] {
            assert!(Token::new(wrong).is_none(), "{wrong}");
        }
    }
}
