//! Who may ask: programs on this machine, others with a key, and no web page unless it is allowed.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use potluck_text::texts;
use thiserror::Error;

use crate::error::ApiError;

/// What a browser says of a request's page besides its origin.
const FETCH_SITE: &str = "sec-fetch-site";
/// Where some libraries put the key.
const X_API_KEY: &str = "x-api-key";
/// Longest key, in bytes.
const MAX_KEY: usize = 1024;

/// A key that requests must have. Only its hash is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ApiKey(blake3::Hash);

impl ApiKey {
    /// True if a request has this key. Takes as long for any other key.
    fn is(&self, key: &[u8]) -> bool {
        self.0 == blake3::hash(key)
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl FromStr for ApiKey {
    type Err = BadAccess;

    fn from_str(text: &str) -> Result<Self, BadAccess> {
        let text = text.trim();
        let is_key = (1..=MAX_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_key { Ok(Self(blake3::hash(text.as_bytes()))) } else { Err(BadAccess::Key) }
    }
}

/// Whose web pages may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Those of every site.
    Any,
    /// Those of one site: `https://chat.example`.
    Site(String),
}

impl FromStr for Origin {
    type Err = BadAccess;

    fn from_str(text: &str) -> Result<Self, BadAccess> {
        let text = text.trim_end_matches('/');
        let is_origin = || {
            let (scheme, host) = text.split_once("://")?;
            let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
            (is_scheme && host.parse::<Authority>().is_ok_and(|host| !host.as_str().contains('@'))).then_some(())
        };
        match text {
            "*" => Ok(Self::Any),
            // No browser says such an origin: it would never match.
            _ if text.contains('*') || has_default_port(text) => Err(BadAccess::Origin),
            _ if is_origin().is_some() => Ok(Self::Site(text.to_ascii_lowercase())),
            _ => Err(BadAccess::Origin),
        }
    }
}

/// The origin has the port that browsers leave out.
fn has_default_port(origin: &str) -> bool {
    (origin.starts_with("https://") && origin.ends_with(":443"))
        || (origin.starts_with("http://") && origin.ends_with(":80"))
}

/// Why access cannot be given like this.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadAccess {
    /// A text is no key.
    #[error("{}", texts().serve.no_key())]
    Key,
    /// A text is no origin.
    #[error("expected an origin as browsers send it, such as https://chat.example, or * alone")]
    Origin,
    /// Other machines could ask without a key.
    #[error("{}", needs_key(.0))]
    NeedsKey(SocketAddr),
    /// Every web page could ask without a key.
    #[error("{}", texts().serve.any_origin_needs_key())]
    AnyOriginNeedsKey,
}

fn needs_key(address: &SocketAddr) -> String {
    texts().serve.needs_key(address.to_string())
}

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    key: Option<ApiKey>,
    origins: Vec<Origin>,
}

impl Access {
    /// Those who may ask at an address.
    ///
    /// # Errors
    /// That would be everybody.
    pub fn new(address: SocketAddr, key: Option<ApiKey>, origins: Vec<Origin>) -> Result<Self, BadAccess> {
        if key.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(BadAccess::NeedsKey(address));
        }
        if key.is_none() && origins.contains(&Origin::Any) {
            return Err(BadAccess::AnyOriginNeedsKey);
        }
        Ok(Self { key, origins })
    }

    /// Refuses requests that a web page may have sent without the user's knowledge. Returns the page's origin if the page may ask.
    pub(crate) fn check_sender(&self, uri: &Uri, headers: &HeaderMap) -> Result<Option<HeaderValue>, ApiError> {
        self.check_host(uri, headers)?;
        let Some(origin) = headers.get(header::ORIGIN) else {
            // Browsers leave the origin out of some requests, and current ones then say this. No program sends it.
            let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
            return match site {
                None | Some(b"none" | b"same-origin") => Ok(None),
                Some(_) => Err(ApiError::Forbidden(texts().api.foreign_page().to_owned())),
            };
        };
        let name = origin.to_str().unwrap_or_default();
        let is_allowed = |allowed: &Origin| match allowed {
            Origin::Any => true,
            Origin::Site(site) => name.eq_ignore_ascii_case(site),
        };
        match self.origins.iter().any(is_allowed) {
            true => Ok(Some(origin.clone())),
            false => Err(ApiError::Forbidden(texts().api.foreign_origin(name))),
        }
    }

    /// A stranger's site can make its name resolve to this machine, and its page is then of the same origin (DNS rebinding). The `Host`
    /// of such a request has that name. With a key, names are not checked: such a page does not have it.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        if self.key.is_some() {
            return Ok(());
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let named = [host.as_ref(), uri.authority()];
        let is_known = named.iter().flatten().all(|authority| is_this_machine(authority.host()));
        if host.is_some() && is_known {
            Ok(())
        } else {
            Err(ApiError::Forbidden(texts().api.foreign_host().to_owned()))
        }
    }

    /// Refuses requests without the key, if there is one.
    pub(crate) fn check_key(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(key) = self.key else { return Ok(()) };
        let bearer = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).and_then(|value| {
            let (scheme, given) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(given)
        });
        let given = bearer.or_else(|| headers.get(X_API_KEY).map(HeaderValue::as_bytes));
        if given.is_some_and(|given| key.is(given.trim_ascii())) { Ok(()) } else { Err(ApiError::WrongKey) }
    }
}

