//! Who may open rooms, and who operates the relay.
//!
//! Browsers cannot send headers with a WebSocket, but they send cookies: whoever enters the token at `/access` gets one. Programs send
//! the token itself. Or a proxy in front signs people in, and says so in a header.

mod page;
mod token;

use std::path::PathBuf;

use axum::http::{HeaderMap, HeaderName, header};
use potluck_relay_api::Refusal;

use crate::error::StartError;
use crate::net::Client;
pub use page::{enter, show};
use token::Token;

/// The cookie of those who entered the token for opening rooms.
const COOKIE: &str = "potluck-access";
/// The cookie of the operator.
const OPERATOR_COOKIE: &str = "potluck-operator";

/// Who may do what, as the operator chose it.
#[derive(Clone, Debug, Default)]
pub struct AccessConfig {
    /// A file with the token for those who open rooms.
    pub create_token: Option<PathBuf>,
    /// The header in which trusted proxies name those whom they have signed in, and who may open rooms.
    pub create_header: Option<HeaderName>,
    /// A file with the operator's token.
    pub operator_token: Option<PathBuf>,
}

/// Who may do what.
#[derive(Debug)]
pub struct Access {
    create: Creation,
    operator: Option<Token>,
}

#[derive(Debug)]
enum Creation {
    Anyone,
    Token(Token),
    SignedIn(HeaderName),
}

impl Access {
    /// Reads the files with tokens.
    ///
    /// # Errors
    /// A file cannot be read, or holds no token.
    pub fn new(config: &AccessConfig) -> Result<Self, StartError> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(Token::read).transpose();
        let create = match (read(&config.create_token)?, &config.create_header) {
            (Some(token), _) => Creation::Token(token),
            (None, Some(name)) => Creation::SignedIn(name.clone()),
            (None, None) => Creation::Anyone,
        };
        Ok(Self { create, operator: read(&config.operator_token)? })
    }

    /// Whether whoever sent a request may open a room.
    ///
    /// # Errors
    /// Why not.
    pub fn may_create(&self, client: &Client, headers: &HeaderMap) -> Result<(), Refusal> {
        match &self.create {
            Creation::Anyone => Ok(()),
            Creation::Token(token) if is_sent(token, COOKIE, headers) => Ok(()),
            Creation::Token(_) => Err(Refusal::NeedsToken),
            // From anybody else, it says what its sender likes.
            Creation::SignedIn(name) if client.is_proxied && headers.get(name).is_some_and(|user| !user.is_empty()) => {
                Ok(())
            }
            Creation::SignedIn(_) => Err(Refusal::NeedsSignIn),
        }
    }

    /// Whether a request comes from the operator.
    pub fn is_operator(&self, headers: &HeaderMap) -> bool {
        self.operator.as_ref().is_some_and(|token| is_sent(token, OPERATOR_COOKIE, headers))
    }

    /// Whether there is a token that the operator may enter.
    pub fn knows_operator(&self) -> bool {
        self.operator.is_some()
    }

    /// What a token that somebody entered is good for: the cookie that says so, and the page that comes next.
    fn entered(&self, sent: &str) -> Option<(&'static str, &Token, &'static str)> {
        let create = self.create_token().map(|token| (COOKIE, token, "./"));
        let operator = self.operator.as_ref().map(|token| (OPERATOR_COOKIE, token, "./operator"));
        [create, operator].into_iter().flatten().find(|(_, token, _)| token.is(sent))
    }

    /// Whether people may enter a token.
    fn asks(&self) -> bool {
        self.create_token().is_some() || self.knows_operator()
    }

    fn create_token(&self) -> Option<&Token> {
        match &self.create {
            Creation::Token(token) => Some(token),
            Creation::Anyone | Creation::SignedIn(_) => None,
        }
    }
}

/// Whether a request has this token, or the cookie that stands for it.
fn is_sent(token: &Token, cookie: &str, headers: &HeaderMap) -> bool {
    let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let is_ours =
        |pair: &str| pair.trim().split_once('=').is_some_and(|(name, value)| name == cookie && token.has_cookie(value));
    bearer(headers).is_some_and(|sent| token.is(sent)) || cookies.any(|pairs| pairs.split(';').any(is_ours))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}
