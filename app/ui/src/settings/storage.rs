//! What the browser stores: models and pieces with their sizes.

use leptos::prelude::*;
use potluck_panel::{StoredModel, ToNode};
use potluck_text::texts;

use crate::{
    browser,
    common::{Bar, Icon, Symbol},
    state::{StorageReport, store},
};

/// The section about storage.
#[component]
pub fn StorageList() -> impl IntoView {
    let store = store();
    store.send(ToNode::ListStorage);
    view! {
        <section class="settings-part" aria-label=texts().storage.heading()>
            <h3>{texts().storage.heading()}</h3>
            {move || store.storage.get().map_or_else(
                || view! { <p class="hint">{texts().storage.checking()}</p> }.into_any(),
                |report| view! { <Report report /> }.into_any(),
            )}
        </section>
    }
}

#[component]
fn Report(report: StorageReport) -> impl IntoView {
    let sum = texts().storage.used(report.used, report.quota);
    let evict = if report.persistent { texts().storage.persistent() } else { texts().storage.evictable() };
    let empty = report.models.is_empty().then(|| view! { <p class="hint">{texts().storage.none()}</p> });
    view! {
        <Bar label=texts().storage.bar() done=report.used total=report.quota meter=true />
        <p class="hint">{sum}" "{evict}</p>
        {empty}
        <ul class="stored">
            {report.models.into_iter().map(|model| view! { <Row model /> }).collect_view()}
        </ul>
    }
}

#[component]
fn Row(model: StoredModel) -> impl IntoView {
    let store = store();
    let size = if model.bytes >= model.total {
        texts().storage.complete(model.bytes)
    } else {
        texts().storage.part(model.bytes, model.total)
    };
    let label = texts().storage.delete(&model.name);
    let id = StoredValue::new(model.model);
    let question = texts().storage.confirm_delete(&model.name, &size);
    let delete = move |_| {
        if !browser::confirm(&question) {
            return;
        }
        store.send(ToNode::DeleteStored { model: id.get_value() });
        store.send(ToNode::ListStorage);
    };
    view! {
        <li class="stored-row">
            <span class="card-words"><strong>{model.name}</strong><span class="hint">{size}</span></span>
            <button type="button" class="button button-icon" aria-label=label on:click=delete>
                <Icon symbol=Symbol::Bin />
            </button>
        </li>
    }
}
