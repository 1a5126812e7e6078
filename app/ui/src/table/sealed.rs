//! The padlock of the room, and the truth behind it.

use leptos::prelude::*;
use potluck_panel::{PeerId, Status};

use crate::{
    common::{Dialog, Icon, Symbol, WhoSeesWhat},
    state::{DialogKind, store},
};

/// Opens the dialog about what is sealed.
#[component]
pub fn Padlock() -> impl IntoView {
    let store = store();
    view! {
        <button
            type="button"
            class="button button-icon"
            aria-label="What is sealed, and who can see what"
            title="What is sealed, and who can see what"
            on:click=move |_| store.screen.dialog.set(Some(DialogKind::Privacy))
        >
            <Icon symbol=Symbol::Lock />
        </button>
    }
}

/// What is sealed, between whom, and who sees what nevertheless.
#[component]
pub fn Sealed() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Privacy title="Sealed between devices">
            <Inside />
        </Dialog>
    }
}

#[component]
fn Inside() -> impl IntoView {
    let store = store();
    let checked = Memo::new(move |_| store.room.status.with(checked));
    let own = Memo::new(move |_| store.room.status.with(|status| status.words.clone()));
    view! {
        <p>
            "Every message of this room is sealed for the one device it is meant for, and each device has proved its key. The relay passes messages on and cannot read or change them."
        </p>
        <section class="given" aria-label="Keys">
            <h3>"Keys that this device has checked"</h3>
            <p class="hint">
                "Three words stand for a device's key. Compare them with the other screen: the same words mean the same key."
            </p>
            <dl class="numbers">
                <dt>"This device"</dt>
                <dd class="words">{own}</dd>
                <For each=move || checked.get() key=Clone::clone children=|(_, name, words): (PeerId, String, String)| view! {
                    <dt>{name}</dt>
                    <dd class="words">{words}</dd>
                } />
            </dl>
        </section>
        <section class="given" aria-label="Who can see what">
            <h3>"Who can see what"</h3>
            <WhoSeesWhat />
        </section>
    }
}

/// Name and words of the others whose keys this device has checked.
fn checked(status: &Status) -> Vec<(PeerId, String, String)> {
    let others = status.peers.iter().filter(|member| status.peer != Some(member.peer));
    let words = |peer: PeerId| status.words_of(peer).map(str::to_owned);
    others.filter_map(|member| Some((member.peer, member.name.clone(), words(member.peer)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::{member, of_tab, peer};

    #[test]
    fn only_keys_that_this_device_has_checked_are_shown() {
        let members_words = vec![(peer("b"), "maple otter tulip".to_owned())];
        let peers = vec![member("a", true), member("b", false), member("c", false)];
        let status = Status { peers, members_words, ..of_tab("a") };
        assert_eq!(checked(&status), [(peer("b"), "b".to_owned(), "maple otter tulip".to_owned())]);
    }
}
