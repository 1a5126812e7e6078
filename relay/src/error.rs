//! Errors of the HTTP endpoints and at start-up.

use std::path::PathBuf;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use potluck_relay_api::http::ErrorBody;

use crate::error_page::ErrorText;
use crate::models::origin::OriginError;

/// An error response: a status and an [`ErrorBody`], or for a person at a browser a page with the sentence
/// ([`crate::error_page`]).
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 404.
    #[error("there is no model file named {0:?} here; GET /models lists them")]
    NoSuchModel(String),
    /// 404.
    #[error("the model {0:?} has several files: fetch them one by one, GET /models lists them")]
    SeveralFiles(String),
    /// 503: the hashes are not computed yet.
    #[error("{name:?} is still being hashed ({percent}%): try again in a moment")]
    Hashing {
        /// The file.
        name: String,
        /// How much of it is hashed.
        percent: u64,
    },
    /// 503: the file changed since the last scan.
    #[error("{0:?} changed on disk and is being read again: try again in a moment")]
    Changed(String),
    /// 500.
    #[error("{0:?} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// 502, or 504: its origin does not send it.
    #[error("{0:?} cannot be sent: {1}")]
    Origin(String, OriginError),
    /// 416.
    #[error("the range lies outside the file, which has {bytes} bytes")]
    RangeOutside {
        /// The file's length.
        bytes: u64,
    },
    /// 429.
    #[error("too many downloads at once from your address: try again in a moment")]
    TooManyDownloads,
    /// 503.
    #[error("the relay has too many downloads at once: try again in a few minutes")]
    RelayFull,
    /// 503: the connection is over the limit of its address.
    #[error("too many connections at once from your address: close some of them, or try again in a moment")]
    TooManyConnections,
    /// 503: the connection is over the limit of the relay.
    #[error("the relay has as many connections as it can hold: try again in a minute")]
    NoConnectionFree,
    /// 400: the request names no host, or two.
    #[error("the request must name one host")]
    NoHost,
    /// 421: the request names a host that is not this relay, maybe because another site's name leads here.
    #[error("this relay does not answer to the name {0:?}: start it with --host {0}, or open it by its address")]
    ForeignHost(String),
    /// 403.
    #[error("the counters are shown on the relay's own machine only: start it with --public-metrics to show them here")]
    PrivateMetrics,
    /// 403.
    #[error("this is for the operator: open it on the relay's own machine, or send the token of --operator-token-file")]
    NotOperator,
    /// 404.
    #[error("there is no such room")]
    NoSuchRoom,
    /// 403: a page of another site tries to use this relay.
    #[error("this request comes from a page of another site, which may not use this relay")]
    ForeignOrigin,
    /// 400: a WebSocket address was opened like a page.
    #[error("this address is for connections to a room; to join one, open its link, which starts with /r/")]
    NotWebSocket,
    /// 404.
    #[error("there is nothing at this address")]
    NotFound,
    /// 404: there is nothing to install.
    #[error("this relay has no authority of its own, so there is no certificate to install")]
    NoAuthority,
    /// 503: the relay is about to stop.
    #[error("this relay is about to stop and takes no new rooms: try again in a few seconds")]
    Draining,
    /// 503: the page was not built.
    #[error("the page is not built yet: run `cargo xtask run`, which builds it")]
    NoPage,
}

