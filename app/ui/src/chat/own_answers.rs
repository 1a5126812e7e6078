//! How the open conversation is answered: the button in its header, what differs from the page's settings, and the drawer.

use leptos::prelude::*;
use potluck_text::texts;

use super::saved_answers::SavedAnswersFields;
use crate::{
    common::{Dialog, Icon, Symbol},
    settings::{AnswerFields, AnswersOf},
    state::{DialogKind, Difference, Store, store},
};

/// The drawer with the open conversation's settings.
#[component]
pub fn OwnAnswers() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::OwnAnswers title=texts().own_answers.title() drawer=true>
            <Fields />
        </Dialog>
    }
}

#[component]
fn Fields() -> impl IntoView {
    let store = store();
    let differs = Memo::new(move |_| difference(store).is_some());
    view! {
        <section class="settings-part" aria-label=texts().own_answers.title()>
            <p class="hint">{texts().own_answers.hint()}</p>
            <SavedAnswersFields />
            <AnswerFields of=AnswersOf::OpenConversation />
            <button type="button" class="button" disabled=move || !differs.get() on:click=move |_| store.keep_own_answers(None)>
                {texts().own_answers.use_usual()}
            </button>
        </section>
    }
}

/// Opens the drawer.
#[component]
pub fn OwnAnswersButton() -> impl IntoView {
    let store = store();
    view! {
        <button
            type="button"
            class="button button-icon"
            aria-label=texts().own_answers.title()
            title=texts().own_answers.title()
            on:click=move |_| store.screen.dialog.set(Some(DialogKind::OwnAnswers))
        >
            <Icon symbol=Symbol::Dial />
        </button>
    }
}

/// Says in what the open conversation differs, and leads to the drawer.
#[component]
pub fn OwnAnswersMark() -> impl IntoView {
    let store = store();
    let differs = Memo::new(move |_| difference(store));
    let words = move |difference: Difference| match difference {
        Difference::Instructions => texts().own_answers.instructions_differ(),
        Difference::Sampling => texts().own_answers.sampling_differs(),
        Difference::Both => texts().own_answers.both_differ(),
    };
    let mark = move |difference: Difference| {
        view! {
            <p class="own-answers">
                <button type="button" class="button button-quiet button-small" on:click=move |_| store.screen.dialog.set(Some(DialogKind::OwnAnswers))>
                    {words(difference)}
                </button>
            </p>
        }
    };
    move || differs.get().map(mark)
}

fn difference(store: Store) -> Option<Difference> {
    store.settings.with(|settings| store.chats.open.with(|open| open.difference(&settings.answers)))
}
