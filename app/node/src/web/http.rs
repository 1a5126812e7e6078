//! HTTP requests of a browser's worker.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use futures::future::{Either, LocalBoxFuture, select};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, Request, RequestCache, RequestInit, Response};

use super::js;
use super::streams::Reader;
use super::time::WorkerClock;
use crate::platform::{Clock, Content, HttpReply, HttpRequest, Method, NetError, Traffic};

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
        let (head, response, _abort) = self.head(request).await?;
        let limit = request.limit(head.status);
        let body = match head.length {
            Some(length) if length > limit => Vec::new(),
            length => self.body(&js::get(&response, "body"), length.unwrap_or(0), limit, &request.arrived).await?,
        };
        Ok(HttpReply { body, ..head })
    }

    /// Makes a request; the content of its reply is read as it is asked for.
    ///
    /// # Errors
    /// The server cannot be reached or fell silent.
    pub async fn open(self: Rc<Self>, request: &HttpRequest) -> Result<(HttpReply, Arriving), HttpError> {
        let (head, response, abort) = self.head(request).await?;
        let stream = js::get(&response, "body");
        let has_content = matches!(head.status, 200 | 206) && !stream.is_null();
        let reader = if has_content { Some(Reader::of_any(&stream)?) } else { None };
        let content =
            Arriving { url: request.url.clone(), http: self, reader, left: Vec::new(), given: 0, _abort: abort };
        Ok((head, content))
    }

    async fn head(&self, request: &HttpRequest) -> Result<(HttpReply, Response, Abort), HttpError> {
        let abort = Abort(AbortController::new()?);
        let sent = JsFuture::from(js::worker().fetch_with_request(&to_js(request, &abort.0)?));
        let response: Response = unless_silent(&self.arrived, async { Ok(sent.await?) }).await?.dyn_into()?;
        self.arrived.set(WorkerClock.now().0);
        let head = HttpReply::read(response.status(), |name| response.headers().get(name).ok()?);
        Ok((head, response, abort))
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

/// The content of a reply while it arrives. Some browsers hold it back until it is asked for.
pub struct Arriving {
    url: String,
    http: Rc<Http>,
    reader: Option<Reader>,
    /// A read that was given in part: some browsers choose its size themselves.
    left: Vec<u8>,
    given: usize,
    _abort: Abort,
}

impl Content for Arriving {
    fn next(&mut self, most: usize) -> LocalBoxFuture<'_, Result<Vec<u8>, NetError>> {
        Box::pin(async move {
            if self.given == self.left.len() {
                self.left.clear();
                self.given = 0;
                let Some(reader) = &mut self.reader else { return Ok(Vec::new()) };
                let (left, http) = (&mut self.left, &self.http);
                let read = async {
                    while left.is_empty() && reader.read_most(left, most).await? {}
                    Ok(())
                };
                unless_silent(&http.arrived, read)
                    .await
                    .map_err(|failure| NetError::unreachable(&self.url, failure))?;
                http.arrived.set(WorkerClock.now().0);
            }
            let end = self.left.len().min(self.given.saturating_add(most));
            let next = self.left[self.given..end].to_vec();
            self.given = end;
            Ok(next)
        })
    }
}

/// The browser's form of a request.
fn to_js(request: &HttpRequest, abort: &AbortController) -> Result<Request, JsValue> {
    let init = RequestInit::new();
    init.set_method(match request.method {
        Method::Get => "GET",
        Method::Post => "POST",
    });
    init.set_signal(Some(&abort.signal()));
    // Weights are stored in OPFS. A second copy in the browser's HTTP cache would only use quota.
    init.set_cache(RequestCache::NoStore);
    let headers = Headers::new()?;
    if let Some(range) = &request.range {
        headers.set("range", &format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))?;
    }
    if let Some(access) = &request.access {
        headers.set("authorization", &access.header())?;
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
