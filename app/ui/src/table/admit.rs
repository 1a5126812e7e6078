//! Devices that ask for admission.

use leptos::prelude::*;
use potluck_panel::{DeviceKind, MemberStatus, MemberView, PeerId};
use potluck_text::texts;

use crate::{
    common::{Icon, device_symbol},
    state::store,
    text::kind_name,
};

/// A device that asks.
#[derive(Clone, PartialEq)]
struct Request {
    peer: PeerId,
    name: String,
    kind: DeviceKind,
    /// Of the session between it and this device, while there is one.
    words: Option<String>,
}

/// "Pixel (phone) wants to join" with the three words of its session, for the host.
#[component]
pub fn Admissions() -> impl IntoView {
    let store = store();
    let asking = Memo::new(move |_| {
        store.room.status.with(|status| {
            let host = status.role.coordinator;
            let asks = |member: &&MemberView| host && member.status == MemberStatus::Asking;
            let request = |member: &MemberView| {
                let words = status.words_of(member.peer).map(str::to_owned);
                Request { peer: member.peer, name: member.name.clone(), kind: member.kind, words }
            };
            status.peers.iter().filter(asks).map(request).collect::<Vec<_>>()
        })
    });
    let row = move |Request { peer, name, kind, words }: Request| {
        let answer = move |allow| store.admit(peer, allow);
        let words = words.map(|words| {
            let [before, behind] = texts().request.its_words();
            view! { <small class="hint">{before}<strong class="words">{words}</strong>{behind}</small> }
        });
        view! {
            <div class="card asking">
                <Icon symbol=device_symbol(kind) />
                <p>
                    <strong>{name}</strong>" "{texts().request.wants(kind_name(kind))}
                    {words}
                </p>
                <div class="row">
                    <button type="button" class="button button-main" on:click=move |_| answer(true)>{texts().request.allow()}</button>
                    <button type="button" class="button" on:click=move |_| answer(false)>{texts().request.not_now()}</button>
                </div>
            </div>
        }
    };
    view! {
        <div aria-live="polite">
            <For each=move || asking.get() key=|request| (request.peer, request.words.clone()) children=row />
        </div>
    }
}
