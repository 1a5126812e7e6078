//! Errors for people: whoever opens an address in a browser reads a sentence and finds the way to the page. Programs get
//! JSON.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use potluck_relay_api::base::way_up;

/// What the error page says. An error response carries it as an extension until [`html_for_browsers`] takes it.
#[derive(Clone, Debug)]
pub struct ErrorText {
    /// The sentence, without a capital letter and a full stop.
    pub sentence: String,
    /// Whether there is a front page to link to.
    pub has_page: bool,
}

/// No scripts, nothing from elsewhere; the style is part of the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The page's own colours (`app/ui/styles/tokens.css`).
const STYLE: &str = "\
:root { color-scheme: light dark; --paper: #fbf8f2; --ink: #2b2420; --link: #ac2c21; }
@media (prefers-color-scheme: dark) { :root { --paper: #1a1613; --ink: #f3ebe1; --link: #ff9486; } }
body { margin: 0; min-height: 100vh; display: grid; place-content: center; gap: 16px; padding: 24px; box-sizing: border-box;
  background: var(--paper); color: var(--ink); font: 18px/1.5 system-ui, sans-serif; text-align: center; overflow-wrap: anywhere; }
h1, p { margin: 0; } h1 { font-size: 24px; }
a { color: var(--link); display: inline-block; padding: 10px 16px; border-radius: 12px; }
a:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }";

/// Middleware: turns an error into HTML if the request asks for HTML.
pub async fn html_for_browsers(request: Request, next: Next) -> Response {
    let wants_html = accepts_html(request.headers());
    let home = way_up(request.uri().path());
    let mut response = next.run(request).await;
    let Some(text) = response.extensions_mut().remove::<ErrorText>() else { return response };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    if !wants_html {
        return response;
    }
    let (parts, _) = response.into_parts();
    let mut page = (parts.status, Body::from(html(&text, &home))).into_response();
    *page.headers_mut() = parts.headers;
    let headers = page.headers_mut();
    // These described the JSON body.
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    page
}

/// Browsers name HTML when a person opens an address; programs and the page's own requests do not.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|kind| {
        let name = kind.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("text/html")
    })
}

fn html(text: &ErrorText, home: &str) -> String {
    let mut letters = text.sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    let sentence = escape_html(&format!("{first}{}.", letters.as_str()));
    let link = format!("<p><a href=\"{home}\">Go to the front page</a></p>");
    let link = if text.has_page { &link } else { "" };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Potluck</title><style>{STYLE}</style></head>\
         <body><h1>Potluck</h1><p>{sentence}</p>{link}</body></html>"
    )
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_the_address_is_escaped() {
        let text = ErrorText { sentence: "no \"<script>alert(1)</script>\" & no 'x'".into(), has_page: true };
        let page = html(&text, "./");
        assert!(
            page.contains("<p>No &quot;&lt;script&gt;alert(1)&lt;/script&gt;&quot; &amp; no &#39;x&#39;.</p>"),
            "{page}"
        );
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn only_a_browser_that_opens_an_address_asks_for_html() {
        let accepts = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(value))]);
            accepts_html(&headers)
        };
        assert!(accepts("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(accepts("application/json, Text/HTML;q=0.5"));
        assert!(!accepts("*/*") && !accepts("application/json") && !accepts("text/html-not"));
        assert!(!accepts_html(&HeaderMap::new()));
    }
}
