//! Tokens per second over time, with joins and leaves; can be viewed and saved.

use leptos::prelude::*;
use potluck_panel::{Picture, Shape};
use potluck_text::texts;

use crate::{browser, state::store};

/// The room over time, folded until the user opens it.
#[component]
pub fn TimelineCard() -> impl IntoView {
    let store = store();
    let open = RwSignal::new(false);
    // Draw only while it is open.
    let picture = move || {
        open.get()
            .then(|| store.room.history.with(|history| history.timeline.to_narrow_picture(texts().path.picture())))
    };
    let save_picture = move |_| {
        let svg = store.room.history.with_untracked(|history| history.timeline.to_svg(texts().path.picture()));
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
            <summary>{texts().path.over_time()}</summary>
            <div class="timeline-picture">{move || picture().map(picture_view)}</div>
            <div class="timeline-actions">
                <button type="button" class="button" on:click=save_picture>{texts().path.save_picture()}</button>
                <button type="button" class="button" on:click=save_data>{texts().path.save_data()}</button>
            </div>
        </details>
    }
}

/// The picture as elements: names of devices stay text.
fn picture_view(picture: Picture) -> impl IntoView {
    let view_box = format!("0 0 {} {}", picture.width, picture.height);
    let shapes = picture.shapes.into_iter().map(shape_view).collect_view();
    view! {
        <svg viewBox=view_box role="img" aria-label=picture.title>
            {shapes}
        </svg>
    }
}

fn shape_view(shape: Shape) -> AnyView {
    match shape {
        Shape::Rectangle { class, width, height } => {
            view! { <rect class=class width=width height=height></rect> }.into_any()
        }
        Shape::Line { class, from, to } => {
            view! { <line class=class x1=from.0 y1=from.1 x2=to.0 y2=to.1></line> }.into_any()
        }
        Shape::Path { class, data } => view! { <path class=class d=data></path> }.into_any(),
        Shape::Text { class, at, anchor, number, text } => {
            let number = number.map(|(class, number)| view! { <tspan class=class>{number}</tspan> });
            view! { <text class=class x=at.0 y=at.1 text-anchor=anchor.name()>{number}{text}</text> }.into_any()
        }
    }
}

fn is_open(event: &web_sys::Event) -> bool {
    use wasm_bindgen::JsCast;
    let element = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    element.is_some_and(|element| element.has_attribute("open"))
}
