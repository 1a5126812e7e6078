//! The picture on the door: a round table seen from above, with a dish at each place.

use leptos::prelude::*;

/// The picture.
#[component]
pub fn Picture() -> impl IntoView {
    view! {
        <svg class="door-picture" viewBox="0 0 240 200" aria-hidden="true" focusable="false">
            <path class="art-chair" d="M98 12q22-9 44 0M98 188q22 9 44 0M212 78q9 22 0 44M28 78q-9 22 0 44" />
            <circle class="art-shadow" cx="120" cy="106" r="70" />
            <circle class="art-table" cx="120" cy="100" r="70" />
            <circle class="art-rim" cx="120" cy="100" r="63" />
            <circle class="art-plate" cx="120" cy="54" r="15" />
            <circle class="art-herb" cx="120" cy="54" r="9.5" />
            <circle class="art-plate" cx="166" cy="100" r="15" />
            <circle class="art-amber" cx="166" cy="100" r="9.5" />
            <circle class="art-plate" cx="120" cy="146" r="15" />
            <circle class="art-tomato" cx="120" cy="146" r="9.5" />
            <circle class="art-plate" cx="74" cy="100" r="15" />
            <circle class="art-herb" cx="74" cy="100" r="9.5" />
            <circle class="art-pot" cx="120" cy="100" r="22" />
            <circle class="art-soup" cx="120" cy="100" r="16" />
            <path class="art-steam" d="M113 107c5-5-4-8 1-14M125 107c5-5-4-8 1-14" />
        </svg>
    }
}
