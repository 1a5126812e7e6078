//! The table's panel: the model, the drawing, this device, the list.

use leptos::prelude::*;
use potluck_panel::{Connection, PlanReport, Status};
use potluck_text::texts;

use super::{
    admit::Admissions,
    credit::CreditCard,
    deputy::DeputyChoice,
    experts::{ExpertsCard, OnDemandLine},
    failure::failure,
    seat_list::SeatList,
    share::{ShareChoice, Spreading},
    svg::TableSvg,
    timeline::TimelineCard,
    token_path::{Help, TokenPath},
    waiting::Threshold,
    why::WhyCard,
};
use crate::{
    common::{Icon, Symbol},
    contribute::ContributeCard,
    state::{DialogKind, store},
    text::{bytes, model_size},
};

/// The table's side of the room.
#[component]
pub fn TablePanel() -> impl IntoView {
    let store = store();
    let selected = RwSignal::new(None);
    let seated = Memo::new(move |_| store.room.status.with(|status| !status.peers.is_empty()));
    let inside = Memo::new(move |_| {
        store
            .room
            .status
            .with(|status| !matches!(status.connection, Connection::Closed { .. } | Connection::WaitingForHost))
    });
    view! {
        <Threshold />
        <Admissions />
        <Show when=move || inside.get()>
            <ModelLine />
            <Show when=move || seated.get() fallback=|| view! { <div class="table-svg table-none"></div> }>
                <TableSvg selected />
                <PlanLine />
                <Spreading />
                <WhyCard />
                <TokenPath />
                <ExpertsCard />
                <OnDemandLine />
            </Show>
            <Missing />
            <Help />
            <ContributeCard />
            <SeatList selected />
            <ShareChoice />
            <DeputyChoice />
            <CreditCard />
            <TimelineCard />
        </Show>
    }
}

#[component]
fn ModelLine() -> impl IntoView {
    let store = store();
    let name = move || {
        store.room.status.with(|status| match &status.model {
            Some(model) => model.name.clone(),
            None if failure(status).is_some() => texts().table.no_model().into(),
            None => texts().table.opening().into(),
        })
    };
    view! {
        <header class="model-line">
            <div>
                <h2>{name}</h2>
                <p class="hint">{move || store.room.status.with(model_facts)}</p>
            </div>
            <button type="button" class="button" on:click=move |_| store.screen.dialog.set(Some(DialogKind::Invite))>
                <Icon symbol=Symbol::Link />
                <span>{texts().table.invite()}</span>
            </button>
        </header>
    }
}

/// "11.8 M parameters · Q8_0 · 12.6 MB · Apache-2.0".
fn model_facts(status: &Status) -> String {
    let Some(model) = &status.model else { return String::new() };
    let mut facts = vec![model_size(model.parameters, model.active_parameters)];
    if !model.quantization.is_empty() {
        facts.push(model.quantization.clone());
    }
    facts.push(bytes(model.bytes.0));
    if !model.licence.is_empty() {
        facts.push(model.licence.clone());
    }
    facts.join(" · ")
}

/// The time of a token, and the reason for this plan.
#[component]
fn PlanLine() -> impl IntoView {
    let store = store();
    let line = move || {
        store.room.status.with(|status| {
            let plan = status.plan.as_ref().filter(|_| failure(status).is_none())?;
            Some(plan_line(plan, status.tokens_per_second))
        })
    };
    view! { <p class="plan-line hint">{line}</p> }
}

fn plan_line(plan: &PlanReport, pace: f64) -> String {
    let mut parts = Vec::new();
    // The reason already names devices and messages.
    if !plan.stages.is_empty() && plan.reason.is_empty() {
        parts.push(texts().path.stages(plan.stages.len()));
        parts.push(texts().path.hops(plan.network_hops));
    }
    if pace > 0.0 {
        parts.push(texts().path.pace(pace));
    }
    // What the token's path shows, in the unit of what is measured.
    if plan.token_ms > 0.0 && plan.waiting.is_none() {
        parts.push(texts().path.expected(1_000.0 / plan.token_ms));
    }
    let mut line = parts.join(" · ");
    // A separate card shows what is missing.
    if !plan.reason.is_empty() && plan.waiting.is_none() {
        if !line.is_empty() {
            line.push_str(". ");
        }
        line.push_str(&plan.reason);
    }
    line
}

/// What a plan still needs.
#[component]
fn Missing() -> impl IntoView {
    let store = store();
    let waiting =
        Memo::new(move |_| store.room.status.with(|status| status.plan.as_ref().and_then(|plan| plan.waiting.clone())));
    view! {
        {move || waiting.get().map(|waiting| view! {
            <section class="card missing" aria-live="polite">
                <p><strong>{waiting.sentence}</strong></p>
            </section>
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::plan_of;

    #[test]
    fn the_plan_line_counts_and_gives_the_reason() {
        let plan = PlanReport { reason: "Everyone takes part.".into(), ..plan_of(&[]) };
        assert_eq!(plan_line(&plan, 0.0), "Everyone takes part.");
        assert_eq!(plan_line(&plan, 6.1), "6.1 tok/s measured. Everyone takes part.");
    }

    #[test]
    fn the_plan_line_and_the_token_path_expect_the_same() {
        let plan = PlanReport { token_ms: 41.3, reason: "Everyone takes part.".into(), ..plan_of(&["a", "b"]) };
        assert_eq!(plan_line(&plan, 22.0), "22 tok/s measured · 24.2 tok/s expected. Everyone takes part.");
        let path = crate::table::token_path::times(45.0, plan.token_ms);
        assert_eq!(path, "45 ms measured, 41 ms expected");
    }
}
