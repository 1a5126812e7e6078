//! The built page, from a folder: types, caching, and the policy that lets a page use the GPU and little else.
//!
//! Files are read again when they change on disk, so a new build needs no new relay.

mod csp;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::server::Shared;

/// A file of the page as it is sent.
#[derive(Debug)]
struct Asset {
    modified: Option<std::time::SystemTime>,
    bytes: Bytes,
    kind: &'static str,
    etag: HeaderValue,
    policy: HeaderValue,
    cache: &'static str,
}

/// The folder with the built page.
#[derive(Debug)]
pub struct Page {
    folder: Option<PathBuf>,
    assets: Mutex<HashMap<PathBuf, Arc<Asset>>>,
}

impl Page {
    /// Serves what is in `folder`; without one, an explanation.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, assets: Mutex::default() }
    }

    /// The asset for a path of an address.
    fn asset(&self, path: &str) -> Result<Arc<Asset>, ApiError> {
        let folder = self.folder.as_deref().ok_or(ApiError::NoPage)?;
        let is_place = matches!(path, "/" | "/bench") || path.strip_prefix("/r/").is_some_and(|id| !id.contains('/'));
        let relative = if is_place { PathBuf::from("index.html") } else { relative(path).ok_or(ApiError::NotFound)? };
        match self.read(&folder.join(&relative)) {
            Ok(asset) => Ok(asset),
            Err(_) if is_place => Err(ApiError::NoPage),
            Err(_) => Err(ApiError::NotFound),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Arc<Asset>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let modified = metadata.modified().ok();
        let mut assets = self.assets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = assets.get(path)
            && known.modified == modified
            && known.bytes.len() as u64 == metadata.len()
        {
            return Ok(known.clone());
        }
        let asset = Arc::new(Asset::new(path, fs::read(path)?, modified));
        assets.insert(path.to_owned(), asset.clone());
        Ok(asset)
    }
}

impl Asset {
    fn new(path: &Path, bytes: Vec<u8>, modified: Option<std::time::SystemTime>) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let kind = kind(name);
        let html = kind.starts_with("text/html").then(|| String::from_utf8_lossy(&bytes).into_owned());
        // Weak, because compression sends the same content in other bytes.
        let etag = format!("W/\"{}\"", &blake3::hash(&bytes).to_hex()[..32]);
        Self {
            modified,
            kind,
            etag: HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("W/\"\"")),
            policy: csp::policy(html.as_deref().unwrap_or_default()),
            cache: if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" },
            bytes: bytes.into(),
        }
    }
}

/// Serves the page: the fallback for all addresses that are not the relay's own.
pub async fn serve(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let asset = match shared.page.asset(uri.path()) {
        Ok(asset) => asset,
        Err(error) => return error.into_response(),
    };
    let known = headers.get(header::IF_NONE_MATCH).and_then(|list| list.to_str().ok());
    let unchanged = known.is_some_and(|list| list.split(',').any(|one| asset.etag == *one.trim()));
    let (status, body) = if unchanged {
        (StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        (StatusCode::OK, Body::from(asset.bytes.clone()))
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static(asset.cache)),
        (header::ETAG, asset.etag.clone()),
        (header::CONTENT_SECURITY_POLICY, asset.policy.clone()),
    ];
    (status, headers, body).into_response()
}

/// The path below the folder that an address names; `None` if it leads anywhere else or is oddly written.
fn relative(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(decode(path.strip_prefix('/')?)?);
    let plain = path.components().all(|part| match part {
        Component::Normal(name) => {
            name.to_str().is_some_and(|name| !name.starts_with('.') && !name.contains(['\\', ':']))
        }
        _ => false,
    });
    (plain && path.components().next().is_some()).then_some(path)
}

/// Undoes percent encoding; `None` for bytes that are no text or no part of a name.
fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            bytes.push((digit(rest.next())? * 16 + digit(rest.next())?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Whether Trunk put a hash of the content into the name: `page-0123456789abcdef.js`, `…_bg.wasm`. It writes 64 bits
/// without leading zeros, so a few digits may be missing.
fn is_hashed(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let digits = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    stem.split(['-', '_']).any(|part| (12..=16).contains(&part.len()) && digits(part))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_inside_the_folder() {
        assert_eq!(relative("/a/b%20c.js"), Some(PathBuf::from("a/b c.js")));
        for bad in
            ["/../x", "/a/../../x", "/%2e%2e/x", "//etc/passwd", "/.git/config", "/a%00", "/a%5cb", "/%ff", "/", "x"]
        {
            assert_eq!(relative(bad), None, "{bad}");
        }
    }

    #[test]
    fn hashed_names_are_told_from_others() {
        assert!(is_hashed("potluck-ui-0123456789abcdef.js"));
        assert!(is_hashed("potluck-ui-0123456789abcdef_bg.wasm"));
        assert!(is_hashed("door-767c836298e6fe4.css"));
        for other in ["index.html", "worker_loader.js", "style-0123.css", "potluck-ui_bg.wasm"] {
            assert!(!is_hashed(other), "{other}");
        }
    }
}
