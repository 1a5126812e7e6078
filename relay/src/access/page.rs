//! `/access`: where people enter the token that lets them open rooms, and the operator another one.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode;

use crate::error::ApiError;
use crate::server::Shared;

/// A year: people enter it once on each device.
const COOKIE_SECONDS: u32 = 31_536_000;
/// Nothing from elsewhere, no scripts.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// With no referrer at all, the form's origin would be "null", which is another site's.
const PAGE: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
    <meta name=\"referrer\" content=\"same-origin\"><title>Potluck</title><style>:root { color-scheme: light dark; font: 18px/1.5 system-ui, \
    sans-serif; } body { margin: 0 auto; max-width: 32rem; padding: 24px; } input, button { font: inherit; min-height: 44px; padding: 4px 12px; }\
    </style></head><body><h1>Token of this relay</h1>{complaint}<form method=\"post\"><p><label>Token: <input name=\"token\" \
    type=\"password\" autocomplete=\"current-password\" required autofocus></label> <button>Continue</button></p></form>\
    <p>Whoever runs this relay gave one to those who may open rooms. To join a room, you need only its link.</p></body></html>";
const WRONG: &str = "<p role=\"alert\"><strong>This is not a token of this relay.</strong></p>";

/// `GET /access`.
///
/// # Errors
/// The relay asks for no token.
pub async fn show(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    shared.access.asks().then(|| page(StatusCode::OK, "")).ok_or(ApiError::NotFound)
}

/// `POST /access`, with the form's one field.
///
/// # Errors
/// The relay asks for no token.
pub async fn enter(State(shared): State<Arc<Shared>>, form: Bytes) -> Result<Response, ApiError> {
    if !shared.access.asks() {
        return Err(ApiError::NotFound);
    }
    // A token has no spaces, so no plus stands for one.
    let sent = form.strip_prefix(b"token=").and_then(|value| percent_decode(value).decode_utf8().ok());
    let Some((name, token, next)) = sent.and_then(|sent| shared.access.entered(sent.trim())) else {
        return Ok(page(StatusCode::FORBIDDEN, WRONG));
    };
    // Without a path it is for the folder in which a proxy shows the relay.
    let cookie = format!("{name}={}; Max-Age={COOKIE_SECONDS}; Secure; HttpOnly; SameSite=Strict", token.cookie());
    // The text is visible ASCII, so this cannot fail.
    let cookie = HeaderValue::try_from(cookie).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, HeaderValue::from_static(next)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

fn page(status: StatusCode, complaint: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, PAGE.replace("{complaint}", complaint)).into_response()
}
