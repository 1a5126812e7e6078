//! Errors: their status, and how OpenAI's APIs have them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use potluck_panel::AnswerStop;
use potluck_swarm::Refusal;
use potluck_text::texts;
use serde_json::{Value, json};
use thiserror::Error;

use crate::api::anthropic;
use crate::route::Dialect;

/// Seconds after which a program may ask again.
const RETRY_AFTER: u32 = 5;
/// The same after several questions that were too long: the host's sentence says a minute.
const RETRY_AFTER_TOO_LONG: u32 = 60;

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ApiError {
    /// A field is not what it can be.
    #[error("{field}: {reason}")]
    Invalid { field: String, reason: String },
    /// A field asks for what this API cannot do.
    #[error("{field}: {reason}")]
    Unsupported { field: String, reason: String },
    /// The body is not JSON.
    #[error("the request is not valid JSON: {0}")]
    NotJson(String),
    /// The room does not take the question: a sentence of its host.
    #[error("{0}")]
    Refused(String),
    /// It does not fit the context.
    #[error("{sentence}")]
    TooLong { sentence: String, numbers: Option<(usize, usize)> },
    /// The key is missing or another one.
    #[error("{}", texts().api.wrong_key())]
    WrongKey,
    /// The request may come from a web page.
    #[error("{0}")]
    Forbidden(String),
    /// Nothing is at this address.
    #[error("{}", texts().api.no_route())]
    NoRoute,
    /// The address takes another method.
    #[error("{}", texts().api.no_method(.0))]
    NoMethod(&'static str),
    /// The room runs another model.
    #[error("{}", texts().api.no_model(.0))]
    NoModel(String),
    /// The body is larger than this many bytes.
    #[error("{}", texts().api.too_large(.0))]
    TooLarge(u64),
    /// The body did not come in time.
    #[error("{}", texts().api.too_slow())]
    TooSlow,
    /// The body ended early.
    #[error("{}", texts().api.cut_short())]
    CutShort,
    /// Only the room's host can do it.
    #[error("{}", texts().api.not_here())]
    NotHere,
    /// Too many ask.
    #[error("{sentence}")]
    Busy { sentence: String, retry_after: u32 },
    /// The room has no model yet.
    #[error("{}", texts().api.not_ready())]
    NotReady,
    /// The room or a device in it failed: one sentence.
    #[error("{0}")]
    Failed(String),
}

impl ApiError {
    /// A field is not what it can be: `reason` says what is expected.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }

    /// A field asks for what this API cannot do.
    pub fn unsupported(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported { field: field.into(), reason: reason.into() }
    }

    /// The room or this program has ended.
    pub fn ended() -> Self {
        Self::Failed(texts().api.ended().to_owned())
    }

    /// Why an answer ended without being one; `None` if it is one.
    pub fn of_stop(stop: &AnswerStop) -> Option<Self> {
        match stop {
            AnswerStop::Complete | AnswerStop::Length => None,
            // A program that had stopped it would not be waiting: the room lost its connection to this program for a while.
            AnswerStop::Stopped => Some(Self::Failed(texts().api.cut_off().to_owned())),
            AnswerStop::Failed(sentence) => Some(Self::Failed(sentence.clone())),
            AnswerStop::Refused(sentence) => Some(Self::of_refused(sentence.clone())),
        }
    }

    /// Why a question is not taken, by its sentence.
    pub fn of_refused(sentence: String) -> Self {
        match Refusal::read(&sentence) {
            Some(Refusal::QueueFull) => Self::Busy { sentence, retry_after: RETRY_AFTER },
            Some(Refusal::TooOftenTooLong) => Self::Busy { sentence, retry_after: RETRY_AFTER_TOO_LONG },
            Some(Refusal::TooManyTokens { tokens, context }) => {
                Self::TooLong { sentence, numbers: Some((tokens, context)) }
            }
            Some(Refusal::TooLong | Refusal::TooMuchText { .. }) => Self::TooLong { sentence, numbers: None },
            Some(Refusal::NoModel) => Self::NotReady,
            None => Self::Refused(sentence),
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid { .. }
            | Self::Unsupported { .. }
            | Self::NotJson(_)
            | Self::Refused(_)
            | Self::TooLong { .. }
            | Self::CutShort => StatusCode::BAD_REQUEST,
            Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NoRoute | Self::NoModel(_) => StatusCode::NOT_FOUND,
            Self::NotHere => StatusCode::NOT_IMPLEMENTED,
            Self::NoMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady | Self::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::WrongKey => "authentication_error",
            Self::Forbidden(_) => "permission_error",
            Self::Busy { .. } => "rate_limit_error",
            Self::NotReady => "unavailable_error",
            Self::Failed(_) => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// A word for programs.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unsupported { .. } => Some("unsupported_value"),
            Self::TooLong { .. } => Some("context_length_exceeded"),
            Self::WrongKey => Some("invalid_api_key"),
            Self::Forbidden(_) => Some("forbidden"),
            Self::NoRoute => Some("unknown_url"),
            Self::NotHere => Some("not_implemented"),
            Self::NoMethod(_) => Some("method_not_allowed"),
            Self::NoModel(_) => Some("model_not_found"),
            Self::TooLarge(_) => Some("request_too_large"),
            Self::Busy { .. } => Some("rate_limit_exceeded"),
            _ => None,
        }
    }

    fn param(&self) -> Option<&str> {
        match self {
            Self::Invalid { field, .. } | Self::Unsupported { field, .. } => Some(field),
            Self::TooLong { .. } => Some("messages"),
            Self::NoModel(_) => Some("model"),
            _ => None,
        }
    }

    /// What programs for OpenAI's APIs read.
    pub fn message(&self) -> String {
        match self {
            // They look for these words, and shorten their conversation.
            Self::TooLong { sentence, numbers: Some((_, context)) } => {
                format!("This model's maximum context length is {context} tokens. {sentence}")
            }
            _ => self.to_string(),
        }
    }

    /// `{"error": {…}}`.
    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "message": self.message(),
            "type": self.kind(),
            "param": self.param(),
            "code": self.code(),
        });
        if let Self::TooLong { numbers: Some((tokens, context)), .. } = self {
            error["n_prompt_tokens"] = json!(tokens);
            error["n_ctx"] = json!(context);
        }
        json!({ "error": error })
    }
}

