//! The padlock of the room, and the truth behind it.

use leptos::prelude::*;
use potluck_panel::{MemberView, PeerId, Status};
use potluck_text::texts;

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
            aria-label=texts().sealed.button()
            title=texts().sealed.button()
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
        <Dialog kind=DialogKind::Privacy title=texts().sealed.title()>
            <Inside />
        </Dialog>
    }
}

#[component]
fn Inside() -> impl IntoView {
    let store = store();
    let sessions = Memo::new(move |_| store.room.status.with(sessions));
    view! {
        <p>
            {texts().sealed.what()}
        </p>
        <section class="given" aria-label=texts().sealed.sessions()>
            <h3>{texts().sealed.sessions_heading()}</h3>
            <p class="hint">
                {texts().sealed.words()}
            </p>
            <dl class="numbers">
                <For each=move || sessions.get() key=Clone::clone children=|session: Session| view! {
                    <dt>{session.name}</dt>
                    <dd class="words">{session.words}</dd>
                } />
            </dl>
        </section>
        <section class="given" aria-label=texts().privacy.heading()>
            <h3>{texts().privacy.heading()}</h3>
            <WhoSeesWhat />
        </section>
    }
}

/// A session between this device and a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Session {
    peer: PeerId,
    name: String,
    words: String,
}

fn sessions(status: &Status) -> Vec<Session> {
    let others = status.peers.iter().filter(|member| status.peer != Some(member.peer));
    let session = |member: &MemberView| {
        let words = status.words_of(member.peer)?.to_owned();
        Some(Session { peer: member.peer, name: member.name.clone(), words })
    };
    others.filter_map(session).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::{member, of_tab, peer};

    #[test]
    fn members_with_a_session_are_shown_with_its_words() {
        let words = vec![(peer("b"), "maple otter tulip".to_owned())];
        let peers = vec![member("a", true), member("b", false), member("c", false)];
        let status = Status { peers, words, ..of_tab("a") };
        let b = Session { peer: peer("b"), name: "b".to_owned(), words: "maple otter tulip".to_owned() };
        assert_eq!(sessions(&status), [b]);
    }
}
