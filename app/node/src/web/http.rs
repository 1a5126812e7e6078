//! HTTP requests of a browser's worker.

use std::cell::Cell;
use std::pin::pin;

use futures::future::{Either, select};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, Request, RequestCache, RequestInit, Response};

use super::js;
use super::streams::Reader;
use super::time::WorkerClock;
use crate::platform::{Clock, HttpReply, HttpRequest, Method, Traffic, Version};

/// Milliseconds of silence after which a request has failed. A whole reply may take as long as the line needs.
const TIMEOUT: f64 = 20_000.0;
/// Maximum memory that a declared length may reserve.
const LONGEST_EXPECTED: u64 = 16 << 20;

/// Makes requests, and knows when the line was last alive.
#[derive(Default)]
pub struct Http {
    /// When anything of any reply arrived last. A browser opens few connections to a server, and while others load on a slow
    /// line a request can wait for one longer than [`TIMEOUT`]: that is no silence of the server.
    arrived: Cell<f64>,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Nothing arrived for [`TIMEOUT`].
    #[error("no answer in time")]
    Silent,
    /// What the browser says.
    #[error("{0}")]
    Browser(String),
}

impl From<JsValue> for HttpError {
    fn from(error: JsValue) -> Self {
        Self::Browser(js::error_text(&error))
    }
}

/// Ends its request when it is dropped: what nobody waits for any more must not go on using the line. A request that is done
/// does not notice.
struct Abort(AbortController);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Http {
    /// Makes a request and reads its reply, but nothing of one that is longer than [`HttpRequest::limit`]. The request ends when
    /// this is dropped.
    ///
    /// # Errors
    /// The server cannot be reached or fell silent, or the connection broke.
    pub async fn reply(&self, request: &HttpRequest) -> Result<HttpReply, HttpError> {
        let abort = Abort(AbortController::new()?);
        let sent = JsFuture::from(js::worker().fetch_with_request(&to_js(request, &abort.0)?));
        let response: Response = unless_silent(&self.arrived, async { Ok(sent.await?) }).await?.dyn_into()?;
        self.arrived.set(WorkerClock.now().0);
        let number = |name: &str| response.headers().get(name).ok()??.parse::<u64>().ok();
        let version = Version::read(|name| response.headers().get(name).ok()?);
        let (status, length, retry_after) = (response.status(), number("content-length"), number("retry-after"));
        let limit = request.limit(status);
        let body = match length {
            Some(length) if length > limit => Vec::new(),
            _ if request.method == Method::Head => Vec::new(),
            _ => self.body(&js::get(&response, "body"), length.unwrap_or(0), limit, &request.arrived).await?,
        };
        let retry_after = retry_after.and_then(|seconds| u32::try_from(seconds).ok());
        Ok(HttpReply { status, length, retry_after, version, body })
    }

    /// The content of a stream that probably has `expected` bytes, counted by `arrived`; nothing if it has more than `limit`.
    async fn body(&self, stream: &JsValue, expected: u64, limit: u64, arrived: &Traffic) -> Result<Vec<u8>, HttpError> {
        // Some replies have none.
        if stream.is_null() {
            return Ok(Vec::new());
        }
        let mut reader = Reader::of_any(stream)?;
        let mut bytes = Vec::with_capacity(expected.min(limit).min(LONGEST_EXPECTED) as usize);
        unless_silent(&self.arrived, async {
            let mut counted = 0;
            while reader.read(&mut bytes).await? {
                self.arrived.set(WorkerClock.now().0);
                arrived.add((bytes.len() - counted) as u64);
                counted = bytes.len();
                if bytes.len() as u64 > limit {
                    return Ok(Vec::new());
                }
            }
            Ok(bytes)
        })
        .await
    }
}

/// The browser's form of a request.
fn to_js(request: &HttpRequest, abort: &AbortController) -> Result<Request, JsValue> {
    let init = RequestInit::new();
    init.set_method(match request.method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
    });
    init.set_signal(Some(&abort.signal()));
    // Weights are stored in OPFS. A second copy in the browser's HTTP cache would only use quota.
    init.set_cache(RequestCache::NoStore);
    let headers = Headers::new()?;
    if let Some(range) = &request.range {
        headers.set("range", &format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))?;
    }
    if let Some(body) = &request.body {
        headers.set("content-type", "application/json")?;
        init.set_body(&body.into());
    }
    init.set_headers(&headers);
    Request::new_with_str_and_init(&request.url, &init)
}

/// Awaits what is on its way, unless nothing arrives for [`TIMEOUT`]; `arrived` is when something last did.
async fn unless_silent<T>(
    arrived: &Cell<f64>,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let began = WorkerClock.now().0;
    let silence = async {
        loop {
            let left = arrived.get().max(began) + TIMEOUT - WorkerClock.now().0;
            if left <= 0.0 {
                return;
            }
            WorkerClock.sleep(left).await;
        }
    };
    match select(pin!(work), pin!(silence)).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(HttpError::Silent),
    }
}
