//! The built page, served from a folder with types, caching and a content security policy.
//!
//! Files are read again when they change on disk, so a new build needs no restart. Tags come from the content, because a
//! date has a resolution of one second and a rebuild can be faster.

mod csp;
mod encoding;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use potluck_relay_api::base::in_room;

use crate::error::ApiError;
use crate::etag;
use crate::server::Shared;
use encoding::Encoded;

/// A file of the page, ready to be sent.
#[derive(Debug)]
struct Asset {
    modified: Option<std::time::SystemTime>,
    /// Of the file, which may not be that of `bytes`.
    length: u64,
    bytes: Bytes,
    content_type: HeaderValue,
    etag: HeaderValue,
    policy: HeaderValue,
    cache: &'static str,
    encoded: OnceLock<Encoded>,
}

/// From where a file is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// At its own name, or in the relay's folder.
    Folder,
    /// At a room's address, one folder further down.
    Room,
}

/// The folder with the built page.
#[derive(Debug)]
pub struct Page {
    folder: Option<PathBuf>,
    assets: Mutex<HashMap<(PathBuf, Place), Arc<Asset>>>,
}

impl Page {
    /// Serves the files of `folder`; without one, an error that explains how to build the page.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, assets: Mutex::default() }
    }

    /// Reads and compresses all files of the folder, so that the first visitor need not wait for it.
    pub fn compress_all(&self) {
        let mut folders: Vec<PathBuf> = self.folder.iter().cloned().collect();
        while let Some(folder) = folders.pop() {
            // What cannot be read is an error once somebody asks for it.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    _ => _ = self.read(&entry.path(), Place::Folder).inspect(|asset| _ = asset.compress()),
                }
            }
        }
    }

    /// The asset for the path of a request.
    fn asset(&self, path: &str) -> Result<Arc<Asset>, ApiError> {
        let folder = self.folder.as_deref().ok_or(ApiError::NoPage)?;
        let is_room = path.strip_prefix("/r/").is_some_and(|id| !id.contains('/'));
        let is_view = matches!(path, "/" | "/bench" | "/chats") || is_room;
        let relative = if is_view { PathBuf::from("index.html") } else { relative(path).ok_or(ApiError::NotFound)? };
        match self.read(&folder.join(&relative), if is_room { Place::Room } else { Place::Folder }) {
            Ok(asset) => Ok(asset),
            Err(_) if is_view => Err(ApiError::NoPage),
            Err(_) => Err(ApiError::NotFound),
        }
    }

    fn read(&self, path: &Path, place: Place) -> io::Result<Arc<Asset>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let modified = metadata.modified().ok();
        let mut assets = self.assets.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (path.to_owned(), place);
        if let Some(known) = assets.get(&key)
            && known.modified == modified
            && known.length == metadata.len()
        {
            return Ok(known.clone());
        }
        let bytes = fs::read(path)?;
        let length = bytes.len() as u64;
        let bytes = match place {
            Place::Folder => bytes,
            Place::Room => in_room(&String::from_utf8_lossy(&bytes)).into_bytes(),
        };
        let asset = Arc::new(Asset { length, ..Asset::new(path, bytes.into(), modified) });
        assets.insert(key, asset.clone());
        Ok(asset)
    }
}

impl Asset {
    fn new(path: &Path, bytes: Bytes, modified: Option<std::time::SystemTime>) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let html = name.ends_with(".html").then(|| String::from_utf8_lossy(&bytes).into_owned());
        // Weak, because compression sends the same content as other bytes.
        let etag = format!("W/\"{}\"", &blake3::hash(&bytes).to_hex()[..32]);
        Self {
            modified,
            length: bytes.len() as u64,
            content_type: content_type(name),
            etag: HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("W/\"\"")),
            policy: csp::policy(html.as_deref()),
            cache: if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" },
            bytes,
            encoded: OnceLock::new(),
        }
    }

    /// Its compressed forms. The first call takes a while: not for an async thread.
    fn compress(&self) -> &Encoded {
        self.encoded.get_or_init(|| Encoded::new(&self.bytes))
    }
}

