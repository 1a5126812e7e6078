//! Devices that ask to come in.

use leptos::prelude::*;
use potluck_panel::{Member, MemberState};

use crate::{
    common::{Icon, device_symbol},
    state::store,
};

/// "A phone wants to help" with Allow, for the host.
#[component]
pub fn Admissions() -> impl IntoView {
    let store = store();
    let asking = Memo::new(move |_| {
        store.status.with(|status| {
            let host = status.role.coordinator;
            let known = store.session.with(|session| session.admitted.clone());
            let asks = |member: &&Member| host && member.state == MemberState::Asking && !known.contains(&member.peer);
            status
                .peers
                .iter()
                .filter(asks)
                .map(|member| (member.peer.clone(), member.name.clone(), member.kind))
                .collect::<Vec<_>>()
        })
    });
    let row = move |(peer, name, kind): (String, String, potluck_panel::DeviceKind)| {
        let peer = StoredValue::new(peer);
        let answer = move |allow| peer.with_value(|peer| store.admit(peer, allow));
        view! {
            <div class="card asking">
                <Icon symbol=device_symbol(kind) />
                <p><strong>{name}</strong>" wants to come in"</p>
                <div class="row">
                    <button type="button" class="button button-main" on:click=move |_| answer(true)>"Allow"</button>
                    <button type="button" class="button" on:click=move |_| answer(false)>"Not now"</button>
                </div>
            </div>
        }
    };
    view! {
        <div aria-live="polite">
            <For each=move || asking.get() key=|(peer, ..)| peer.clone() children=row />
        </div>
    }
}
