//! The endpoints.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get};
use axum::{Extension, Json, Router};
use potluck_relay_api::http::RoomList;
use potluck_relay_api::path;

use crate::access;
use crate::error::ApiError;
use crate::error_page::html_for_browsers;
use crate::headers::{self, isolate};
use crate::metrics::{Format, Gauges};
use crate::models::serve;
use crate::net::hosts::{host_of, is_of_other_site, names_loopback};
use crate::net::{Client, Transport, help, proxy, redirect};
use crate::operate;
use crate::page;
use crate::quotas::{Exhausted, Resource};
use crate::rooms::{Arrival, Phase, serve_socket};
use crate::server::Shared;

/// Bytes that a member's connection reads at once: a frame of 8 KiB with its headers fits, and thousands of idle members
/// cost little.
const READ_BYTES: usize = 9 * 1024;

/// Bytes that are written at once: a record of TLS. The buffer keeps the size that it once needed, for as long as a member stays.
const WRITE_BYTES: usize = 16 * 1024;

/// Bytes that may wait beside the longest frame until the member reads on. Of pongs beyond that only the newest is kept.
const PONG_BYTES: usize = 256 * 1024;

/// All endpoints.
pub fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(path::HEALTH, get(async || "ok\n"))
        .route(path::READY, get(ready))
        .route(path::METRICS, get(metrics))
        .route(path::ADDRESSES, get(addresses))
        .route(path::CERTIFICATE, get(help::page))
        .route(path::AUTHORITY_DER, get(help::der))
        .route(path::AUTHORITY_PEM, get(help::pem))
        .route(path::ACCESS, get(access::show).post(access::enter))
        .route(path::OPERATOR, get(operate::report))
        .route(&format!("{}{}/{{id}}", path::OPERATOR, path::ROOMS), delete(operate::end_room))
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

/// The one answer of a connection over a limit.
pub fn refusal(exhausted: Exhausted) -> Router {
    let refuse = move || async move {
        match exhausted {
            Exhausted::Address => ApiError::TooManyConnections,
            Exhausted::Relay => ApiError::NoConnectionFree,
        }
    };
    Router::new().fallback(refuse).layer(from_fn(html_for_browsers)).layer(map_response(isolate))
}

/// Lets a request pass, whatever its route, if it names this relay and does not come from a page of another site. Behind a trusted
/// proxy it finds out who sent the request.
async fn admit(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let host = host_of(request.uri(), request.headers()).ok_or(ApiError::NoHost)?;
    let forwarded = shared.proxies.client(request.headers());
    // Every connection brings one.
    let local = request.extensions().get::<Client>().ok_or(ApiError::NoHost)?.local;
    if !shared.hosts.allow(&host, local) {
        return Err(ApiError::ForeignHost(host.host().to_owned()));
    }
    // Such a page may not use this relay on behalf of its visitor: neither read nor open connections.
    if is_of_other_site(request.headers(), &host) {
        return Err(ApiError::ForeignOrigin);
    }
    let client = request.extensions_mut().get_mut::<Client>().ok_or(ApiError::NoHost)?;
    if client.is_proxied && !shared.proxies.send_header {
        client.address = forwarded.unwrap_or(client.address);
    }
    let transport = client.transport;
    if transport == Transport::Open && !is_open_to_all(request.uri().path()) {
        return Ok(redirect::to_https(&host, request.uri()));
    }
    let mut response = next.run(request).await;
    // A machine's own name also has other services, on other ports.
    if shared.reach.keeper().is_none() {
        headers::keep_to_https(&mut response, &host, transport);
    }
    Ok(response)
}

/// Whether other devices get this without TLS. Those who watch a relay take a redirect for an answer.
fn is_open_to_all(path: &str) -> bool {
    help::serves(path) || [path::HEALTH, path::READY].contains(&path)
}

/// HAProxy lets connections go on, but sends no new ones, where it is answered with this (`http-check disable-on-404`); any other
/// failure means to it that the relay is gone.
const GENTLY: &str = "draining=404";

async fn ready(State(shared): State<Arc<Shared>>, uri: Uri) -> Result<Response, ApiError> {
    if shared.rooms.phase() == Phase::Open {
        return Ok(no_store("ready\n"));
    }
    let mut response = ApiError::Draining.into_response();
    if uri.query() == Some(GENTLY) {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

/// Whether somebody on the relay's own machine asks.
///
/// # Errors
/// The request names no host.
pub fn is_on_this_machine(client: &Client, uri: &Uri, headers: &HeaderMap) -> Result<bool, ApiError> {
    // An undeclared proxy on this machine forwards requests of others. It adds a header, or at least names the relay as they do.
    let host = host_of(uri, headers).ok_or(ApiError::NoHost)?;
    let is_direct = !proxy::is_passed_on(headers) && names_loopback(&host);
    Ok(client.address.is_loopback() && (client.is_proxied || is_direct))
}

async fn metrics(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !shared.public_metrics && !is_on_this_machine(&client, &uri, &headers)? {
        return Err(ApiError::PrivateMetrics);
    }
    let gauges = Gauges {
        is_draining: shared.rooms.phase() != Phase::Open,
        rooms: shared.rooms.count(),
        members: shared.quotas.used(Resource::Member),
        connections: shared.quotas.used(Resource::Connection),
        queued_bytes: shared.quotas.memory(),
        model_bytes: shared.library.bytes_served(),
    };
    let format = Format::accepted(&headers);
    Ok(([(header::CONTENT_TYPE, format.kind())], shared.metrics.render(&gauges, format)).into_response())
}

async fn addresses(State(shared): State<Arc<Shared>>) -> Response {
    no_store(Json(shared.reach.addresses()))
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
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let host = host_of(&uri, &headers).ok_or(ApiError::NoHost)?;
    let upgrade = upgrade.map_err(|_| ApiError::NotWebSocket)?;
    let share = shared.quotas.share(client.address);
    let creation = shared.access.may_create(&client, &headers);
    let arrival =
        Arrival { creation, share, activity: client.activity, lease: client.lease, room, host: host.to_string() };
    let max_bytes = shared.limits.max_message_bytes();
    let upgrade = upgrade
        .max_message_size(max_bytes)
        .max_frame_size(max_bytes)
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES);
    let upgrade = upgrade.max_write_buffer_size(shared.limits.frame_bytes.saturating_add(PONG_BYTES));
    Ok(upgrade.on_upgrade(move |socket| serve_socket(socket, arrival, shared.rooms.clone())))
}