/// Serves the page: the fallback for all paths that are not endpoints.
pub async fn serve(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let (page, path) = (shared.page.clone(), uri.path().to_owned());
    let asset = tokio::task::spawn_blocking(move || page.asset(&path).inspect(|asset| _ = asset.compress()));
    let asset = match asset.await {
        Ok(Ok(asset)) => asset,
        Ok(Err(error)) => return error.into_response(),
        Err(_) => return ApiError::NotFound.into_response(),
    };
    let unchanged = etag::is_known(&headers, &asset.etag);
    let best = asset.compress().best(&headers).filter(|_| !unchanged);
    let coding = best.as_ref().map(|(encoding, _)| encoding.name());
    let (status, body) = match best {
        _ if unchanged => (StatusCode::NOT_MODIFIED, Body::empty()),
        Some((_, bytes)) => (StatusCode::OK, Body::from(bytes)),
        None => (StatusCode::OK, Body::from(asset.bytes.clone())),
    };
    let headers = [
        (header::CONTENT_TYPE, asset.content_type.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static(asset.cache)),
        (header::ETAG, asset.etag.clone()),
        (header::CONTENT_SECURITY_POLICY, asset.policy.clone()),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    let mut response = (status, headers, body).into_response();
    if let Some(coding) = coding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// The path inside the folder that a request names; `None` if it leads elsewhere or is not plain text.
fn relative(path: &str) -> Option<PathBuf> {
    let path = percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok().filter(|path| !path.contains('\0'))?;
    let path = PathBuf::from(path.as_ref());
    let plain = path.components().all(|part| match part {
        Component::Normal(name) => {
            name.to_str().is_some_and(|name| !name.starts_with('.') && !name.contains(['\\', ':']))
        }
        _ => false,
    });
    (plain && path.components().next().is_some()).then_some(path)
}

/// Whether the build put a hash of the content into the name, as in `page-0123456789abcdef.js` or `…_bg.wasm`:
/// `xtask/bundle` writes all 16 digits, other bundlers leave out leading zeros.
fn is_hashed(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let digits = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    stem.split(['-', '_']).any(|part| (12..=16).contains(&part.len()) && digits(part))
}

/// The media type by the file's extension. Text is UTF-8.
fn content_type(name: &str) -> HeaderValue {
    let media_type = mime_guess::from_path(name).first_raw().unwrap_or("application/octet-stream");
    if media_type.starts_with("text/") {
        HeaderValue::try_from(format!("{media_type}; charset=utf-8")).unwrap_or(HeaderValue::from_static("text/plain"))
    } else {
        HeaderValue::from_static(media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_folder() {
        assert_eq!(relative("/a/b%20c.js"), Some(PathBuf::from("a/b c.js")));
        for bad in
            ["/../x", "/a/../../x", "/%2e%2e/x", "//etc/passwd", "/.git/config", "/a%00", "/a%5cb", "/%ff", "/", "x"]
        {
            assert_eq!(relative(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_with_a_hash_are_recognized() {
        assert!(is_hashed("potluck-ui-0123456789abcdef.js"));
        assert!(is_hashed("potluck-ui-0123456789abcdef_bg.wasm"));
        assert!(is_hashed("door-767c836298e6fe4.css"));
        for other in ["index.html", "worker_loader.js", "style-0123.css", "potluck-ui_bg.wasm"] {
            assert!(!is_hashed(other), "{other}");
        }
    }

    #[test]
    fn every_kind_of_file_of_a_page_has_its_type() {
        for (name, media_type) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.wasm", "application/wasm"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.webp", "image/webp"),
            ("a.ico", "image/x-icon"),
            ("a.woff2", "font/woff2"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), media_type, "{name}");
        }
    }
}
