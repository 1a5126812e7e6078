//! The table as a list, for screen readers, narrow screens and users who prefer text.

use leptos::prelude::*;
use potluck_panel::PeerId;
use potluck_text::texts;

use super::{
    seat_row::SeatRow,
    token_path::{StepKind, slowest},
};
use crate::state::store;

/// Everyone at the table.
#[component]
pub fn SeatList(
    /// The seat whose details are open.
    selected: RwSignal<Option<PeerId>>,
) -> impl IntoView {
    let store = store();
    let peers = Memo::new(move |_| {
        store.room.status.with(|status| status.peers.iter().map(|member| member.peer).collect::<Vec<_>>())
    });
    let slow = Memo::new(move |_| match store.room.status.with(slowest) {
        Some(StepKind::Stage { peer, .. }) => Some(peer),
        _ => None,
    });
    view! {
        <ul class="seat-list" aria-label=texts().seat.list()>
            <For each=move || peers.get() key=Clone::clone let:peer>
                <SeatRow peer selected slow />
            </For>
        </ul>
    }
}
