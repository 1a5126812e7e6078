//! What the browser stores: models and pieces with their sizes.

use leptos::prelude::*;
use potluck_panel::{StoredModel, ToNode};

use crate::{
    browser,
    common::{Bar, Icon, Symbol},
    state::{StorageReport, store},
    text::bytes,
};

/// The section about storage.
#[component]
pub fn StorageList() -> impl IntoView {
    let store = store();
    store.send(ToNode::ListStorage);
    view! {
        <section class="settings-part" aria-label="Storage">
            <h3>"Storage"</h3>
            {move || store.storage.get().map_or_else(
                || view! { <p class="hint">"Checking what is stored here"</p> }.into_any(),
                |report| view! { <Report report /> }.into_any(),
            )}
        </section>
    }
}

#[component]
fn Report(report: StorageReport) -> impl IntoView {
    let sum = format!("{} of the {} that the browser allows", bytes(report.used), bytes(report.quota));
    let evict = if report.persistent {
        "The browser keeps this data until you delete it."
    } else {
        "The browser may delete this data when space runs low."
    };
    let empty = report.models.is_empty().then(|| view! { <p class="hint">"No model is stored here yet."</p> });
    view! {
        <Bar label="Storage in use" done=report.used total=report.quota meter=true />
        <p class="hint">{sum}". "{evict}</p>
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
        format!("{}, complete", bytes(model.bytes))
    } else {
        format!("{} of {}", bytes(model.bytes), bytes(model.total))
    };
    let label = format!("Delete {}", model.name);
    let id = StoredValue::new(model.model);
    let question =
        format!("Delete {} ({size}) from this browser? It is loaded again when it is next used.", model.name);
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
