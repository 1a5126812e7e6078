//! Headers of every response: they tell browsers what to refuse for this relay's page.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use crate::net::Transport;

/// The browser features that the page uses, allowed for itself alone. All others are refused, to the page and to anything in it:
/// an injected script could not ask for the camera.
const PERMISSIONS: &str = "\
    clipboard-write=(self), cross-origin-isolated=(self), screen-wake-lock=(self), \
    accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), encrypted-media=(), fullscreen=(), \
    gamepad=(), geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), idle-detection=(), local-fonts=(), \
    magnetometer=(), microphone=(), midi=(), otp-credentials=(), payment=(), picture-in-picture=(), \
    publickey-credentials-create=(), publickey-credentials-get=(), serial=(), storage-access=(), sync-xhr=(), usb=(), \
    window-management=(), xr-spatial-tracking=()";

/// How long a browser that came over TLS must use TLS only: half a year.
const HTTPS_ONLY: &str = "max-age=15768000";

/// Adds the headers that make the page cross-origin isolated (which gives it precise clocks and shared memory), keep other sites
/// from embedding what is served here, and deny the page the features that it does not use.
pub async fn isolate(mut response: Response) -> Response {
    const HEADERS: [(HeaderName, &str); 6] = [
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Over TLS, tells browsers to use only TLS for this name. Not for IP addresses, to which the header does not apply (RFC 6797,
/// 8.1.1), and not for names of local networks, which other programs and tomorrow another machine may have. A proxy that ends TLS adds it itself.
pub fn keep_to_https(response: &mut Response, host: &Authority, transport: Transport) {
    let name = host.host().trim_end_matches('.');
    if transport == Transport::Tls && is_public(name) {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HTTPS_ONLY));
    }
}

/// Whether it is a name of the public DNS.
fn is_public(name: &str) -> bool {
    let is_address = name.starts_with('[') || name.parse::<IpAddr>().is_ok();
    let name = name.to_ascii_lowercase();
    let is_local = [".local", ".lan", ".internal", ".home.arpa", ".localhost"].iter().any(|end| name.ends_with(end));
    !is_address && name.contains('.') && !is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_bound_to_tls_for_public_names_only() {
        for name in ["localhost", "pc", "PC.local", "nas.lan", "pc.home.arpa", "192.168.1.5", "[fd00::1]"] {
            assert!(!is_public(name), "{name}");
        }
        assert!(is_public("potluck.example") && is_public("local.example"));
    }
}
