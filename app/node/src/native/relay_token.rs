//! The token with which this device may open rooms on a relay.

use std::str::FromStr;

use thiserror::Error;
use tokio_tungstenite::tungstenite::http::HeaderValue;

/// A relay's token. Nothing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayToken(HeaderValue);

/// A text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected one line with the relay's token, without spaces")]
pub struct BadRelayToken;

impl FromStr for RelayToken {
    type Err = BadRelayToken;

    fn from_str(text: &str) -> Result<Self, BadRelayToken> {
        let token = text.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BadRelayToken)?;
        header.set_sensitive(true);
        is_token.then_some(Self(header)).ok_or(BadRelayToken)
    }
}

impl RelayToken {
    /// As it is sent.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_token_is_one_word_and_stays_hidden() {
        let token: RelayToken = " a-token-of-this-school\n".parse().unwrap();
        assert_eq!(token.header().to_str().unwrap(), "Bearer a-token-of-this-school");
        assert!(!format!("{token:?}").contains("school"), "{token:?}");
        for wrong in ["", " \n", "two words", "two\nlines", "ä"] {
            assert_eq!(wrong.parse::<RelayToken>(), Err(BadRelayToken), "{wrong:?}");
        }
    }
}
