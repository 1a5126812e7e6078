//! What the operator sees and may do while the relay runs: rooms without their content, and the end of one.

mod page;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;

use crate::error::ApiError;
use crate::error_page::accepts_html;
use crate::net::Client;
use crate::quotas::Resource;
use crate::rooms::id::RoomId;
use crate::rooms::{Phase, RoomReport};
use crate::routes::is_on_this_machine;
use crate::server::Shared;

/// The relay as its operator sees it.
#[derive(Debug, Serialize)]
struct Report {
    /// It is about to stop.
    draining: bool,
    /// Connections of any kind.
    connections: usize,
    /// Members in all rooms, also those that have not entered yet.
    members: usize,
    /// Bytes of messages that wait.
    queued_bytes: usize,
    /// How often a limit was hit since the start.
    limits_hit: LimitsHit,
    /// Those with most bytes first.
    rooms: Vec<RoomReport>,
}

#[derive(Debug, Serialize)]
struct LimitsHit {
    connections_refused: u64,
    members_refused: u64,
    downloads_refused: u64,
    senders_slowed: u64,
    evicted_slow: u64,
    evicted_window: u64,
    evicted_memory: u64,
}

/// Only the relay's own machine, or whoever has the operator's token.
fn check(shared: &Shared, client: &Client, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    if shared.access.is_operator(headers) || is_on_this_machine(client, uri, headers)? {
        return Ok(());
    }
    Err(ApiError::NotOperator)
}

/// `GET /operator`: JSON, or a page for browsers.
///
/// # Errors
/// Somebody else asks.
pub async fn report(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let is_browser = accepts_html(&headers);
    if let Err(error) = check(&shared, &client, &uri, &headers) {
        // A browser can sign in, where there is a token.
        let asks = is_browser && shared.access.knows_operator();
        return asks.then(page::sign_in).ok_or(error);
    }
    let metrics = &shared.metrics;
    let report = Report {
        draining: shared.rooms.phase() != Phase::Open,
        connections: shared.quotas.used(Resource::Connection),
        members: shared.quotas.used(Resource::Member),
        queued_bytes: shared.quotas.memory(),
        limits_hit: LimitsHit {
            connections_refused: metrics.connections_refused.get(),
            members_refused: metrics.members_refused.get(),
            downloads_refused: metrics.requests_limited.get(),
            senders_slowed: metrics.senders_limited.get(),
            evicted_slow: metrics.evicted_slow.get(),
            evicted_window: metrics.evicted_window.get(),
            evicted_memory: metrics.evicted_memory.get(),
        },
        rooms: shared.rooms.report(Instant::now()),
    };
    let mut response = if is_browser { page::show(&report) } else { Json(report).into_response() };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// `DELETE /operator/rooms/ID`: ends a room. Its id stays closed until the relay starts again.
///
/// # Errors
/// Somebody else asks, or there is no such room.
pub async fn end_room(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Path(room): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    check(&shared, &client, &uri, &headers)?;
    let ended = RoomId::parse(&room).is_some_and(|id| shared.rooms.end(&id));
    if ended { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::NoSuchRoom) }
}
