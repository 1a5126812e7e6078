//! Shows the catalogue: first what this room can hold.

use leptos::prelude::*;
use potluck_text::texts;

use super::{
    entry::Task,
    load,
    offer::{self, Offer, offers},
};
use crate::{
    host::{choice::Choice, verdict::Case, verdict_view::VerdictView},
    state::store,
};

/// Offers that are shown at first.
const FIRST: usize = 6;

/// The element id of the filter, which takes the focus when another model is to be chosen.
pub const FILTER: &str = "known-filter";

const fn label(task: Task) -> &'static str {
    match task {
        Task::Chat => texts().catalog.chat(),
        Task::Code => texts().catalog.code(),
        Task::Reasoning => texts().catalog.reasoning(),
        Task::Languages => texts().catalog.languages(),
    }
}

/// The list with its filter.
#[component]
pub fn WellKnown(choice: Choice) -> impl IntoView {
    let came = RwSignal::new(false);
    leptos::task::spawn_local(async move {
        if let Some(entries) = load::entries().await {
            _ = choice.listed.try_set(entries.to_vec());
        }
        _ = came.try_set(true);
    });
    let words = texts().catalog.loading();
    view! {
        <section class="known" aria-labelledby="known-heading">
            <h3 id="known-heading">{texts().catalog.heading()}</h3>
            {move || if choice.listed.with(|entries| !entries.is_empty()) {
                view! { <Offers choice /> }.into_any()
            } else if came.get() {
                view! { <p class="hint">{texts().catalog.unreadable()}</p> }.into_any()
            } else {
                view! { <p class="hint">{words}</p> }.into_any()
            }}
        </section>
    }
}

#[component]
fn Offers(choice: Choice) -> impl IntoView {
    let store = store();
    let filter = RwSignal::new(String::new());
    let task = RwSignal::new(None::<Task>);
    let all = RwSignal::new(false);
    let bandwidth = Memo::new(move |_| store.room.status.with(|status| status.device.bandwidth));
    let room = move || Case { context: choice.context.get().max(64), ..choice.case(0, None, bandwidth.get()) };
    let listed = Memo::new(move |_| {
        let room = room();
        let case = |entry: &_| offer::case(entry, room);
        choice.listed.with(|entries| filter.with(|filter| offers(entries, filter, task.get(), case)))
    });
    let shown = move || {
        let chosen = choice.link.get_untracked();
        let is_shown = |(index, offer): &(usize, Offer)| all.get() || *index < FIRST || offer.entry.address == chosen;
        let offers = listed.get().into_iter().enumerate().filter(is_shown);
        offers.map(|(_, offer)| view! { <OfferCard offer choice /> }).collect_view()
    };
    let found = move || {
        listed.with(|offers| match offers.len() {
            0 => texts().catalog.none().to_owned(),
            all => {
                let fitting = offers.iter().filter(|offer| offer.verdict.fits()).count();
                texts().catalog.found(fitting, all)
            }
        })
    };
    let is_longer = move || !all.get() && listed.with(Vec::len) > FIRST;
    view! {
        <Filter filter task />
        <p class="hint" aria-live="polite">{found}</p>
        <div class="cards" role="radiogroup" aria-labelledby="known-heading">{shown}</div>
        <Show when=is_longer>
            <button type="button" class="button button-quiet" on:click=move |_| all.set(true)>
                {move || texts().catalog.show_all(listed.with(Vec::len))}
            </button>
        </Show>
    }
}

#[component]
fn Filter(filter: RwSignal<String>, task: RwSignal<Option<Task>>) -> impl IntoView {
    let choose = move |event| {
        let value = event_target_value(&event);
        task.set(Task::ALL.into_iter().find(|task| task.value() == value));
    };
    let option = |task: Task| view! { <option value=task.value()>{label(task)}</option> };
    view! {
        <div class="known-filter">
            <label class="labelled">
                <span>{texts().catalog.filter()}</span>
                <input
                    class="field"
                    type="search"
                    id=FILTER
                    autocomplete="off"
                    placeholder=texts().catalog.filter_hint()
                    prop:value=move || filter.get()
                    on:input=move |event| filter.set(event_target_value(&event))
                />
            </label>
            <label class="labelled">
                <span>{texts().catalog.good_for()}</span>
                <select class="field" on:change=choose>
                    <option value="">{texts().catalog.everything()}</option>
                    {Task::ALL.map(option).collect_view()}
                </select>
            </label>
        </div>
    }
}

#[component]
fn OfferCard(offer: Offer, choice: Choice) -> impl IntoView {
    let store = store();
    let (line, fits, facts) = (offer.line(), offer.verdict.fits(), offer.entry.facts());
    let entry = StoredValue::new(offer.entry);
    let (name, good_for) = entry.with_value(|entry| (entry.name.clone(), entry.good_for.clone()));
    let chosen = Memo::new(move |_| choice.link.with(|link| entry.with_value(|entry| *link == entry.address)));
    let choose = move |_| choice.set_link(entry.with_value(|entry| entry.address.clone()));
    let case = move || {
        let bandwidth = store.room.status.with(|status| status.device.bandwidth);
        entry.with_value(|entry| offer::case(entry, choice.case(entry.bytes, None, bandwidth)))
    };
    view! {
        <label class="card model-card" class:card-chosen=move || chosen.get()>
            <input type="radio" name="known-model" prop:checked=move || chosen.get() on:change=choose />
            <span class="card-words">
                <strong>{name}</strong>
                <span>{good_for}</span>
                <span class="facts">{facts}</span>
                <Show
                    when=move || chosen.get()
                    fallback=move || view! { <span class="known-line" class:known-fits=fits>{line.clone()}</span> }
                >
                    <VerdictView case=Signal::derive(case) choice />
                    <span class="hint">{texts().catalog.tested()}</span>
                </Show>
            </span>
        </label>
    }
}
