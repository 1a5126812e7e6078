//! Instructions and sampling under a name: chosen for the open conversation, saved from it, forgotten.

use leptos::prelude::*;
use potluck_text::texts;

use crate::state::{AnswerSettings, Store, store};

/// How the open conversation is answered.
fn open_answers(store: Store) -> AnswerSettings {
    store.settings.with(|settings| store.chats.open.with(|open| open.answer_settings(&settings.answers).clone()))
}

/// Chooses, saves and forgets.
#[component]
pub fn SavedAnswersFields() -> impl IntoView {
    let store = store();
    let names = Memo::new(move |_| {
        store.settings.with(|settings| settings.saved.names().map(str::to_owned).collect::<Vec<_>>())
    });
    let chosen = Memo::new(move |_| {
        let answers = open_answers(store);
        store.settings.with(|settings| settings.saved.name_of(&answers).map(str::to_owned))
    });
    let name = RwSignal::new(String::new());
    let choose = move |event| {
        let name = event_target_value(&event);
        let saved = store.settings.with_untracked(|settings| settings.saved.get(&name).cloned());
        if let Some(saved) = saved {
            store.change_own_answers(|own| *own = saved);
        }
    };
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let answers = untrack(|| open_answers(store));
        let mut is_kept = false;
        store.set(|settings| is_kept = settings.saved.keep(&name.get_untracked(), answers));
        if is_kept {
            name.set(String::new());
        }
    };
    let forget = move |_| {
        if let Some(chosen) = chosen.get_untracked() {
            store.set(|settings| settings.saved.forget(&chosen));
        }
    };
    let option = move |name: String| {
        let is_chosen = {
            let name = name.clone();
            move || chosen.with(|chosen| chosen.as_deref() == Some(name.as_str()))
        };
        view! { <option value=name.clone() prop:selected=is_chosen>{name.clone()}</option> }
    };
    view! {
        <Show when=move || names.with(|names| !names.is_empty())>
            <div class="row">
                <label class="labelled saved-answers">
                    <span>{texts().own_answers.saved()}</span>
                    <select class="field" on:change=choose>
                        <option value="" prop:selected=move || chosen.with(Option::is_none)>{texts().own_answers.none_chosen()}</option>
                        {move || names.get().into_iter().map(option).collect_view()}
                    </select>
                </label>
                <button type="button" class="button" disabled=move || chosen.with(Option::is_none) on:click=forget>
                    {texts().own_answers.forget()}
                </button>
            </div>
        </Show>
        <form class="row" on:submit=save>
            <label class="labelled saved-answers">
                <span>{texts().own_answers.save_as()}</span>
                <input
                    class="field"
                    type="text"
                    maxlength="60"
                    autocomplete="off"
                    prop:value=name
                    on:input=move |event| name.set(event_target_value(&event))
                />
            </label>
            <button type="submit" class="button" disabled=move || name.with(|name| name.trim().is_empty())>
                {texts().own_answers.save()}
            </button>
        </form>
    }
}
