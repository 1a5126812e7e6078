//! Putting it together: the routes, starting, stopping.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde::{Deserialize, Serialize};
use tokio::time::{interval, sleep, timeout};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::error::{ApiError, StartError};
use crate::limits::Limits;
use crate::metrics::{Gauges, Metrics};
use crate::models::{HashCache, Library, serve};
use crate::net::tls::Identity;
use crate::net::{Peer, Port};
use crate::page::{self, Page};
use crate::readable::readable;
use crate::rooms::{Arrival, NotOpened, Rooms, serve_socket};

/// Longest body of `POST /rooms`.
const ROOM_BODY_BYTES: usize = 4096;
/// Brotli's and gzip's effort: the page is compressed as it is sent, so it must not take longer than sending it.
const EFFORT: CompressionLevel = CompressionLevel::Precise(5);

/// How a relay is to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on: loopback, or all.
    pub ip: Ipv4Addr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The folder with the built page.
    pub page: Option<PathBuf>,
    /// Folders with GGUF files; those of the first come first.
    pub models: Vec<PathBuf>,
    /// The folder where hashes are kept.
    pub cache: PathBuf,
    /// The certificate; `None` speaks plain HTTP only.
    pub identity: Option<Identity>,
    /// This machine's addresses on the LAN, which the page is told.
    pub addresses: Vec<Ipv4Addr>,
    /// Its limits.
    pub limits: Limits,
}

/// What all routes share.
pub struct Shared {
    /// The limits.
    pub limits: Arc<Limits>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// The models.
    pub library: Arc<Library>,
    /// The rooms.
    pub rooms: Arc<Rooms>,
    /// The built page.
    pub page: Page,
    addresses: Addresses,
}

/// The answer of `GET /addresses`.
#[derive(Clone, Debug, Serialize)]
pub struct Addresses {
    /// Where other devices find this relay; empty if they cannot.
    pub urls: Vec<String>,
    /// Whether only this machine can reach it.
    pub local_only: bool,
    /// Whether other devices will warn of the certificate.
    pub self_signed: bool,
}

/// A relay that listens and does not serve yet.
pub struct Relay {
    port: Port,
    shared: Arc<Shared>,
}

