//! The HTTP server: a thread of its own, so that neither a slow program nor a large request holds up the node.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{oneshot, watch};

use crate::access::Access;
use crate::answer::Asking;
use crate::api::{Head, Shape, anthropic, chat, completions, models, responses, tokens};
use crate::body::{self, Bodies, MAX_BODY};
use crate::connections::{self, Limits};
use crate::error::ApiError;
use crate::question::{Delivery, Question};
use crate::room::{Order, RoomLine, RoomState, SLOTS};
use crate::route::{Api, Dialect, Route, Tokens};
use crate::stream;
use crate::text_side::TextSide;

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
    /// Listens at an address; port 0 takes a free one. With the model's text side it also tokenizes.
    ///
    /// # Errors
    /// The address is taken, or this machine does not have it.
    pub fn open(address: SocketAddr, access: Access, text_side: Option<TextSide>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, orders) = unbounded_channel();
        let (state, states) = watch::channel(RoomState::default());
        let (close, to_close) = oneshot::channel();
        let (is_closed, closed) = oneshot::channel::<()>();
        let line = RoomLine::new(sender, states);
        let shared = Shared { access, line, text_side, bodies: Bodies::default(), created: seconds() };
        let serve = move || {
            runtime
                .block_on(serve(listener, shared, to_close))
                .unwrap_or_else(|error| log::error!("the API for programs has stopped: {error}"));
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
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new().fallback(handle).with_state(Arc::new(shared));
    connections::serve(listener, router, Limits::default(), to_close).await;
    Ok(())
}

/// What all requests share.
struct Shared {
    access: Access,
    line: RoomLine,
    text_side: Option<TextSide>,
    bodies: Bodies,
    /// When it was opened, in seconds since 1970: models are given this date.
    created: u64,
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let dialect = Dialect::of(parts.uri.path(), &parts.headers);
    let (mut response, origin) = match shared.access.check_sender(&parts.uri, &parts.headers) {
        Err(error) => (error.respond(dialect), None),
        Ok(origin @ Some(_)) if parts.method == Method::OPTIONS => (preflight(&parts.headers), origin),
        Ok(origin) => {
            let replied = shared.respond(&parts, body).await;
            (replied.unwrap_or_else(|error| error.respond(dialect)), origin)
        }
    };
    let headers = response.headers_mut();
    // Browsers must not store a reply, or guess its type.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
    response
}

