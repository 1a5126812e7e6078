//! What an address means.

use axum::http::{HeaderMap, Method};

/// Sent by programs that know Anthropic's API.
const ANTHROPIC_VERSION: &str = "anthropic-version";

/// What an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Health,
    Models,
    Model(&'a str),
    Props,
    Metrics,
    Tokens(Tokens),
    /// How many tokens a conversation in Anthropic's API has.
    Count,
    Ask(Api),
}

/// What becomes of texts and tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    Tokenize,
    Detokenize,
    ApplyTemplate,
}

/// An API in which questions are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
}

impl<'a> Route<'a> {
    /// The route of an address, if there is one.
    pub fn of(path: &'a str) -> Option<Self> {
        match without_version(path) {
            "health" => Some(Self::Health),
            "models" => Some(Self::Models),
            "props" => Some(Self::Props),
            "metrics" => Some(Self::Metrics),
            "tokenize" => Some(Self::Tokens(Tokens::Tokenize)),
            "detokenize" => Some(Self::Tokens(Tokens::Detokenize)),
            "apply-template" => Some(Self::Tokens(Tokens::ApplyTemplate)),
            "messages/count_tokens" => Some(Self::Count),
            "chat/completions" => Some(Self::Ask(Api::Chat)),
            "completions" => Some(Self::Ask(Api::Completions)),
            "responses" => Some(Self::Ask(Api::Responses)),
            "messages" => Some(Self::Ask(Api::Messages)),
            path => path.strip_prefix("models/").map(Self::Model),
        }
    }

    /// Its method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Ask(_) | Self::Count | Self::Tokens(_) => "POST",
            Self::Health | Self::Models | Self::Model(_) | Self::Props | Self::Metrics => "GET",
        }
    }

    /// Takes requests of this method.
    pub fn takes(self, method: &Method) -> bool {
        method.as_str() == self.method() || (*method == Method::HEAD && self.method() == "GET")
    }
}

/// A path without slashes around it and `v1` before it. People type the base URL with and without them, some libraries add `v1`
/// themselves, and redirects would turn a POST into a GET.
fn without_version(path: &str) -> &str {
    let mut path = path.trim_matches('/');
    while let Some(rest) = path.strip_prefix("v1/") {
        path = rest.trim_matches('/');
    }
    path
}

/// Whose errors a program understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

impl Dialect {
    /// That of a program which sends this.
    pub fn of(path: &str, headers: &HeaderMap) -> Self {
        let path = without_version(path);
        let is_messages = path == "messages" || path.starts_with("messages/");
        if is_messages || headers.contains_key(ANTHROPIC_VERSION) { Self::Anthropic } else { Self::OpenAi }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_work_with_and_without_version_and_slash() {
        for path in [
            "/v1/chat/completions",
            "/chat/completions",
            "/v1/chat/completions/",
            "//v1//chat/completions",
            "/v1/v1/chat/completions",
        ] {
            assert_eq!(Route::of(path), Some(Route::Ask(Api::Chat)), "{path}");
        }
        assert_eq!(Route::of("/models/"), Some(Route::Models));
        assert_eq!(Route::of("/v1/models/tiny"), Some(Route::Model("tiny")));
        assert_eq!(Route::of("/v1/health"), Some(Route::Health));
        assert_eq!(Route::of("/v1/messages"), Some(Route::Ask(Api::Messages)));
        assert_eq!(Route::of("/v1/messages/count_tokens/"), Some(Route::Count));
        assert_eq!(Route::of("/apply-template"), Some(Route::Tokens(Tokens::ApplyTemplate)));
        for path in ["/", "/v1", "/v2/models", "/v1/responses/resp_1", "/v1/chat", "/chat/completions/more"] {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }

    #[test]
    fn a_program_reads_errors_of_the_api_that_it_uses() {
        let none = HeaderMap::new();
        for path in ["/v1/messages", "/messages/", "/v1/messages/count_tokens"] {
            assert_eq!(Dialect::of(path, &none), Dialect::Anthropic, "{path}");
        }
        assert_eq!(Dialect::of("/v1/models", &none), Dialect::OpenAi);
        let version = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static(ANTHROPIC_VERSION),
            axum::http::HeaderValue::from_static("2023-06-01"),
        )]);
        assert_eq!(Dialect::of("/v1/models", &version), Dialect::Anthropic);
    }
}
