//! `/access`: where people enter the token that lets them open rooms.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode;

use super::COOKIE;
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
    </style></head><body><h1>Open rooms here</h1>{complaint}<form method=\"post\"><p><label>Token of this relay: <input name=\"token\" \
    type=\"password\" autocomplete=\"current-password\" required autofocus></label> <button>Continue</button></p></form>\
    <p>Whoever runs this relay gave it to those who may open rooms. To join a room, you need only its link.</p></body></html>";
const WRONG: &str = "<p role=\"alert\"><strong>This is not the token of this relay.</strong></p>";

/// `GET /access`.
///
/// # Errors
/// The relay asks for no token.
pub async fn show(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    shared.access.asked().ok_or(ApiError::NotFound)?;
    Ok(page(StatusCode::OK, ""))
}

/// `POST /access`, with the form's one field.
///
/// # Errors
/// The relay asks for no token.
pub async fn enter(State(shared): State<Arc<Shared>>, form: Bytes) -> Result<Response, ApiError> {
    let token = shared.access.asked().ok_or(ApiError::NotFound)?;
    // A token has no spaces, so no plus stands for one.
    let sent = form.strip_prefix(b"token=").and_then(|value| percent_decode(value).decode_utf8().ok());
    if !sent.is_some_and(|sent| token.is(sent.trim())) {
        return Ok(page(StatusCode::FORBIDDEN, WRONG));
    }
    // Without a path it is for the folder in which a proxy shows the relay.
    let cookie = format!("{COOKIE}={}; Max-Age={COOKIE_SECONDS}; Secure; HttpOnly; SameSite=Strict", token.cookie());
    // The text is visible ASCII, so this cannot fail.
    let cookie = HeaderValue::try_from(cookie).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, HeaderValue::from_static("./")),
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
