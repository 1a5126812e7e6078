//! The HTTP server: a thread of its own, so that neither a slow program nor a large request holds up the node.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{oneshot, watch};

use crate::access::Access;
use crate::answer::Answer;
use crate::api::{Head, Shape, chat, completions, models};
use crate::body::{self, MAX_BODY};
use crate::error::ApiError;
use crate::question::{Delivery, Question};
use crate::room::{Order, RoomLine, RoomState, SLOTS};
use crate::stream;

/// How long answers may take to end when the server does.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running server.
pub struct Server {
    address: SocketAddr,
    orders: UnboundedReceiver<Order>,
    state: watch::Sender<RoomState>,
    close: oneshot::Sender<()>,
    closed: oneshot::Receiver<()>,
}

impl Server {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is taken, or this machine does not have it.
    pub fn open(address: SocketAddr, access: Access) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, orders) = unbounded_channel();
        let (state, states) = watch::channel(RoomState::default());
        let (close, to_close) = oneshot::channel();
        let (is_closed, closed) = oneshot::channel::<()>();
        let shared = Shared { access, line: RoomLine::new(sender, states), created: seconds() };
        let serve = move || {
            runtime
                .block_on(serve(listener, shared, to_close))
                .unwrap_or_else(|error| log::error!("no more programs: {error}"));
            runtime.shutdown_background();
            drop(is_closed);
        };
        std::thread::Builder::new().name("serve".to_owned()).spawn(serve)?;
        Ok(Self { address, orders, state, close, closed })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it wants of the room next. May be dropped while it waits.
    pub async fn order(&mut self) -> Option<Order> {
        self.orders.recv().await
    }

    /// Tells it how the room is.
    pub fn tell(&self, state: RoomState) {
        self.state.send_if_modified(|known| {
            let is_news = *known != state;
            *known = state;
            is_news
        });
    }

    /// Ends it. Programs that wait for an answer are told so, if they read it soon.
    pub async fn close(self) {
        let Self { orders, close, closed, .. } = self;
        drop(orders);
        // Fails if it has ended by itself.
        _ = close.send(());
        _ = tokio::time::timeout(FAREWELL, closed).await;
    }
}

async fn serve(listener: TcpListener, shared: Shared, to_close: oneshot::Receiver<()>) -> io::Result<()> {
    // Each token is a small packet, and must not wait until the one before it is acknowledged.
    let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|connection| _ = connection.set_nodelay(true));
    let router = Router::new().fallback(handle).with_state(Arc::new(shared));
    axum::serve(listener, router).with_graceful_shutdown(async move { _ = to_close.await }).await
}

/// What all requests share.
struct Shared {
    access: Access,
    line: RoomLine,
    /// Seconds since 1970.
    created: u64,
}

/// What an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Health,
    Models,
    Model(&'a str),
    Props,
    Chat,
    Completions,
}

