//! The host's buttons on a member's row: remove it, or ban its device.

use leptos::prelude::*;
use potluck_panel::{PeerId, ToNode};
use potluck_text::texts;

use crate::state::store;

/// What the host is asked to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Remove,
    Ban,
}

impl Step {
    const fn question(self) -> &'static str {
        match self {
            Self::Remove => texts().put_out.confirm_remove(),
            Self::Ban => texts().put_out.confirm_ban(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Remove => texts().put_out.remove(),
            Self::Ban => texts().put_out.ban(),
        }
    }
}

/// Remove and Ban, each with a confirmation.
#[component]
pub(super) fn PutOut(
    /// The member.
    peer: PeerId,
) -> impl IntoView {
    let store = store();
    let asked = RwSignal::new(None::<Step>);
    let act = move |step: Step| {
        asked.set(None);
        store.send(match step {
            Step::Remove => ToNode::Remove(peer),
            Step::Ban => ToNode::Ban(peer),
        });
    };
    let button = move |step: Step| {
        view! { <button type="button" class="button button-small" on:click=move |_| asked.set(Some(step))>{step.name()}</button> }
    };
    move || {
        match asked.get() {
        None => view! { <div class="row">{button(Step::Remove)}{button(Step::Ban)}</div> }.into_any(),
        Some(step) => view! {
            <div class="put-out" role="alertdialog" aria-label=step.name()>
                <p>{step.question()}</p>
                <div class="row">
                    <button type="button" class="button button-main" on:click=move |_| act(step)>{step.name()}</button>
                    <button type="button" class="button" on:click=move |_| asked.set(None)>{texts().put_out.keep()}</button>
                </div>
            </div>
        }
        .into_any(),
    }
    }
}
