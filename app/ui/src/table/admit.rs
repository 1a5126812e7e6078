//! Devices that ask for admission.

use leptos::prelude::*;
use potluck_panel::{DeviceKind, MemberStatus, MemberView, PeerId};

use crate::{
    common::{Icon, device_symbol},
    state::store,
};

/// "A phone wants to help" with Allow, for the host.
#[component]
pub fn Admissions() -> impl IntoView {
    let store = store();
    let asking = Memo::new(move |_| {
        store.room.status.with(|status| {
            let host = status.role.coordinator;
            let known = store.session.with(|session| session.admitted.clone());
            let asks =
                |member: &&MemberView| host && member.status == MemberStatus::Asking && !known.contains(&member.peer);
            status
                .peers
                .iter()
                .filter(asks)
                .map(|member| (member.peer, member.name.clone(), member.kind))
                .collect::<Vec<_>>()
        })
    });
    let row = move |(peer, name, kind): (PeerId, String, DeviceKind)| {
        let answer = move |allow| store.admit(peer, allow);
        view! {
            <div class="card asking">
                <Icon symbol=device_symbol(kind) />
                <p><strong>{name}</strong>" wants to join"</p>
                <div class="row">
                    <button type="button" class="button button-main" on:click=move |_| answer(true)>"Allow"</button>
                    <button type="button" class="button" on:click=move |_| answer(false)>"Not now"</button>
                </div>
            </div>
        }
    };
    view! {
        <div aria-live="polite">
            <For each=move || asking.get() key=|(peer, ..)| *peer children=row />
        </div>
    }
}