impl ApiError {
    /// The reply to a program that understands these errors.
    pub fn respond(&self, dialect: Dialect) -> Response {
        let json = match dialect {
            Dialect::OpenAi => self.to_json(),
            Dialect::Anthropic => anthropic::error(self),
        };
        let mut response = (self.status(), axum::Json(json)).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Busy { retry_after, .. } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after));
            }
            Self::NotReady => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
            }
            Self::NoMethod(method) => {
                headers.insert(header::ALLOW, HeaderValue::from_static(method));
            }
            Self::WrongKey => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // Whoever may not ask holds no connection.
            Self::Forbidden(_) => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn of(refusal: Refusal) -> ApiError {
        ApiError::of_stop(&AnswerStop::Refused(refusal.to_string())).unwrap()
    }

    #[test]
    fn a_conversation_that_does_not_fit_says_both_numbers() {
        let error = of(Refusal::TooManyTokens { tokens: 5_000, context: 4_096 });
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        let json = error.to_json();
        let error = &json["error"];
        assert_eq!(
            (&error["code"], &error["type"]),
            (&json!("context_length_exceeded"), &json!("invalid_request_error"))
        );
        assert_eq!((&error["n_prompt_tokens"], &error["n_ctx"]), (&json!(5_000), &json!(4_096)));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("5000") && message.contains("4096"), "{message}");
        let json = of(Refusal::TooMuchText { bytes: 9_000, max: 8_000 }).to_json();
        assert_eq!(json["error"]["code"], "context_length_exceeded");
    }

    #[test]
    fn who_may_ask_again_is_told_when() {
        for (refusal, status, seconds) in [
            (Refusal::QueueFull, StatusCode::TOO_MANY_REQUESTS, "5"),
            (Refusal::TooOftenTooLong, StatusCode::TOO_MANY_REQUESTS, "60"),
            (Refusal::NoModel, StatusCode::SERVICE_UNAVAILABLE, "5"),
        ] {
            let response = of(refusal).respond(Dialect::OpenAi);
            assert_eq!(response.status(), status, "{refusal}");
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds, "{refusal}");
        }
    }

    #[test]
    fn other_ends_are_failures_or_answers() {
        let refused = ApiError::of_stop(&AnswerStop::Refused("No.".to_owned())).unwrap();
        assert_eq!((refused.status().as_u16(), refused.to_string()), (400, "No.".to_owned()));
        for stop in [AnswerStop::Failed("The host left.".to_owned()), AnswerStop::Stopped] {
            assert_eq!(ApiError::of_stop(&stop).unwrap().status().as_u16(), 503, "{stop:?}");
        }
        for stop in [AnswerStop::Complete, AnswerStop::Length] {
            assert_eq!(ApiError::of_stop(&stop), None);
        }
    }

    #[test]
    fn a_field_is_named() {
        let json = ApiError::invalid("temperature", "expected a number from 0 to 5").to_json();
        assert_eq!(json["error"]["param"], "temperature");
        assert_eq!(json["error"]["message"], "temperature: expected a number from 0 to 5");
        assert_eq!(json["error"]["code"], Value::Null);
    }
}