/// The reply to a browser's preflight request (CORS) for a page of an allowed site. Such a request has no key.
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
    async fn respond(&self, parts: &Parts, body: Body) -> Result<Response, ApiError> {
        let route = match self.route(parts) {
            Ok(route) => route,
            Err(error) => {
                body::skip(body).await;
                return Err(error);
            }
        };
        match route {
            Route::Health => self.health(&parts.headers),
            Route::Models => Ok(reply(&models::list(&self.line.state(), self.created))),
            Route::Model(name) => self.model(name),
            Route::Props => Ok(reply(&models::props(&self.line.state(), SLOTS))),
            Route::Metrics => Ok(self.metrics()),
            Route::Tokens(what) => self.tokens(what, self.read(&parts.headers, body).await?).await,
            Route::Count => self.count(anthropic::question(&self.read(&parts.headers, body).await?)?).await,
            Route::Ask(api) => {
                let (question, shapes) = asked(api, &self.read(&parts.headers, body).await?)?;
                self.answer(question, shapes).await
            }
        }
    }

    /// The route of a request that may take it.
    fn route<'a>(&self, parts: &'a Parts) -> Result<Route<'a>, ApiError> {
        let route = Route::of(parts.uri.path());
        // Programs that watch over others have no key.
        if route != Some(Route::Health) {
            self.access.check_key(&parts.headers)?;
        }
        let route = route.ok_or(ApiError::NoRoute)?;
        if route.takes(&parts.method) { Ok(route) } else { Err(ApiError::NoMethod(route.method())) }
    }

    /// The JSON of a body. A client that asks first whether it may send one that is too large is told at once.
    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if headers.contains_key(header::EXPECT) && length.is_some_and(|length| length > MAX_BODY as u64) {
            return Err(ApiError::TooLarge(MAX_BODY as u64));
        }
        self.bodies.json(body).await
    }

    /// The number of running answers is told only with the key: it shows when this machine's user is at work.
    fn health(&self, headers: &HeaderMap) -> Result<Response, ApiError> {
        if !self.line.state().is_up {
            return Err(ApiError::NotReady);
        }
        let mut health = json!({ "status": "ok" });
        if self.access.check_key(headers).is_ok() {
            let idle = self.line.idle_slots();
            health["slots_idle"] = json!(idle);
            health["slots_processing"] = json!(SLOTS - idle);
        }
        Ok(reply(&health))
    }

    fn model(&self, name: &str) -> Result<Response, ApiError> {
        let RoomState { model, context, .. } = self.line.state();
        let card = model.ok_or(ApiError::NotReady)?;
        if !models::is_meant(&card, name) {
            return Err(ApiError::NoModel(models::id(&card)));
        }
        Ok(reply(&models::entry(&card, context, self.created)))
    }

    fn metrics(&self) -> Response {
        let text = self.line.meter().text(SLOTS - self.line.idle_slots());
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
    }

    /// Texts and tokens, in a thread beside this one: a long text takes a while.
    async fn tokens(&self, what: Tokens, body: Value) -> Result<Response, ApiError> {
        let context = self.line.state().context;
        let side = self.text_side.clone().ok_or(ApiError::NotHere)?;
        let done = tokio::task::spawn_blocking(move || match what {
            Tokens::Tokenize => tokens::tokenize(&side, context, &body),
            Tokens::Detokenize => tokens::detokenize(&side, &body),
            Tokens::ApplyTemplate => tokens::apply_template(&side, &body),
        });
        let done = done.await.map_err(|error| ApiError::Failed(error.to_string()))?;
        Ok(reply(&done?))
    }

    /// The tokens of a conversation. Without the model's text side the room begins to answer, says it, and is stopped.
    async fn count(&self, question: Question) -> Result<Response, ApiError> {
        self.line.state().model_for(question.model.as_deref())?;
        let count = match &self.text_side {
            Some(side) => {
                let side = side.clone();
                let counted = tokio::task::spawn_blocking(move || side.rendered(&question.into_prompt()));
                counted.await.map_err(|error| ApiError::Failed(error.to_string()))??.len() as u32
            }
            None => {
                let mut asking = Asking::new(self.line.clone(), Question { max_tokens: Some(1), ..question }, 0, 0);
                asking.next().await?.prompt_tokens().await?
            }
        };
        Ok(reply(&json!({ "input_tokens": count })))
    }

    async fn answer(&self, question: Question, shapes: Vec<Box<dyn Shape>>) -> Result<Response, ApiError> {
        let model = self.line.state().model_for(question.model.as_deref())?;
        let prefix = shapes.first().map_or("", |shape| shape.prefix());
        let head = Head { id: format!("{prefix}{:016x}", random()?), created: seconds(), model };
        let delivery = question.delivery;
        let asking = Asking::new(self.line.clone(), question, random()?, random()?);
        match delivery {
            Delivery::Stream { .. } => stream::respond(asking, shapes, head).await,
            Delivery::Whole => {
                let answers = asking.all().await?;
                let shape = shapes.into_iter().next().ok_or_else(ApiError::ended)?;
                Ok(reply(&shape.all(&head, &answers)))
            }
        }
    }
}

/// The question in the body of a request, and how each of its answers is written.
fn asked(api: Api, body: &Value) -> Result<(Question, Vec<Box<dyn Shape>>), ApiError> {
    let question = match api {
        Api::Completions => completions::question(body)?,
        Api::Responses => responses::question(body)?,
        Api::Messages => anthropic::question(body)?,
        Api::Chat => chat::question(body)?,
    };
    let shape = |index: u8| -> Result<Box<dyn Shape>, ApiError> {
        Ok(match api {
            Api::Completions => Box::new(completions::Completion::of(&question, index)),
            Api::Responses => Box::new(responses::Responses::of(body)?),
            Api::Messages => Box::<anthropic::Messages>::default(),
            Api::Chat => Box::new(chat::Chat::of(&question, index)),
        })
    };
    let shapes = (0..question.answers.max(1)).map(shape).collect::<Result<_, _>>()?;
    Ok((question, shapes))
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
