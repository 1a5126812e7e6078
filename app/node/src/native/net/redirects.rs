//! Access tokens and redirects: a token goes on to the same server only, as in browsers. A repository that was renamed leads to its new
//! name there, which needs the token as well. ureq passes one on to nobody, or to the same name at any port.

use ureq::http::Uri;

use super::Reply;
use crate::platform::HttpRequest;

/// Redirects that are followed with a token. Without one, ureq follows as many.
const MOST: usize = 10;

/// Sends a request, and follows where it leads.
pub(super) fn get(agent: &ureq::Agent, request: &HttpRequest) -> Result<Reply, ureq::Error> {
    let to = |url: &str| {
        let builder = agent.get(url);
        match &request.range {
            Some(range) => builder.header("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1))),
            None => builder,
        }
    };
    let Some(access) = &request.access else { return to(&request.url).call() };
    let mut url = request.url.clone();
    for _ in 0..=MOST {
        let reply = to(&url).config().max_redirects(0).build().header("authorization", access.header()).call()?;
        let Some(next) = leads_to(&url, &reply) else { return Ok(reply) };
        if origin(&next).is_none() || origin(&next) != origin(&url) {
            return to(&next).call();
        }
        url = next;
    }
    Err(ureq::Error::TooManyRedirects)
}

/// The address that a reply leads to.
fn leads_to(url: &str, reply: &Reply) -> Option<String> {
    if !matches!(reply.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    Some(joined(url, reply.headers().get("location")?.to_str().ok()?))
}

/// A location as seen from an address.
fn joined(url: &str, location: &str) -> String {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let server = url[scheme..].find(['/', '?']).map_or(url.len(), |end| scheme + end);
    let is_absolute = location.split(['/', '?']).next().is_some_and(|first| first.ends_with(':'));
    if is_absolute {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{}{location}", &url[..scheme.saturating_sub(2)])
    } else if location.starts_with('/') {
        format!("{}{location}", &url[..server])
    } else {
        let path = url[server..].split('?').next().unwrap_or_default();
        let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
        format!("{}{folder}{location}", &url[..server])
    }
}

/// Scheme, host and port of an address.
fn origin(url: &str) -> Option<(String, String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let usual = if scheme == "https" { 443 } else { 80 };
    Some((scheme, uri.host()?.to_ascii_lowercase(), uri.port_u16().unwrap_or(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_seen_from_its_address() {
        for (location, seen) in [
            ("/new/file.gguf", "https://a.b:8/new/file.gguf"),
            ("file.gguf?x=1", "https://a.b:8/old/file.gguf?x=1"),
            ("//c.d/file", "https://c.d/file"),
            ("http://c.d/e:f/#g", "http://c.d/e:f/"),
        ] {
            assert_eq!(joined("https://a.b:8/old/model.gguf?y=/z", location), seen);
        }
        assert_eq!(joined("https://a.b", "c"), "https://a.b/c");
    }

    #[test]
    fn a_server_is_scheme_host_and_port() {
        assert_eq!(origin("https://Hub.example/a"), origin("https://hub.example:443/b?c"));
        for other in ["http://hub.example", "https://hub.example:8443", "https://hub.example.evil", "hub.example"] {
            assert_ne!(origin("https://hub.example"), origin(other), "{other}");
        }
    }
}
