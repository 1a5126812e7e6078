//! The page that helps a device to trust the relay's own authority, and its certificate as files.
//!
//! Until a device trusts the relay, somebody on the network can change both. So the page asks to compare the fingerprint with the one in
//! the relay's terminal, and shows it only to a browser on the relay's own machine.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use potluck_relay_api::path;
use ring::digest::{SHA256, digest};

use super::hosts::{host_of, names_loopback};
use super::{Client, Transport, proxy};
use crate::error::ApiError;
use crate::server::Shared;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// Whether another device gets this path without TLS.
pub fn serves(path: &str) -> bool {
    [path::CERTIFICATE, path::AUTHORITY_DER, path::AUTHORITY_PEM].contains(&path)
}

/// `GET /certificate`.
///
/// # Errors
/// The relay has no authority of its own.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let keeper = shared.reach.keeper().ok_or(ApiError::NoAuthority)?;
    let host = host_of(&uri, &headers).ok_or(ApiError::NoHost)?;
    let is_here = names_loopback(&host) && client.transport == Transport::Plain;
    let open = if is_here { "./".to_owned() } else { format!("https://{host}/") };
    let is_direct = client.address.is_loopback() && !client.is_proxied && !proxy::is_passed_on(&headers);
    let compare = if is_here && is_direct {
        format!("The SHA-256 fingerprint of the right certificate is <code>{}</code>.", pairs(&keeper.fingerprint()))
    } else {
        "As long as your device does not trust the relay, somebody on your network may have changed this page. The terminal in which \
         the relay runs shows the SHA-256 fingerprint of the right certificate."
            .to_owned()
    };
    // Neither text has characters that mean something in HTML: a host is made of letters, digits and a few signs.
    let html = PAGE.replace("{open}", &open).replace("{compare}", &compare).replace("{script}", SCRIPT);
    let answer = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((answer, html).into_response())
}

/// The policy: the page's own script and style, and a socket that tries whether the device trusts the relay.
fn policy() -> HeaderValue {
    let script = BASE64.encode(digest(&SHA256, SCRIPT.as_bytes()).as_ref());
    let text = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; connect-src wss:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    // The text is visible ASCII, so this cannot fail.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// A fingerprint as systems show it: `5E:ED`.
pub fn pairs(fingerprint: &str) -> String {
    let pairs = fingerprint.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.collect::<Vec<_>>().join(":").to_uppercase()
}

/// `GET /certificate/potluck.crt`.
///
/// # Errors
/// The relay has no authority of its own.
pub async fn der(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    let (der, _) = shared.reach.keeper().ok_or(ApiError::NoAuthority)?.authority_files();
    // The type for which phones offer to install it.
    Ok(file("application/x-x509-ca-cert", der))
}

/// `GET /certificate/potluck.pem`.
///
/// # Errors
/// The relay has no authority of its own.
pub async fn pem(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    let (_, pem) = shared.reach.keeper().ok_or(ApiError::NoAuthority)?.authority_files();
    Ok(file("application/x-pem-file", pem.into_bytes()))
}

fn file(kind: &'static str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_trust_is_served_without_tls() {
        for path in ["/certificate", "/certificate/potluck.crt", "/certificate/potluck.pem"] {
            assert!(serves(path), "{path}");
        }
        for path in ["/", "/certificate/", "/certificates", "/models", "/rooms/x", "/addresses"] {
            assert!(!serves(path), "{path}");
        }
    }

    #[test]
    fn a_fingerprint_is_shown_as_systems_show_it() {
        assert_eq!(pairs("5eedc0de"), "5E:ED:C0:DE");
    }
}