impl ApiError {
    /// The status, and the error for programs.
    fn parts(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoSuchModel(_) => (StatusCode::NOT_FOUND, "no-such-model"),
            Self::SeveralFiles(_) => (StatusCode::NOT_FOUND, "several-files"),
            Self::Hashing { .. } => (StatusCode::SERVICE_UNAVAILABLE, "hashing"),
            Self::Changed(_) => (StatusCode::SERVICE_UNAVAILABLE, "changed"),
            Self::Unreadable(..) => (StatusCode::INTERNAL_SERVER_ERROR, "unreadable"),
            Self::Origin(_, OriginError::Slow(_)) => (StatusCode::GATEWAY_TIMEOUT, "origin-slow"),
            Self::Origin(..) => (StatusCode::BAD_GATEWAY, "origin-failed"),
            Self::RangeOutside { .. } => (StatusCode::RANGE_NOT_SATISFIABLE, "range-outside"),
            Self::TooManyDownloads => (StatusCode::TOO_MANY_REQUESTS, "too-many-downloads"),
            Self::RelayFull => (StatusCode::SERVICE_UNAVAILABLE, "relay-full"),
            Self::TooManyConnections => (StatusCode::SERVICE_UNAVAILABLE, "too-many-connections"),
            Self::NoConnectionFree => (StatusCode::SERVICE_UNAVAILABLE, "no-connection-free"),
            Self::NoHost => (StatusCode::BAD_REQUEST, "no-host"),
            Self::ForeignHost(_) => (StatusCode::MISDIRECTED_REQUEST, "foreign-host"),
            Self::PrivateMetrics => (StatusCode::FORBIDDEN, "private-metrics"),
            Self::NotOperator => (StatusCode::FORBIDDEN, "not-operator"),
            Self::NoSuchRoom => (StatusCode::NOT_FOUND, "no-such-room"),
            Self::NotWebSocket => (StatusCode::BAD_REQUEST, "no-connection"),
            Self::ForeignOrigin => (StatusCode::FORBIDDEN, "foreign-origin"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::NoAuthority => (StatusCode::NOT_FOUND, "no-authority"),
            Self::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
            Self::NoPage => (StatusCode::SERVICE_UNAVAILABLE, "no-page"),
        }
    }
}

impl ApiError {
    /// Whether the front page can be opened under the same address.
    fn leaves_page(&self) -> bool {
        !matches!(self, Self::NoPage | Self::NoHost | Self::ForeignHost(_))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error) = self.parts();
        let sentence = self.to_string();
        let mut response = (status, Json(ErrorBody { error: error.into(), message: sentence.clone() })).into_response();
        let retry_after = match &self {
            Self::Hashing { .. } | Self::Changed(_) | Self::TooManyDownloads => Some(1),
            Self::TooManyConnections | Self::Draining => Some(5),
            Self::RelayFull | Self::NoConnectionFree => Some(60),
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
        response.extensions_mut().insert(ErrorText { sentence, has_page: self.leaves_page() });
        response
    }
}

/// A file's name in one line of the log or the terminal: a name may have line breaks and other characters that control a terminal.
pub fn in_one_line(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

/// Why the relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is in use or not allowed.
    #[error("cannot listen on port {port}: {source}; choose another port with --port")]
    Listen {
        /// The port.
        port: u16,
        /// What the system reports.
        source: std::io::Error,
    },
    /// No certificate can have this name.
    #[error(
        "--host {0:?} is not a name that a certificate can have: use a to z, digits, - and dots, and xn--… for other letters"
    )]
    Host(String),
    /// Another relay keeps its keys in this folder.
    #[error(
        "another relay{of_process} keeps its certificate in {folder}: stop it, or give this one a folder of its own with --data",
        of_process = process.map_or_else(String::new, |process| format!(" (process {process})"))
    )]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// The other one's process, if it said so.
        process: Option<u32>,
    },
    /// A file holds no token.
    #[error("{path} holds no token: write one line of 16 to 256 letters, digits and signs into it, without spaces")]
    Token {
        /// The file.
        path: PathBuf,
    },
    /// A certificate, a key or a token cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system reports.
        source: std::io::Error,
    },
    /// A certificate, a key, or their folder cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system reports.
        source: std::io::Error,
    },
    /// The certificate or the key is unusable.
    #[error("{path} holds no usable certificate or key: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Creating a certificate failed.
    #[error("cannot create a certificate: {0}")]
    CreateCertificate(String),
    /// The hashing thread could not be started.
    #[error("cannot start the thread that hashes models: {0}")]
    Thread(std::io::Error),
}