/// Names that no stranger can make resolve to this machine.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const LOCAL: &str = "127.0.0.1:8788";

    fn access(key: Option<&str>, origins: &[&str]) -> Access {
        let origins = origins.iter().map(|origin| origin.parse().unwrap()).collect();
        Access::new(LOCAL.parse().unwrap(), key.map(|key| key.parse().unwrap()), origins).unwrap()
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap())).collect()
    }

    fn is_let_in(access: &Access, all: &[(&'static str, &str)]) -> bool {
        access.check_sender(&Uri::from_static("/v1/models"), &headers(all)).is_ok()
    }

    #[test]
    fn a_program_on_this_machine_may_ask() {
        let access = access(None, &[]);
        for host in [LOCAL, "localhost:8788", "LOCALHOST", "[::1]:8788", "127.1.2.3"] {
            assert!(is_let_in(&access, &[("host", host)]), "{host}");
        }
        assert_eq!(access.check_key(&HeaderMap::new()), Ok(()));
        assert_eq!(
            access.check_key(&headers(&[("authorization", "Bearer anything")])),
            Ok(()),
            "many programs send some key"
        );
    }

    #[test]
    fn a_web_page_may_not_ask_by_its_origin_nor_by_a_name_that_it_leads_here() {
        let access = access(None, &[]);
        let here = ("host", LOCAL);
        for page in [
            &[here, ("origin", "https://evil.example")][..],
            &[here, ("origin", "null")],
            &[here, ("origin", "http://127.0.0.1:8788")],
            &[here, ("sec-fetch-site", "cross-site")],
            &[here, ("sec-fetch-site", "same-site")],
            &[("host", "evil.example:8788")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "localhost.evil.example")],
            &[("host", "")],
            &[],
        ] {
            assert!(!is_let_in(&access, page), "{page:?}");
        }
        let absolute = Uri::from_static("http://evil.example/v1/models");
        assert!(access.check_sender(&absolute, &headers(&[here])).is_err());
        assert!(is_let_in(&access, &[here, ("sec-fetch-site", "none")]), "typed into the address bar");
    }

    #[test]
    fn an_allowed_site_may_ask_and_no_other() {
        let access = access(None, &["https://chat.example/", "vscode-webview://abc"]);
        let from = |origin| is_let_in(&access, &[("host", LOCAL), ("origin", origin)]);
        assert!(from("https://chat.example") && from("vscode-webview://abc"));
        for other in ["http://chat.example", "https://chat.example:8443", "https://chat.example.evil.example", ""] {
            assert!(!from(other), "{other}");
        }
        let any = self::access(Some("k"), &["*"]);
        assert!(is_let_in(&any, &[("host", "anything.example"), ("origin", "https://a.example")]));
    }

    #[test]
    fn with_a_key_nobody_asks_without_it() {
        let access = access(Some("secret"), &[]);
        for right in [("authorization", "Bearer secret"), ("authorization", "bearer  secret"), ("x-api-key", "secret")]
        {
            assert_eq!(access.check_key(&headers(&[right])), Ok(()), "{right:?}");
        }
        for wrong in
            [("authorization", "Bearer secre"), ("authorization", "secret"), ("x-api-key", ""), ("cookie", "secret")]
        {
            assert_eq!(access.check_key(&headers(&[wrong])), Err(ApiError::WrongKey), "{wrong:?}");
        }
        assert!(is_let_in(&access, &[("host", "host.docker.internal:8788")]));
        assert!(
            !is_let_in(&access, &[("host", LOCAL), ("origin", "https://evil.example")]),
            "a page has no key, and may guess"
        );
        assert_eq!(format!("{access:?}").find("secret"), None);
    }

    #[test]
    fn nothing_opens_to_everybody() {
        let open = |address: &str, origins| Access::new(address.parse().unwrap(), None, origins);
        assert!(matches!(open("0.0.0.0:8788", vec![]), Err(BadAccess::NeedsKey(_))));
        assert!(matches!(open("[::]:8788", vec![]), Err(BadAccess::NeedsKey(_))));
        assert!(matches!(open("192.168.1.5:8788", vec![]), Err(BadAccess::NeedsKey(_))));
        assert!(matches!(open(LOCAL, vec![Origin::Any]), Err(BadAccess::AnyOriginNeedsKey)));
        assert!(open("[::1]:8788", vec![]).is_ok());
        assert!(Access::new("0.0.0.0:1".parse().unwrap(), Some("k".parse().unwrap()), vec![Origin::Any]).is_ok());
    }

    #[test]
    fn keys_and_origins_have_a_form() {
        for wrong in ["", "  ", "two words", "ключ", "a\nb"] {
            assert_eq!(wrong.parse::<ApiKey>(), Err(BadAccess::Key), "{wrong:?}");
        }
        assert_eq!("key\n".parse::<ApiKey>(), "key".parse());
        for wrong in [
            "",
            "chat.example",
            "https://",
            "https://a/b",
            "https://a@b",
            "://a",
            "**",
            "https://*.example",
            "https://a:443",
        ] {
            assert_eq!(wrong.parse::<Origin>(), Err(BadAccess::Origin), "{wrong:?}");
        }
    }
}
