//! The endpoints, starting and stopping.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use potluck_relay_api::http::{Addresses, OpenRoom, OpenedRoom, RoomList};
use potluck_relay_api::path;
use serde::Deserialize;
use tokio::time::{interval, sleep, timeout};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::error::{ApiError, StartError};
use crate::error_page::html_for_browsers;
use crate::limits::Limits;
use crate::metrics::{Gauges, Metrics};
use crate::models::{HashCache, Library, serve};
use crate::net::tls::Identity;
use crate::net::{Client, Port};
use crate::page::{self, Page};
use crate::rooms::{JoinRequest, OpenRoomError, Rooms, serve_socket};

/// Longest body of `POST /rooms`.
const MAX_BODY_BYTES: usize = 4096;
/// Compression level of Brotli and gzip: the page is compressed while it is sent, so this must not be the slower part.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(5);

/// How a relay is to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on: loopback, or all.
    pub ip: Ipv4Addr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The folder with the built page.
    pub page: Option<PathBuf>,
    /// Folders with GGUF files. If two files have the same name, the folder named first wins.
    pub models: Vec<PathBuf>,
    /// The folder where hashes are stored.
    pub cache: PathBuf,
    /// The certificate; `None` serves plain HTTP only.
    pub identity: Option<Identity>,
    /// This machine's addresses on the LAN, for the page and the certificate.
    pub addresses: Vec<Ipv4Addr>,
    /// The limits.
    pub limits: Limits,
}

/// What all endpoints share.
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

/// A relay that listens but does not serve yet.
pub struct Relay {
    port: Port,
    shared: Arc<Shared>,
}

impl Relay {
    /// Loads the certificate, scans for models and opens the port.
    ///
    /// # Errors
    /// The port or the certificate cannot be used, or a thread cannot be started.
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

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where this and other devices reach it.
    pub fn addresses(&self) -> &Addresses {
        &self.shared.addresses
    }

    /// Serves until `stop` resolves, then notifies the rooms and gives connections a moment to finish.
    ///
    /// # Errors
    /// Serving failed.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let app = routes(self.shared.clone()).into_make_service_with_connect_info::<Client>();
        let server = axum::serve(self.port, app).with_graceful_shutdown(async move {
            stop.await;
            shared.rooms.shut_down();
            // The receiver is gone only if serving has ended already.
            let _ = stopping.send(());
        });
        let expire_rooms = async {
            let mut ticks = interval(self.shared.limits.room_idle / 16);
            loop {
                ticks.tick().await;
                self.shared.rooms.expire(Instant::now());
            }
        };
        let grace = self.shared.limits.shutdown_grace;
        let overdue = async {
            match stopped.await {
                Ok(()) => sleep(grace).await,
                Err(_) => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            result = server => result,
            () = overdue => Ok(()),
            () = expire_rooms => Ok(()),
        };
        // The server does not wait for WebSockets: let the members get their shutdown message.
        let empty = async {
            while self.shared.rooms.counts().1 > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(grace, empty).await;
        result
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    let page = Router::new()
        .fallback(page::serve)
        .layer(CompressionLayer::new().quality(COMPRESSION))
        .with_state(shared.clone());
    Router::new()
        .route(path::HEALTH, get(async || "ok\n"))
        .route(path::METRICS, get(metrics))
        .route(path::ADDRESSES, get(addresses))
        .route(path::MODELS, get(serve::list))
        .route(&format!("{}/{{name}}", path::MODELS), get(serve::file))
        .route(path::ROOMS, get(list_rooms).post(open_room))
        .route(&format!("{}/{{id}}", path::ROOMS), any(join_room))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(shared)
        .fallback_service(page)
        .layer(from_fn(html_for_browsers))
        .layer(map_response(isolate))
}

/// Adds the headers of every answer: they make the page cross-origin isolated, which gives it precise clocks and shared
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
    let gauges = Gauges { rooms, members, queued_bytes, model_bytes: shared.library.bytes_served() };
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render(&gauges)).into_response()
}

async fn addresses(State(shared): State<Arc<Shared>>) -> Response {
    no_store(Json(&shared.addresses))
}

/// An answer that must not be cached.
fn no_store(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response()
}

async fn list_rooms(State(shared): State<Arc<Shared>>) -> Response {
    no_store(Json(RoomList { rooms: shared.rooms.list(Instant::now()) }))
}

async fn open_room(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(client): ConnectInfo<Client>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    check_origin(&headers)?;
    let new: OpenRoom = match &body[..] {
        [] => OpenRoom::default(),
        body => serde_json::from_slice(body).map_err(|_| ApiError::BadRoom)?,
    };
    match shared.rooms.open(client.address.ip(), &new.title, new.visible, Instant::now()) {
        Ok(secret) => {
            let opened = OpenedRoom { id: secret.room().to_string(), owner: secret.reveal().to_owned() };
            Ok((StatusCode::CREATED, no_store(Json(opened))).into_response())
        }
        Err(OpenRoomError::TooMany(wait)) => {
            shared.metrics.requests_limited.inc();
            Err(ApiError::TooManyRooms(wait))
        }
        Err(OpenRoomError::Full) => Err(ApiError::RelayFull),
    }
}

#[derive(Deserialize)]
struct JoinQuery {
    create: Option<String>,
}

async fn join_room(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(client): ConnectInfo<Client>,
    Path(room): Path<String>,
    Query(query): Query<JoinQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::NotWebSocket)?;
    check_origin(&headers)?;
    let request = JoinRequest {
        address: client.address.ip(),
        activity: client.activity,
        room,
        create: query.create.is_some_and(|create| create == "1"),
    };
    let max_bytes = shared.limits.max_message_bytes();
    let upgrade = upgrade.max_message_size(max_bytes).max_frame_size(max_bytes);
    Ok(upgrade.on_upgrade(move |socket| serve_socket(socket, request, shared.rooms.clone())))
}

/// A page of another site may not open rooms or connections in the name of its visitor. Browsers always send `Origin` with
/// these requests; programs need not.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = Uri::try_from(origin.as_bytes()).ok().and_then(|origin| origin.into_parts().authority);
    let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    if origin.is_some() && origin == host { Ok(()) } else { Err(ApiError::ForeignOrigin) }
}
