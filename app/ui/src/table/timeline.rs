//! Tokens per second over time, with joins and leaves; can be viewed and saved.

use leptos::prelude::*;

use crate::{browser, state::store};

const TITLE: &str = "Tokens per second in this room";

/// The room over time, folded until the user opens it.
#[component]
pub fn TimelineCard() -> impl IntoView {
    let store = store();
    let open = RwSignal::new(false);
    // Draw only while it is open.
    let picture = move || open.get().then(|| store.room.history.with(|history| history.timeline.to_narrow_svg(TITLE)));
    let save_picture = move |_| {
        let svg = store.room.history.with_untracked(|history| history.timeline.to_svg(TITLE));
        browser::save_text("potluck-timeline.svg", "image/svg+xml", &svg);
    };
    let save_data = move |_| {
        let json = store.room.history.with_untracked(|history| serde_json::to_string(&history.timeline));
        // Plain numbers and strings always serialize.
        if let Ok(json) = json {
            browser::save_text("potluck-timeline.json", "application/json", &json);
        }
    };
    view! {
        <details class="card fold timeline" on:toggle=move |event| open.set(is_open(&event))>
            <summary>"Speed over time"</summary>
            <div class="timeline-picture" inner_html=move || picture().unwrap_or_default()></div>
            <div class="timeline-actions">
                <button type="button" class="button" on:click=save_picture>"Save picture"</button>
                <button type="button" class="button" on:click=save_data>"Save data"</button>
            </div>
        </details>
    }
}

fn is_open(event: &web_sys::Event) -> bool {
    use wasm_bindgen::JsCast;
    let element = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    element.is_some_and(|element| element.has_attribute("open"))
}
