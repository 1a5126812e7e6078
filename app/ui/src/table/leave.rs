//! What becomes of the room when its host leaves it.

use leptos::prelude::*;
use potluck_panel::MemberStatus;
use potluck_text::texts;

use crate::{
    common::{Dialog, deputy_name},
    state::{DialogKind, store},
};

/// The dialog behind the host's "Leave the room".
#[component]
pub fn Leave() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Leave title=texts().leave.title()>
            <Choice />
        </Dialog>
    }
}

#[component]
fn Choice() -> impl IntoView {
    let store = store();
    let texts = &texts().leave;
    let guests = move || {
        store.room.status.with(|status| {
            status
                .peers
                .iter()
                .filter(|member| !status.is_self(member) && member.status != MemberStatus::Asking)
                .count()
        })
    };
    let for_now = move || {
        let deputy = store.room.status.with(deputy_name);
        deputy.map_or_else(|| texts.for_now().to_owned(), |name| potluck_text::texts().deputy.goes_on(&name))
    };
    let close_words = move || {
        let has_deputy = store.room.status.with(|status| status.deputy.is_some());
        if has_deputy { potluck_text::texts().deputy.leave() } else { texts.close() }
    };
    let end = move |_| {
        store.screen.dialog.set(None);
        store.leave();
    };
    let close = move |_| {
        store.screen.dialog.set(None);
        store.close_room();
    };
    view! {
        <div class="dialog-body">
            <p>{move || texts.what(guests())}</p>
            <section class="leave-choice">
                <button type="button" class="button button-main" on:click=close>{close_words}</button>
                <p class="hint">{for_now}</p>
            </section>
            <section class="leave-choice">
                <button type="button" class="button" on:click=end>{texts.end()}</button>
                <p class="hint">{texts.for_good()}</p>
            </section>
            <button type="button" class="button button-quiet" on:click=move |_| store.screen.dialog.set(None)>{texts.stay()}</button>
        </div>
    }
}
