//! The messages of a token on the drawn table: what each takes, the slowest one marked.

use leptos::prelude::*;

use super::{
    geometry::message,
    svg::Seating,
    token_way::{Leg, Place, bottleneck},
};
use crate::text::duration_ms;

/// With more messages than these their words would lie on each other; the list has them all.
const MOST_WORDS: usize = 5;

/// Milliseconds on the lines between the plates.
#[component]
pub fn Ways(
    /// Who sits where.
    #[prop(into)]
    seating: Signal<Seating>,
    /// The parts of a token's way.
    #[prop(into)]
    legs: Signal<Vec<Leg>>,
) -> impl IntoView {
    move || {
        let (seating, legs) = (seating.get(), legs.get());
        let slowest = bottleneck(&legs);
        let ways = legs.iter().filter(|leg| matches!(leg.place, Place::Way { .. })).count();
        let drawn = legs.iter().enumerate().filter_map(|(index, leg)| {
            let Place::Way { from, to } = &leg.place else { return None };
            let slow = slowest == Some(index);
            let (path, words) = message(seating.plate_of(from)?, seating.plate_of(to)?);
            let class = if slow { "way-words way-slow" } else { "way-words" };
            Some(view! {
                {slow.then(|| view! { <path class="way-line" d=path /> })}
                {(slow || ways <= MOST_WORDS).then(|| view! {
                    <text class=class x=words.x y=words.y + 5.0>{duration_ms(leg.millis())}</text>
                })}
            })
        });
        drawn.collect_view()
    }
}
