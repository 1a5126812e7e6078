//! The endpoints.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Json, Router};
use potluck_relay_api::http::RoomList;
use potluck_relay_api::path;

use crate::error::ApiError;
use crate::error_page::html_for_browsers;
use crate::metrics::Gauges;
use crate::models::serve;
use crate::net::hosts::{host_of, is_same_origin};
use crate::net::{Client, proxy};
use crate::page;
use crate::quotas::Resource;
use crate::rooms::{Arrival, serve_socket};
use crate::server::Shared;

/// Bytes that a member's connection reads at once: a frame of 8 KiB with its headers fits, and thousands of idle members
/// cost little.
const READ_BYTES: usize = 9 * 1024;

/// Bytes that may wait beside the longest frame until the member reads on. Of pongs beyond that only the newest is kept.
const PONG_BYTES: usize = 256 * 1024;

/// All endpoints.
pub fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(path::HEALTH, get(async || "ok\n"))
        .route(path::METRICS, get(metrics))
        .route(path::ADDRESSES, get(addresses))
        .route(path::MODELS, get(serve::list))
        .route(&format!("{}/{{name}}", path::MODELS), get(serve::file))
        .route(path::ROOMS, get(list_rooms))
        .route(&format!("{}/{{id}}", path::ROOMS), any(join_room))
        .fallback(page::serve)
        .layer(from_fn_with_state(shared.clone(), admit))
        .layer(from_fn(html_for_browsers))
        .layer(map_response(isolate))
        .with_state(shared)
}

/// Lets requests pass that name this relay, and finds out behind a trusted proxy who sent them.
async fn admit(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let host = host_of(request.uri(), request.headers()).ok_or(ApiError::NoHost)?;
    let forwarded = shared.proxies.client(request.headers());
    // Every connection brings one.
    let client = request.extensions_mut().get_mut::<Client>().ok_or(ApiError::NoHost)?;
    if !shared.hosts.allow(&host, client.local) {
        return Err(ApiError::ForeignHost(host.host().to_owned()));
    }
    if client.is_proxied && !shared.proxies.send_header {
        client.address = forwarded.unwrap_or(client.address);
    }
    Ok(next.run(request).await)
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

async fn metrics(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A proxy on this machine that nobody declared passes on requests of others.
    let is_local = client.address.is_loopback() && (client.is_proxied || !headers.contains_key(proxy::FORWARDED_FOR));
    if !is_local && !shared.public_metrics {
        return Err(ApiError::PrivateMetrics);
    }
    let gauges = Gauges {
        rooms: shared.rooms.count(),
        members: shared.quotas.used(Resource::Member),
        connections: shared.quotas.used(Resource::Connection),
        queued_bytes: shared.quotas.memory(),
        model_bytes: shared.library.bytes_served(),
    };
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], shared.metrics.render(&gauges)).into_response())
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

async fn join_room(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Path(room): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    // A page of another site may not open connections in the name of its visitor.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let Some(host) = host.filter(|host| is_same_origin(&headers, host)) else {
        return Err(ApiError::ForeignOrigin);
    };
    let upgrade = upgrade.map_err(|_| ApiError::NotWebSocket)?;
    let share = shared.quotas.share(client.address);
    let arrival = Arrival { share, activity: client.activity, lease: client.lease, room, host: host.to_string() };
    let max_bytes = shared.limits.max_message_bytes();
    let upgrade = upgrade.max_message_size(max_bytes).max_frame_size(max_bytes).read_buffer_size(READ_BYTES);
    let upgrade = upgrade.max_write_buffer_size(shared.limits.frame_bytes.saturating_add(PONG_BYTES));
    Ok(upgrade.on_upgrade(move |socket| serve_socket(socket, arrival, shared.rooms.clone())))
}