impl Relay {
    /// Reads the certificate, looks for models and opens the port.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let limits = Arc::new(config.limits);
        let metrics = Arc::new(Metrics::default());
        let tls = config.identity.as_ref().map(|identity| identity.acceptor(&config.addresses)).transpose()?;
        let port = Port::open(config.ip, config.port, tls, limits.handshake).await?;
        let number = port.address().port();
        let addresses = Addresses {
            urls: match config.identity {
                Some(_) => config.addresses.iter().map(|ip| format!("https://{ip}:{number}")).collect(),
                None => Vec::new(),
            },
            local_only: config.ip.is_loopback(),
            self_signed: config.identity.as_ref().is_some_and(Identity::is_self_signed),
        };
        let shared = Shared {
            library: Library::open(config.models, HashCache::new(config.cache))?,
            rooms: Arc::new(Rooms::new(limits.clone(), metrics.clone())),
            page: Page::new(config.page),
            limits,
            metrics,
            addresses,
        };
        Ok(Self { port, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// What it tells the page of its addresses.
    pub fn addresses(&self) -> &Addresses {
        &self.shared.addresses
    }

    /// Serves until `stop` resolves, then tells the rooms and gives connections a moment to finish.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let app = routes(self.shared.clone()).into_make_service_with_connect_info::<Peer>();
        let server = axum::serve(self.port, app).with_graceful_shutdown(async move {
            stop.await;
            shared.rooms.shut_down();
            // The receiver is gone only if serving has ended already.
            let _ = stopping.send(());
        });
        let tidy = async {
            let mut ticks = interval(self.shared.limits.room_idle / 16);
            loop {
                ticks.tick().await;
                self.shared.rooms.expire(Instant::now());
            }
        };
        let grace = self.shared.limits.shutdown_grace;
        let late = async {
            match stopped.await {
                Ok(()) => sleep(grace).await,
                Err(_) => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            result = server => result,
            () = late => Ok(()),
            () = tidy => Ok(()),
        };
        // Members' connections are not the server's any more; the last of them still get their word of goodbye.
        let empty = async {
            while self.shared.rooms.counts().1 > 0 {
                sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(grace, empty).await;
        result
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    let page =
        Router::new().fallback(page::serve).layer(CompressionLayer::new().quality(EFFORT)).with_state(shared.clone());
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .route("/addresses", get(addresses))
        .route("/models", get(serve::list))
        .route("/models/{name}", get(serve::file))
        .route("/rooms", get(list_rooms).post(open_room))
        .route("/rooms/{id}", any(join_room))
        .layer(DefaultBodyLimit::max(ROOM_BODY_BYTES))
        .with_state(shared)
        .fallback_service(page)
        .layer(from_fn(readable))
        .layer(map_response(isolate))
}

/// The headers that every answer carries: they make the page cross-origin isolated, which gives it exact clocks and shared
/// memory, and keep other sites from embedding what is served here.
async fn isolate(mut response: Response) -> Response {
    const HEADERS: [(HeaderName, &str); 5] = [
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let (rooms, members, queued_bytes) = shared.rooms.counts();
    let gauges = Gauges { rooms, members, queued_bytes, model_bytes: shared.library.served() };
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render(&gauges)).into_response()
}

async fn addresses(State(shared): State<Arc<Shared>>) -> Response {
    fresh(Json(&shared.addresses))
}

/// An answer that holds only for the moment.
fn fresh(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response()
}

#[derive(Serialize)]
struct RoomList {
    rooms: Vec<crate::rooms::RoomLine>,
}

async fn list_rooms(State(shared): State<Arc<Shared>>) -> Response {
    fresh(Json(RoomList { rooms: shared.rooms.list(Instant::now()) }))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NewRoom {
    title: String,
    visible: bool,
}

#[derive(Serialize)]
struct OpenedRoom {
    id: String,
    owner: String,
}

async fn open_room(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    check_origin(&headers)?;
    let new: NewRoom = match &body[..] {
        [] => NewRoom::default(),
        body => serde_json::from_slice(body).map_err(|_| ApiError::BadRoom)?,
    };
    match shared.rooms.open(peer.address.ip(), &new.title, new.visible, Instant::now()) {
        Ok(secret) => {
            let opened = OpenedRoom { id: secret.room().to_string(), owner: secret.reveal().to_owned() };
            Ok((StatusCode::CREATED, fresh(Json(opened))).into_response())
        }
        Err(NotOpened::TooMany(wait)) => {
            shared.metrics.requests_limited.inc();
            Err(ApiError::TooManyRooms(wait))
        }
        Err(NotOpened::Full) => Err(ApiError::RelayFull),
    }
}

#[derive(Deserialize)]
struct Join {
    create: Option<String>,
}

async fn join_room(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(room): Path<String>,
    Query(join): Query<Join>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::NoConnection)?;
    check_origin(&headers)?;
    let arrival = Arrival {
        address: peer.address.ip(),
        activity: peer.activity,
        room,
        create: join.create.is_some_and(|create| create == "1"),
    };
    let longest = shared.limits.readable_bytes();
    let upgrade = upgrade.max_message_size(longest).max_frame_size(longest);
    Ok(upgrade.on_upgrade(move |socket| serve_socket(socket, arrival, shared.rooms.clone())))
}

/// A page of another site may not open rooms or connections in the name of who looks at it. Browsers always send `Origin`
/// with these; programs need not.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_ascii_lowercase);
    let origin = text(origin).and_then(|origin| Some(origin.split_once("://")?.1.to_owned()));
    let host = headers.get(header::HOST).and_then(text);
    if origin.is_some() && origin == host { Ok(()) } else { Err(ApiError::ForeignOrigin) }
}
