//! Reads and lays out texts written by others as the page does, but without drawing: for `fuzz/page`. Not part of the page.

use std::hint::black_box;

use potluck_panel::{MemberView, RequestId, RoomReport, Status};
use serde_json::json;

use crate::{
    chat::{
        highlight::highlighted_bytes,
        markdown::{addresses::is_web, parse, plain_text},
        spoken::Spoken,
        too_long::TooLong,
    },
    host::{catalog::entry::Catalog, choice::is_gguf_address},
    route::Route,
    state::{Conversation, History, Settings},
    table::{
        failure, fixtures,
        geometry::{short, token_path},
        summary::{room_text, summary},
        svg::Seating,
        token_path::{bottleneck, path_steps, slowest},
        why_not_yet,
    },
    text::{held_by, read_bytes},
};

/// Tokens of context in a room.
const CONTEXT: u32 = 4_096;
/// Letters that fit under a seat.
const SHORT: usize = 14;

/// The text of an answer, which a model, a host or the last stage wrote.
pub fn answer(text: &str) {
    let blocks = parse(text);
    let plain = plain_text(&blocks);
    for language in ["python", "rust", "html", "json", "css", "diff"] {
        black_box(highlighted_bytes(language, text));
    }
    let mut spoken = Spoken::default();
    let half = plain.floor_char_boundary(plain.len() / 2);
    black_box(spoken.next(plain[..half].to_owned(), false));
    black_box(spoken.next(plain, true));
}

/// A name of a device or a model.
pub fn name(text: &str) {
    let mut status = room();
    status.peers.iter_mut().for_each(|member| member.name = text.to_owned());
    black_box(short(text, SHORT));
    lay_out(&status);
}

/// A question, and the title that a conversation gets from it; or a title, and what a person pasted.
pub fn title(text: &str) {
    let mut conversation = Conversation::new("id".to_owned());
    conversation.ask(text, RequestId(1), "model");
    black_box(conversation.heading());
    black_box(TooLong::check(text, Some(CONTEXT)).map(|long| long.sentence()));
    black_box(read_bytes(text));
}

/// Reads a snapshot of a room as JSON; true if it is one.
pub fn room_view(text: &str) -> bool {
    let status = serde_json::from_str::<Status>(text);
    if let Ok(status) = &status {
        lay_out(status);
    }
    status.is_ok()
}

/// The catalogue, settings or a conversation that was stored, as JSON. Whether it is a catalogue.
pub fn catalogue(text: &str) -> bool {
    black_box(Settings::read(text));
    let _ = black_box(serde_json::from_str::<Conversation>(text));
    let Ok(catalogue) = serde_json::from_str::<Catalog>(text) else { return false };
    for entry in &catalogue.models {
        black_box((entry.facts(), entry.matches("chat small"), entry.active_bytes(), entry.kv_cache_per_position()));
        black_box(is_gguf_address(&entry.address));
    }
    true
}

/// A link that somebody gave: to a room, or to a file.
///
/// # Panics
/// A room's link does not read back.
pub fn link(text: &str) {
    if let Some(address) = Route::parse_link(text) {
        // The path has no key.
        let key = address.key.as_ref().map(|key| format!("#{key}")).unwrap_or_default();
        assert_eq!(Route::parse_link(&(address.path() + &key)), Some(address), "a room's link reads back");
    }
    let (path, fragment) = text.split_once('#').unwrap_or((text, ""));
    black_box(Route::parse(path, fragment));
    black_box((is_gguf_address(text), is_web(text)));
}

/// A snapshot to start from, as JSON.
#[must_use]
pub fn example_of_room() -> String {
    json!(room()).to_string()
}

/// A catalogue to start from: the one that comes with the page.
#[must_use]
pub fn example_of_catalogue() -> &'static str {
    include_str!("../../../public/catalog.json")
}

/// Three devices with a plan.
fn room() -> Status {
    let names = ["a", "b", "c"];
    let mut plan = fixtures::plan_of(&names);
    plan.hops = vec![fixtures::hop("a", "b", 1.0), fixtures::hop("b", "c", 2.0)];
    let peers = names.map(|name| MemberView { adapter: "adapter".to_owned(), ..fixtures::member(name, name == "a") });
    let room =
        RoomReport { id: "k3v9abcd".to_owned(), key: None, link: String::new(), visible: true, chat_only: false };
    Status { room: Some(room), plan: Some(plan), peers: peers.to_vec(), tokens: 1, ..fixtures::of_tab("b") }
}

/// Everything that the page derives from a snapshot.
fn lay_out(status: &Status) {
    black_box((summary(status), room_text(status), why_not_yet(status), failure(status), slowest(status)));
    black_box(bottleneck(&path_steps(status)));
    let seating = Seating::of(status);
    black_box(token_path(&seating.stops(status)));
    if let Some(plan) = &status.plan {
        for member in &status.peers {
            black_box(held_by(member.peer, plan, status.model.as_ref()));
            black_box(short(&member.name, SHORT));
        }
    }
    let mut history = History::default();
    history.observe(&Status { room: status.room.clone(), ..Status::default() }, 0.0);
    for now in [100.0, 1e3, 1e15] {
        history.observe(status, now);
        history
            .observe(&Status { peers: status.peers.iter().skip(1).cloned().collect(), ..status.clone() }, now + 50.0);
    }
    black_box(history.timeline.to_narrow_picture(""));
    black_box(history.timeline.to_svg(""));
}
