//! Access tokens for files that a server gives only to those it knows. A token stays on its device, and goes to its server only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hub::HUB_NAMES;

/// Most servers of which tokens are kept.
const MOST_SERVERS: usize = 32;
/// Most characters of a token.
const LONGEST_TOKEN: usize = 4096;
/// Most characters of a server's name.
const LONGEST_SERVER: usize = 253;

/// What a server gave a person, to know them by. Hidden in debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccessToken(String);

/// Why something is no access token, or no server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadAccess {
    /// Tokens consist of letters, digits and signs, without blanks.
    #[error("an access token consists of letters, digits and signs, without blanks")]
    Token,
    /// The name of no server.
    #[error("this is not the name of a server, such as huggingface.co")]
    Server,
    /// There are enough.
    #[error("access tokens of {MOST_SERVERS} servers are kept at most")]
    TooMany,
}

impl AccessToken {
    /// The value of the header `Authorization`.
    #[must_use]
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl FromStr for AccessToken {
    type Err = BadAccess;

    fn from_str(text: &str) -> Result<Self, BadAccess> {
        let token = text.trim();
        let fits = (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(token.to_owned())) } else { Err(BadAccess::Token) }
    }
}

impl TryFrom<String> for AccessToken {
    type Error = BadAccess;

    fn try_from(text: String) -> Result<Self, BadAccess> {
        text.parse()
    }
}

impl From<AccessToken> for String {
    fn from(token: AccessToken) -> Self {
        token.0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

/// This device's access tokens, one for each server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessTokens(BTreeMap<String, AccessToken>);

impl AccessTokens {
    /// The Hub, whose tokens most people mean.
    pub const HUB: &str = HUB_NAMES[0];

    /// Keeps a token for a server; an earlier one is replaced. `server` may be a link to it.
    ///
    /// # Errors
    /// One of them is none, or there are too many.
    pub fn keep(&mut self, server: &str, token: &str) -> Result<(), BadAccess> {
        let server = server_name(server).ok_or(BadAccess::Server)?;
        let token = token.parse()?;
        if self.0.len() >= MOST_SERVERS && !self.0.contains_key(&server) {
            return Err(BadAccess::TooMany);
        }
        self.0.insert(server, token);
        Ok(())
    }

    /// Forgets a server's token.
    pub fn forget(&mut self, server: &str) {
        self.0.remove(server);
    }

    /// The servers that have one, in alphabetical order.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The token for requests to `url`; only over TLS, or to this machine, because others could read it on the way.
    #[must_use]
    pub fn of(&self, url: &str) -> Option<&AccessToken> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '\\', '?', '#']).next()?;
        let is_sealed = scheme.eq_ignore_ascii_case("https") || is_this_machine(authority);
        // With a user in it, the address names another server than it seems to.
        if !is_sealed || authority.contains('@') {
            return None;
        }
        self.0.get(&server_name(authority)?)
    }
}

/// A server's name in small letters, with the port where there is one; the Hub by its first name.
fn server_name(text: &str) -> Option<String> {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let server = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
    let server = server.strip_suffix(":443").unwrap_or(&server);
    let fits = (1..=LONGEST_SERVER).contains(&server.len())
        && server.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']'));
    let server = if HUB_NAMES.contains(&server) { HUB_NAMES[0] } else { server };
    fits.then(|| server.to_owned())
}

fn is_this_machine(authority: &str) -> bool {
    let name = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(authority, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn tokens(server: &str) -> AccessTokens {
        let mut tokens = AccessTokens::default();
        tokens.keep(server, "hf_abc").unwrap();
        tokens
    }

    #[test]
    fn a_token_goes_to_its_own_server_only_and_only_sealed() {
        for server in ["huggingface.co", "https://huggingface.co/owner/repo", "hf.co", " HuggingFace.co:443 "] {
            let tokens = tokens(server);
            assert_eq!(tokens.servers().collect::<Vec<_>>(), ["huggingface.co"], "{server}");
            for (url, sent) in [
                ("https://huggingface.co/owner/repo/resolve/main/model.gguf", true),
                ("https://hf.co/owner/repo", true),
                ("HTTPS://HuggingFace.co:443/owner", true),
                ("http://huggingface.co/owner", false),
                ("https://huggingface.co.example.org/", false),
                ("https://cdn.huggingface.co/", false),
                ("https://huggingface.co:8443/", false),
                ("https://example.org/huggingface.co", false),
                ("https://huggingface.co@example.org/", false),
                ("https://example.org@huggingface.co/", false),
                ("https://example.org\\@huggingface.co/", false),
                ("huggingface.co", false),
                ("", false),
            ] {
                assert_eq!(tokens.of(url).is_some(), sent, "{url}");
            }
        }
    }

    #[test]
    fn this_machine_needs_no_tls() {
        let mut tokens = tokens("localhost:8080");
        tokens.keep("[::1]:9", "b").unwrap();
        assert!(tokens.of("http://localhost:8080/model.gguf").is_some());
        assert!(tokens.of("http://[::1]:9/model.gguf").is_some());
        assert!(tokens.of("http://localhost:8081/model.gguf").is_none());
        tokens.keep("localhost.example.org", "c").unwrap();
        assert!(tokens.of("http://localhost.example.org/").is_none());
    }

    #[test]
    fn what_is_no_token_or_no_server_is_refused() {
        let mut tokens = AccessTokens::default();
        for token in ["", " ", "two words", "line\nbreak", "ä", &"x".repeat(LONGEST_TOKEN + 1)] {
            assert_eq!(tokens.keep("example.org", token), Err(BadAccess::Token), "{token:?}");
        }
        for server in ["", "https://", "a b", "user@example.org", "bücher.example", &"x".repeat(254)] {
            assert_eq!(tokens.keep(server, "token"), Err(BadAccess::Server), "{server:?}");
        }
        for number in 0..MOST_SERVERS {
            tokens.keep(&format!("{number}.example.org"), "token").unwrap();
        }
        assert_eq!(tokens.keep("one-more.example.org", "token"), Err(BadAccess::TooMany));
        tokens.keep("0.example.org", "another").unwrap();
        assert_eq!(tokens.of("https://0.example.org/").unwrap().header(), "Bearer another");
        tokens.forget("0.example.org");
        assert_eq!(tokens.of("https://0.example.org/"), None);
    }

    #[test]
    fn a_token_is_stored_but_never_shown() {
        let tokens = tokens("example.org");
        let stored = serde_json::to_string(&tokens).unwrap();
        assert_eq!(serde_json::from_str::<AccessTokens>(&stored).unwrap(), tokens);
        assert!(!format!("{tokens:?}").contains("hf_abc"), "{tokens:?}");
        assert!(serde_json::from_str::<AccessTokens>(r#"{"example.org":"two words"}"#).is_err());
    }
}
