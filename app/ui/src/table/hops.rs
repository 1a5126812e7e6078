//! A token's hops on the drawn table: the time of each, the slowest one highlighted.

use leptos::prelude::*;

use super::{
    geometry::message,
    svg::Seating,
    token_path::{PathStep, StepKind, bottleneck},
};
use crate::text::duration_ms;

/// With more hops, labels would overlap; the list below shows them all.
const MAX_LABELS: usize = 5;

/// Milliseconds, on the lines between the plates.
#[component]
pub fn Hops(
    /// The seats.
    #[prop(into)]
    seating: Signal<Seating>,
    /// The steps of a token's path.
    #[prop(into)]
    steps: Signal<Vec<PathStep>>,
) -> impl IntoView {
    move || {
        let (seating, steps) = (seating.get(), steps.get());
        let slowest = bottleneck(&steps);
        let hops = steps.iter().filter(|step| matches!(step.kind, StepKind::Hop { .. })).count();
        let drawn = steps.iter().enumerate().filter_map(|(index, step)| {
            let StepKind::Hop { from, to } = &step.kind else { return None };
            let slow = slowest == Some(index);
            let (path, label) = message(seating.plate_of(*from)?, seating.plate_of(*to)?);
            let class = if slow { "hop-label hop-slow" } else { "hop-label" };
            Some(view! {
                {slow.then(|| view! { <path class="hop-line" d=path /> })}
                {(slow || hops <= MAX_LABELS).then(|| view! {
                    <text class=class x=label.x y=label.y + 5.0>{duration_ms(step.millis())}</text>
                })}
            })
        });
        drawn.collect_view()
    }
}
