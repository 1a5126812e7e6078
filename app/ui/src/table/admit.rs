//! Devices that ask for admission.

use leptos::prelude::*;
use potluck_panel::{DeviceKind, MemberStatus, MemberView, PeerId};

use crate::{
    common::{Icon, device_symbol},
    state::store,
    text::kind_name,
};

/// "Pixel (phone) wants to join" with the three words of its key, for the host.
#[component]
pub fn Admissions() -> impl IntoView {
    let store = store();
    let asking = Memo::new(move |_| {
        store.room.status.with(|status| {
            let host = status.role.coordinator;
            let asks = |member: &&MemberView| host && member.status == MemberStatus::Asking;
            let request = |member: &MemberView| {
                let words = status.words_of(member.peer).unwrap_or_default().to_owned();
                (member.peer, member.name.clone(), member.kind, words)
            };
            status.peers.iter().filter(asks).map(request).collect::<Vec<_>>()
        })
    });
    let row = move |(peer, name, kind, words): (PeerId, String, DeviceKind, String)| {
        let answer = move |allow| store.admit(peer, allow);
        view! {
            <div class="card asking">
                <Icon symbol=device_symbol(kind) />
                <p>
                    <strong>{name}</strong>{format!(" ({}) wants to join", kind_name(kind))}
                    <small class="hint">"Its three words: "<strong class="words">{words}</strong>". The other device shows the same ones."</small>
                </p>
                <div class="row">
                    <button type="button" class="button button-main" on:click=move |_| answer(true)>"Allow"</button>
                    <button type="button" class="button" on:click=move |_| answer(false)>"Not now"</button>
                </div>
            </div>
        }
    };
    view! {
        <div aria-live="polite">
            <For each=move || asking.get() key=|(peer, _, _, words)| (*peer, words.clone()) children=row />
        </div>
    }
}
