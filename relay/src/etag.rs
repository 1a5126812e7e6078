//! Entity tags of requests (RFC 9110, section 13.1.2).

use axum::http::{HeaderMap, HeaderValue, header};

/// Whether `If-None-Match` names this tag, or any. Compared weakly: a proxy that compresses what it passes on makes the tags weak.
pub fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let Ok(own) = etag.to_str() else { return false };
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim).any(|known| known == "*" || opaque(known) == opaque(own))
}

/// A tag without the mark of a weak one.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly_in_any_list() {
        let known = |lists: &[&'static str], own: &'static str| {
            let headers = lists.iter().map(|list| (header::IF_NONE_MATCH, HeaderValue::from_static(list)));
            is_known(&headers.collect(), &HeaderValue::from_static(own))
        };
        for own in ["\"a\"", "W/\"a\""] {
            for lists in [&["\"a\""][..], &["W/\"a\""], &["\"b\", W/\"a\""], &["\"b\"", "\"a\""], &["*"]] {
                assert!(known(lists, own), "{lists:?} names {own}");
            }
            for lists in [&[][..], &["\"b\""], &["a"], &["w/\"a\""], &["\"W/a\""]] {
                assert!(!known(lists, own), "{lists:?} does not name {own}");
            }
        }
    }
}
