//! The text of an answer, which grows.

use leptos::{html, prelude::*};

use super::{
    highlight::Painter,
    markdown::{Block, parse, plain_text},
    prose,
    spoken::Spoken,
};
use crate::{
    browser,
    state::{TurnId, store},
};

/// An answer's text as Markdown. It is redrawn once a frame at most, however quickly it grows, and said sentence by sentence.
#[component]
pub fn Prose(
    /// The text.
    #[prop(into)]
    text: Signal<String>,
    /// More of it may come.
    #[prop(into)]
    running: Signal<bool>,
    /// The turn whose answer this is.
    turn: Signal<TurnId>,
    /// Screen readers are not told what is new.
    unspoken: bool,
) -> impl IntoView {
    let store = store();
    let element = NodeRef::<html::Div>::new();
    let drawn = StoredValue::new(Vec::<Block>::new());
    let is_due = StoredValue::new(false);
    let painter = StoredValue::new_local(Painter::default());
    let spoken = StoredValue::new(None::<Spoken>);
    let owner = StoredValue::new(Owner::current());
    let speak = move |blocks: &[Block], running: bool| {
        let news = |spoken: &mut Option<Spoken>| {
            let news = spoken.as_mut().and_then(|spoken| spoken.next(plain_text(blocks), !running));
            if !running {
                *spoken = None;
            }
            news
        };
        if let Some(news) = spoken.try_update_value(news).flatten().filter(|_| !unspoken) {
            store.screen.spoken.set(news);
        }
    };
    let draw = move || {
        is_due.try_update_value(|due| *due = false);
        // The answer may be gone by the time of the next frame.
        let Some(element) = element.try_get_untracked().flatten() else { return };
        let Some(text) = text.try_get_untracked() else { return };
        let redraw = || {
            let blocks = parse(&text);
            drawn.with_value(|before| {
                prose::draw(&element, before, &blocks);
                painter.update_value(|painter| painter.paint(&element, before, &blocks));
            });
            speak(&blocks, running.get_untracked());
            drawn.set_value(blocks);
        };
        let noted = || turn.with_untracked(|turn| browser::note_drawing(turn, redraw));
        owner.with_value(|owner| match owner {
            Some(owner) => owner.with(noted),
            None => noted(),
        });
    };
    Effect::new(move |was_running: Option<bool>| {
        text.track();
        let running = running.get();
        if running && was_running != Some(true) {
            // What is there already was said before.
            spoken.set_value(Some(drawn.with_value(|drawn| Spoken::behind(plain_text(drawn)))));
        }
        // Nothing is painted in a tab that nobody sees, so no frame comes.
        if !running || browser::is_hidden() {
            draw();
        } else if !is_due.get_value() {
            is_due.set_value(true);
            request_animation_frame(draw);
        }
        running
    });
    view! { <div class="prose" node_ref=element></div> }
}
