//! "Why this plan?": which plans were compared, why each device is in or left out, and what would change that. The host knows
//! what it compared; everyone else sees what the host tells the room.

use leptos::prelude::*;
use potluck_panel::{Ends, PeerId, PlanDecision, PlanReport, PlanStatus, Status, WhyPlan};
use potluck_text::{
    PlanCompared, arithmetic_reason, device_decision, layer_checks, plan_decision, plans_compared, standby_decision,
    texts, what_would_change,
};

use crate::state::store;

/// Everything that the card says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reasons {
    /// There is a plan, or one that is being prepared.
    has_plan: bool,
    choice: Vec<String>,
    compared: Vec<PlanCompared>,
    devices: Vec<String>,
    leaving: Vec<String>,
    /// Who checks what devices compute.
    checks: Vec<String>,
    changes: Vec<String>,
    /// Where this comes from.
    source: &'static str,
}

fn reasons(status: &Status) -> Option<Reasons> {
    let plan = status.plan.as_ref().filter(|plan| plan.state != PlanStatus::Failed)?;
    match &status.why {
        Some(why) => Some(of_host(status, plan, why)),
        None if status.role.coordinator || plan.reason.is_empty() => None,
        None => Some(of_member(status, plan)),
    }
}

fn of_host(status: &Status, plan: &PlanReport, why: &WhyPlan) -> Reasons {
    let name = |peer| name(status, peer);
    // Why it was chosen, and why it stays since.
    let chosen = why.chosen.as_ref().filter(|chosen| **chosen != why.plan && is_of(chosen, plan));
    let mut changes = what_would_change(why, name);
    changes.extend(plan.help.iter().cloned());
    let has_plan = !plan.stages.is_empty();
    Reasons {
        has_plan,
        choice: chosen
            .into_iter()
            .chain([&why.plan])
            .map(plan_decision)
            .chain((has_plan && plan.ends == Ends::OnHost).then(|| texts().why.ends_kept().to_owned()))
            .chain(why.arithmetic.map(|arithmetic| arithmetic_reason(arithmetic).to_owned()))
            .chain(pooling(plan))
            .collect(),
        compared: plans_compared(why, name),
        devices: why.devices.iter().map(|device| device_decision(device, name)).collect(),
        leaving: why.standbys.iter().map(|standby| standby_decision(standby, name)).collect(),
        checks: checks(status, plan),
        changes,
        source: texts().why.of_host(),
    }
}

/// A choice of the plan that is shown.
fn is_of(decision: &PlanDecision, plan: &PlanReport) -> bool {
    matches!(decision, PlanDecision::Replaced { epoch, .. } if *epoch == plan.epoch)
}

fn of_member(status: &Status, plan: &PlanReport) -> Reasons {
    let blocks = |peer: PeerId| {
        let stages = plan.stages.iter().filter(|stage| stage.peer == peer);
        let blocks: u32 = stages.map(|stage| u32::from(stage.end_block.saturating_sub(stage.first_block))).sum();
        (blocks > 0).then(|| texts().why.computes(blocks, name(status, peer)))
    };
    let spare = |sentence: &String, peer| format!("{}: {sentence}", name(status, peer));
    let device = |member: &potluck_panel::MemberView| {
        blocks(member.peer).or_else(|| member.spare.as_ref().map(|sentence| spare(sentence, member.peer)))
    };
    Reasons {
        has_plan: !plan.stages.is_empty(),
        choice: [Some(plan.reason.clone()), plan.spreading.clone(), pooling(plan)].into_iter().flatten().collect(),
        compared: Vec::new(),
        devices: status.peers.iter().filter_map(device).collect(),
        leaving: Vec::new(),
        checks: checks(status, plan),
        changes: plan.help.clone(),
        source: texts().why.of_member(),
    }
}

/// How numbers go to experts on other devices, and whom the room asks; nothing if there are none.
fn pooling(plan: &PlanReport) -> Option<String> {
    plan.experts.as_ref().map(|experts| texts().pooling.in_use(experts.wire, experts.hedging))
}

/// About the devices whose layers the host cannot know to be right.
fn checks(status: &Status, plan: &PlanReport) -> Vec<String> {
    let is_host = |peer: PeerId| status.peers.iter().any(|member| member.peer == peer && member.coordinator);
    let mut devices: Vec<PeerId> = plan.stages.iter().map(|stage| stage.peer).filter(|peer| !is_host(*peer)).collect();
    devices.sort_unstable();
    devices.dedup();
    layer_checks(&plan.checks, &devices, |peer| name(status, peer))
}

fn name(status: &Status, peer: PeerId) -> String {
    let member = status.peers.iter().find(|member| member.peer == peer);
    match member {
        Some(member) if status.is_self(member) => texts().why.this_device().into(),
        Some(member) => member.name.clone(),
        None => texts().why.a_device().into(),
    }
}

/// Folded until the user opens it.
#[component]
pub fn WhyCard() -> impl IntoView {
    let store = store();
    let reasons = Memo::new(move |_| store.room.status.with(reasons));
    let has_plan = move || reasons.with(|reasons| reasons.as_ref().is_none_or(|reasons| reasons.has_plan));
    let inside = move || reasons.get().map(|reasons| view! { <Inside reasons /> });
    view! {
        <Show when=move || reasons.with(Option::is_some)>
            <details class="card fold why-card">
                <summary>{move || if has_plan() { texts().why.title() } else { texts().why.title_none() }}</summary>
                {inside}
            </details>
        </Show>
    }
}