impl<'a> Route<'a> {
    /// People type the base URL with and without `/v1` and a slash at its end, and redirects would turn a POST into a GET.
    fn of(path: &'a str) -> Option<Self> {
        let path = path.trim_matches('/');
        let path = path.strip_prefix("v1/").unwrap_or(path).trim_matches('/');
        match path {
            "health" => Some(Self::Health),
            "models" => Some(Self::Models),
            "props" => Some(Self::Props),
            "chat/completions" => Some(Self::Chat),
            "completions" => Some(Self::Completions),
            _ => path.strip_prefix("models/").map(Self::Model),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Chat | Self::Completions => "POST",
            Self::Health | Self::Models | Self::Model(_) | Self::Props => "GET",
        }
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let origin = match shared.access.check_sender(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(error) => return error.into_response(),
    };
    let mut response = match &origin {
        Some(_) if request.method() == Method::OPTIONS => preflight(request.headers()),
        _ => shared.respond(request).await.unwrap_or_else(ApiError::into_response),
    };
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// What a browser asks before a page of an allowed site may ask. It has no key yet.
fn preflight(headers: &HeaderMap) -> Response {
    const WANTED: &str = "access-control-request-private-network";
    const GRANTED: &str = "access-control-allow-private-network";
    let mut response = StatusCode::NO_CONTENT.into_response();
    let allowed = response.headers_mut();
    allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    if let Some(wanted) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    if headers.contains_key(WANTED) {
        allowed.insert(GRANTED, HeaderValue::from_static("true"));
    }
    response
}

impl Shared {
    async fn respond(&self, request: Request) -> Result<Response, ApiError> {
        let (parts, body) = request.into_parts();
        let route = Route::of(parts.uri.path());
        // Programs that watch over others have no key.
        if route != Some(Route::Health) {
            self.access.check_key(&parts.headers)?;
        }
        let route = route.ok_or(ApiError::NoRoute)?;
        let is_right =
            parts.method.as_str() == route.method() || (parts.method == Method::HEAD && route.method() == "GET");
        if !is_right {
            return Err(ApiError::NoMethod(route.method()));
        }
        match route {
            Route::Health => self.health(),
            Route::Models => Ok(reply(&models::list(&self.line.state(), self.created))),
            Route::Model(name) => self.model(name),
            Route::Props => Ok(reply(&models::props(&self.line.state(), SLOTS))),
            Route::Chat => self.answer(chat::question(&read(&parts.headers, body).await?)?, &chat::Chat).await,
            Route::Completions => {
                let question = completions::question(&read(&parts.headers, body).await?)?;
                self.answer(question, &completions::Completion).await
            }
        }
    }

    fn health(&self) -> Result<Response, ApiError> {
        if !self.line.state().is_up {
            return Err(ApiError::NotReady);
        }
        let idle = self.line.idle_slots();
        Ok(reply(&json!({ "status": "ok", "slots_idle": idle, "slots_processing": SLOTS - idle })))
    }

    fn model(&self, name: &str) -> Result<Response, ApiError> {
        let RoomState { model, context, .. } = self.line.state();
        let card = model.ok_or(ApiError::NotReady)?;
        if !models::is_meant(&card, name) {
            return Err(ApiError::NoModel(models::id(&card)));
        }
        Ok(reply(&models::entry(&card, context, self.created)))
    }

    async fn answer(&self, question: Question, shape: &'static dyn Shape) -> Result<Response, ApiError> {
        let RoomState { model, context, .. } = self.line.state();
        // A plan may be missing for a while: then the question waits. Without a model nobody knows for how long.
        let card = model.filter(|_| context > 0).ok_or(ApiError::NotReady)?;
        let model = models::id(&card);
        if question.model.as_ref().is_some_and(|name| !models::is_meant(&card, name)) {
            return Err(ApiError::NoModel(model));
        }
        let head = Head { id: format!("{}{:016x}", shape.prefix(), random()?), created: seconds(), model };
        let (line, seed, delivery) = (self.line.clone(), random()?, question.delivery);
        let asking = async move {
            let asked = line.ask(&question, seed).await?;
            Ok(Answer::new(asked, question.stops))
        };
        match delivery {
            Delivery::Stream { with_usage } => stream::respond(asking, shape, head, with_usage).await,
            Delivery::Whole => Ok(reply(&shape.whole(&head, &asking.await?.whole().await?))),
        }
    }
}

/// The JSON of a body. A client that asks first whether it may send one that is too large is told at once.
async fn read(headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if headers.contains_key(header::EXPECT) && length.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(ApiError::TooLarge(MAX_BODY as u64));
    }
    body::json(body).await
}

fn reply(json: &Value) -> Response {
    axum::Json(json).into_response()
}

/// Seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random() -> Result<u64, ApiError> {
    getrandom::u64().map_err(|error| ApiError::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_work_with_and_without_version_and_slash() {
        for path in ["/v1/chat/completions", "/chat/completions", "/v1/chat/completions/", "//v1//chat/completions"] {
            assert_eq!(Route::of(path), Some(Route::Chat), "{path}");
        }
        assert_eq!(Route::of("/models/"), Some(Route::Models));
        assert_eq!(Route::of("/v1/models/tiny"), Some(Route::Model("tiny")));
        assert_eq!(Route::of("/v1/health"), Some(Route::Health));
        for path in ["/", "/v1", "/v2/models", "/v1/responses", "/v1/chat", "/chat/completions/more"] {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }
}
