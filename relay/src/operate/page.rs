//! What the operator sees, as a page. It has no scripts and loads itself again.

use std::fmt::Write;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Report;

const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
    <meta http-equiv=\"refresh\" content=\"10\"><title>Potluck: operator</title><style>:root { color-scheme: light dark; font: 16px/1.5 \
    system-ui, sans-serif; } body { margin: 0 auto; max-width: 48rem; padding: 16px; } table { border-collapse: collapse; width: 100%; } \
    th, td { padding: 4px 8px 4px 0; text-align: left; } td + td, th + th { text-align: right; white-space: nowrap; } \
    tr { border-bottom: 1px solid #8886; } td:first-child { overflow-wrap: anywhere; }</style></head><body><h1>This relay</h1>";

/// Leads to where the token is entered.
pub fn sign_in() -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, HeaderValue::from_static("./access"))]).into_response()
}

/// The page.
pub fn show(report: &Report) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (headers, html(report)).into_response()
}

/// No text in it is anybody's: ids have letters and digits only.
fn html(report: &Report) -> String {
    let hit = &report.limits_hit;
    let mut page = HEAD.to_owned();
    if report.draining {
        page += "<p role=\"status\"><strong>It is about to stop.</strong></p>";
    }
    page += "<table><tbody>";
    for (what, number) in [
        ("Connections", report.connections.to_string()),
        ("Members", report.members.to_string()),
        ("Messages that wait", bytes(report.queued_bytes as u64)),
        ("Connections refused", hit.connections_refused.to_string()),
        ("Members refused", hit.members_refused.to_string()),
        ("Downloads refused", hit.downloads_refused.to_string()),
        ("Senders slowed down", hit.senders_slowed.to_string()),
        ("Members put out", (hit.evicted_slow + hit.evicted_window + hit.evicted_memory).to_string()),
    ] {
        let _ = write!(page, "<tr><td>{what}</td><td>{number}</td></tr>");
    }
    let _ = write!(page, "</tbody></table><h2>Rooms: {}</h2>", report.rooms.len());
    if !report.rooms.is_empty() {
        page += "<table><thead><tr><th>Room</th><th>Members</th><th>Minutes</th><th>Sent</th></tr></thead><tbody>";
        for room in &report.rooms {
            let (id, members, minutes, sent) = (&room.id, room.members, room.age_seconds / 60, bytes(room.bytes));
            let _ = write!(page, "<tr><td>{id}</td><td>{members}</td><td>{minutes}</td><td>{sent}</td></tr>");
        }
        page += "</tbody></table>";
    }
    page + "</body></html>"
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