#[component]
fn Inside(reasons: Reasons) -> impl IntoView {
    let Reasons { choice, compared, devices, leaving, checks, changes, source, .. } = reasons;
    let texts = &texts().why;
    let row = |row: PlanCompared| {
        view! { <tr><th scope="row">{row.plan}</th><td>{row.takes}</td></tr> }
    };
    view! {
        {choice.into_iter().map(|sentence| view! { <p>{sentence}</p> }).collect_view()}
        {(!compared.is_empty()).then(|| view! {
            <table class="why-plans">
                <caption>{texts.compared()}</caption>
                <tbody>{compared.into_iter().map(row).collect_view()}</tbody>
            </table>
        })}
        <Sentences title=texts.devices() sentences=devices />
        <Sentences title=texts.leaving() sentences=leaving />
        <Sentences title=texts.layer_checks() sentences=checks />
        <Sentences title=texts.changes() sentences=changes />
        <p class="hint">{source}</p>
    }
}

#[component]
fn Sentences(title: &'static str, sentences: Vec<String>) -> impl IntoView {
    let items = sentences.iter().map(|sentence| view! { <li>{sentence.clone()}</li> }).collect_view();
    (!sentences.is_empty()).then(|| {
        view! {
            <h3>{title}</h3>
            <ul aria-label=title>{items}</ul>
        }
    })
}

#[cfg(test)]
mod tests {
    use potluck_panel::{
        Arithmetic, Compared, DeviceDecision, ExpertsView, Hedging, KeptReason, LeftOut, MemberStatus, MemberView,
        PartReason, Place, PlanEpoch, ReplacedReason, Roles, WireType,
    };

    use super::*;
    use crate::table::fixtures::{member, of_tab, peer, plan_of};

    fn room(name: &str) -> Status {
        let phone = MemberView { name: "Phone".into(), status: MemberStatus::Spare, ..member("p", false) };
        let plan = PlanReport { reason: "One device holds the whole model.".into(), ..plan_of(&["h"]) };
        Status { peers: vec![member("h", true), phone], plan: Some(plan), ..of_tab(name) }
    }

    fn why(epoch: PlanEpoch) -> WhyPlan {
        let part = potluck_panel::Part {
            blocks: 6,
            experts: 0,
            ms: 12.0,
            lends: potluck_panel::Bytes(4),
            why: PartReason::Fastest,
        };
        let slow = LeftOut::TooSlow { with_ms: 60.0, without_ms: 12.0 };
        WhyPlan {
            chosen: Some(PlanDecision::Replaced {
                epoch,
                new_ms: 12.0,
                active_ms: None,
                reason: ReplacedReason::First,
            }),
            plan: PlanDecision::Kept {
                epoch,
                compared: Compared { active_ms: 12.0, best_ms: 12.0, needed_ms: 11.0 },
                reason: KeptReason::IsBest,
            },
            arithmetic: Some(Arithmetic::Packed),
            devices: vec![
                DeviceDecision { peer: peer("h"), place: Place::Has(part) },
                DeviceDecision { peer: peer("p"), place: Place::LeftOut(slow) },
            ],
            spreading: None,
            ends: None,
            standbys: Vec::new(),
        }
    }

    #[test]
    fn the_host_sees_what_it_compared() {
        let mut status = room("h");
        status.role = Roles { coordinator: true, ..Roles::default() };
        assert_eq!(reasons(&status), None, "nothing was decided yet");
        let epoch = status.plan.as_ref().map(|plan| plan.epoch).unwrap_or_default();
        status.why = Some(why(epoch));
        let told = reasons(&status).unwrap_or_default();
        assert_eq!(told.choice.len(), 3, "why it was chosen, why it stays, and how products are computed: {told:?}");
        assert!(told.choice[2].contains("8-bit integers"), "{told:?}");
        assert!(told.devices[0].starts_with("This device computes 6 blocks"), "{told:?}");
        assert_eq!(told.devices[1], "Phone is a spare: a token would take 60 ms with it, and takes 12 ms without.");
        assert_eq!(told.compared[2].plan, "With Phone as well");
        status.why = Some(why(PlanEpoch(epoch.0 + 1)));
        let told = reasons(&status).unwrap_or_default();
        assert_eq!(told.choice.len(), 2, "the choice of another plan: {told:?}");
    }

    #[test]
    fn a_member_sees_what_the_host_tells_the_room() {
        let mut status = room("p");
        status.peers[1].spare = Some("With this phone, each token would take 48 ms longer.".into());
        let told = reasons(&status).unwrap_or_default();
        assert_eq!(told.choice, ["One device holds the whole model."]);
        assert!(told.compared.is_empty() && told.source == texts().why.of_member(), "{told:?}");
        assert_eq!(told.devices[1], "This device: With this phone, each token would take 48 ms longer.");
    }

    #[test]
    fn everybody_sees_how_numbers_go_to_experts_and_whom_the_room_asks() {
        let experts = ExpertsView { wire: WireType::F16, hedging: Hedging::Copies(2), ..ExpertsView::default() };
        let spread = |name| {
            let mut status = room(name);
            let plan =
                PlanReport { reason: "They are spread.".into(), experts: Some(experts.clone()), ..plan_of(&["h"]) };
            status.plan = Some(plan);
            status
        };
        let expected = texts().pooling.in_use(WireType::F16, Hedging::Copies(2));
        assert_eq!(reasons(&spread("p")).unwrap_or_default().choice, ["They are spread.", &expected]);
        let mut host = spread("h");
        host.role = Roles { coordinator: true, ..Roles::default() };
        host.why = Some(why(host.plan.as_ref().map(|plan| plan.epoch).unwrap_or_default()));
        assert_eq!(reasons(&host).unwrap_or_default().choice.last(), Some(&expected));
    }
}
