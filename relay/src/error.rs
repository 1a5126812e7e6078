//! Errors of the HTTP routes and of starting up.

use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::readable::Told;

/// An HTTP answer that is not the one asked for: a status and `{"error": "…", "message": "One sentence."}`, for a person at a
/// browser the sentence alone ([`crate::readable`]).
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 404.
    #[error("there is no model file named {0:?} here; GET /models lists them")]
    NoSuchModel(String),
    /// 404.
    #[error("the model {0:?} consists of several files; fetch them one by one, GET /models names them")]
    SeveralFiles(String),
    /// 503, with the time after which to ask again.
    #[error("{name:?} is still being hashed, {percent} % done: ask again in a moment")]
    Hashing {
        /// The file.
        name: String,
        /// How far.
        percent: u64,
    },
    /// 503: the file changed on disk under the relay.
    #[error("{0:?} changed on disk and is being looked at again: ask again in a moment")]
    Changed(String),
    /// 500: the file cannot be read any more.
    #[error("{0:?} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// 416.
    #[error("none of the ranges asked for lies inside the {bytes} bytes of the file")]
    RangeOutside {
        /// The file's length.
        bytes: u64,
    },
    /// 429.
    #[error("too many new rooms from your address: try again in {} s", .0.as_secs() + 1)]
    TooManyRooms(Duration),
    /// 503.
    #[error("the relay has no space for another room: try again in a few minutes")]
    RelayFull,
    /// 400.
    #[error("the body is not of the form {{\"title\": \"…\", \"visible\": true}}")]
    BadRoom,
    /// 403: a page of another site wants to use this relay.
    #[error("this connection comes from a page of another address than the relay's")]
    ForeignOrigin,
    /// 400: an address for connections was opened like a page.
    #[error("this address is for the page's connection to a room; a room's link begins with /r/")]
    NoConnection,
    /// 404.
    #[error("there is nothing at this address")]
    NotFound,
    /// 503: no page was built.
    #[error("the page is not built yet: run `cargo xtask run`, which builds it")]
    NoPage,
}

#[derive(Serialize)]
struct Body {
    error: &'static str,
    message: String,
}

impl ApiError {
    fn parts(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoSuchModel(_) => (StatusCode::NOT_FOUND, "no-such-model"),
            Self::SeveralFiles(_) => (StatusCode::NOT_FOUND, "several-files"),
            Self::Hashing { .. } => (StatusCode::SERVICE_UNAVAILABLE, "hashing"),
            Self::Changed(_) => (StatusCode::SERVICE_UNAVAILABLE, "changed"),
            Self::Unreadable(..) => (StatusCode::INTERNAL_SERVER_ERROR, "unreadable"),
            Self::RangeOutside { .. } => (StatusCode::RANGE_NOT_SATISFIABLE, "range-outside"),
            Self::TooManyRooms(_) => (StatusCode::TOO_MANY_REQUESTS, "too-many-rooms"),
            Self::RelayFull => (StatusCode::SERVICE_UNAVAILABLE, "relay-full"),
            Self::BadRoom => (StatusCode::BAD_REQUEST, "bad-room"),
            Self::NoConnection => (StatusCode::BAD_REQUEST, "no-connection"),
            Self::ForeignOrigin => (StatusCode::FORBIDDEN, "foreign-origin"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::NoPage => (StatusCode::SERVICE_UNAVAILABLE, "no-page"),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error) = self.parts();
        let sentence = self.to_string();
        let mut response = (status, Json(Body { error, message: sentence.clone() })).into_response();
        let retry_after = match &self {
            Self::TooManyRooms(wait) => Some(wait.as_secs() + 1),
            Self::Hashing { .. } | Self::Changed(_) => Some(1),
            Self::RelayFull => Some(60),
            _ => None,
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Self::RangeOutside { bytes } = &self
            && let Ok(value) = HeaderValue::try_from(format!("bytes */{bytes}"))
        {
            response.headers_mut().insert(header::CONTENT_RANGE, value);
        }
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let told = Told { sentence, has_page: !matches!(self, Self::NoPage) };
        response.extensions_mut().insert(told);
        response
    }
}

/// Why the relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken or not allowed.
    #[error("cannot listen on port {port}: {source}; choose another one with --port")]
    Listen {
        /// The port.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of the certificate.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of the certificate, or its folder.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The certificate or the key is not one.
    #[error("{path} holds no usable certificate or key: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    MakeCertificate(String),
    /// The thread that hashes files could not be started.
    #[error("cannot start the thread that hashes models: {0}")]
    Thread(std::io::Error),
}
