//! The answer to plain HTTP from another device: the same address with `https://`.

use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// Redirects a request that names this relay as `host`.
pub fn to_https(host: &Authority, uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    match HeaderValue::try_from(format!("https://{host}{path}")) {
        Ok(url) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, url)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_redirect_keeps_path_and_port() {
        let answer = to_https(&"192.168.1.5:8787".parse().unwrap(), &"/r/abcd?x=1".parse().unwrap());
        assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(answer.headers()["location"], "https://192.168.1.5:8787/r/abcd?x=1");
    }
}
