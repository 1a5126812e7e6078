//! The room view: what everyone sees.

use potluck_plan::{PeerId, Plan, Stage};
use potluck_planner::{Planned, Prediction};
use potluck_protocol::{
    DeviceKind, LayerChecksView, LoadPhase, MemberStatus, MemberView, ModelCard, PlanView, RoomView,
};

use super::answers::Answers;
use super::credits::Credits;
use super::experts_view;
use super::planning::{Planning, StandsBy};
use crate::event::{HostCommand, OpenedModel};
use crate::members::{Member, Members};

pub(super) fn empty(me: PeerId, command: &HostCommand) -> RoomView {
    RoomView {
        host: me,
        model: None,
        context: command.context,
        sharing: command.sharing,
        ends: command.ends,
        plan: PlanView { reason: "Opening the model.".to_owned(), ..PlanView::default() },
        members: Vec::new(),
        tokens_per_second: 0.0,
        tokens: 0,
        credits: Vec::new(),
        deputy: None,
    }
}

/// What everyone sees. `known_plan`: the plan as it was seen last.
pub(super) fn room(
    model: Option<&OpenedModel>,
    command: &HostCommand,
    planning: &Planning,
    answers: &Answers,
    credits: &Credits,
    members: &Members,
    known_plan: Option<Plan>,
) -> RoomView {
    let (_, shown) = planning.plans.shown();
    let working = shown.map(|planned| planned.plan.peers()).unwrap_or_default();
    let member = |(peer, known): (&PeerId, &Member)| member(*peer, known, working.contains(peer), planning, members);
    let mut list: Vec<MemberView> = members.known.iter().map(member).collect();
    list.sort_by_key(|member| (member.peer != members.me, member.peer));
    RoomView {
        host: members.me,
        model: model.map(|model| ModelCard { source: model.card.source.shown(), ..model.card.clone() }),
        context: command.context,
        sharing: command.sharing,
        ends: command.ends,
        plan: plan(planning, model, command, answers, members, known_plan),
        members: list,
        tokens_per_second: answers.tokens_per_second,
        tokens: answers.tokens,
        credits: credits.view(members),
        deputy: None,
    }
}

/// Two views differ in nothing but what changes with every token and heartbeat.
pub(super) fn only_measures_differ(a: &mut RoomView, b: &mut RoomView) -> bool {
    // Plans are large, so they are compared where they are.
    let plans = (a.plan.plan.take(), b.plan.plan.take());
    let is_so = plans.0 == plans.1 && without_measures(a) == without_measures(b);
    (a.plan.plan, b.plan.plan) = plans;
    is_so
}

/// The same view without anything that changes with every token and heartbeat, or that a member may change at will.
fn without_measures(view: &RoomView) -> RoomView {
    let mut view = RoomView { tokens: 0, tokens_per_second: 0.0, credits: Vec::new(), ..view.clone() };
    let plan = &mut view.plan;
    (plan.token_ms, plan.measured_token_ms, plan.forecast) = (0.0, 0.0, None);
    (plan.checks.compared, plan.checks.repeated, plan.checks.equal) = (0, 0, 0);
    plan.predicted_ms.iter_mut().chain(&mut plan.measured_ms).for_each(|millis| *millis = 0.0);
    plan.experts = plan.experts.as_ref().map(experts_view::without_measures);
    plan.hops.iter_mut().for_each(|hop| (hop.predicted_ms, hop.measured_ms) = (0.0, 0.0));
    view.members.iter_mut().for_each(|member| {
        member.round_trip_ms = 0.0;
        // A member that keeps renaming its device makes the host tell everyone at most once a second.
        member.name.clear();
    });
    view
}

fn plan(
    planning: &Planning,
    model: Option<&OpenedModel>,
    command: &HostCommand,
    answers: &Answers,
    members: &Members,
    known_plan: Option<Plan>,
) -> PlanView {
    let (status, planned) = planning.plans.shown();
    // Prefers what tokens measured here last to the worker's own mean.
    let measured = |plan: &Plan, stage: &Stage| {
        let reported = || members.get(stage.peer).map_or(0.0, |member| member.status.decode_millis);
        planning.measured_millis(plan.epoch, stage.id).unwrap_or_else(reported)
    };
    let shape = planned.zip(model).and_then(|(planned, model)| model.shape_with(planned.plan.kv_cache));
    let kv_cache_bytes = planned.zip(shape).map(|(planned, shape)| {
        let stages = planned.plan.stages.iter();
        stages.map(|stage| shape.kv_cache_bytes(stage.blocks, planned.plan.context)).collect()
    });
    let expected = planned.map(|planned| planning.expected(planned));
    let shortfall = planning.shortfall.as_ref().filter(|_| planned.is_none());
    PlanView {
        status,
        plan: planned.map(|planned| match known_plan {
            Some(known) if known == planned.plan => known,
            _ => planned.plan.clone(),
        }),
        stage_bytes: planned.map(|planned| planned.stage_bytes.clone()).unwrap_or_default(),
        kv_cache_bytes: kv_cache_bytes.unwrap_or_default(),
        overhead: model.filter(|_| planned.is_some()).map(|model| model.overhead).unwrap_or_default(),
        predicted_ms: expected.as_ref().map(Prediction::stage_millis).unwrap_or_default(),
        measured_ms: planned
            .map(|planned| planned.plan.stages.iter().map(|stage| measured(&planned.plan, stage)).collect())
            .unwrap_or_default(),
        hops: planned
            .zip(expected.as_ref())
            .map(|(planned, expected)| planning.hops(planned, expected))
            .unwrap_or_default(),
        experts: planned.zip(shape).and_then(|(Planned { plan, .. }, shape)| {
            experts_view::experts(plan, shape, members, command.pooling, planning.ordered(plan.epoch))
        }),
        token_ms: expected.map_or(0.0, |expected| expected.token_millis),
        forecast: planned.and_then(|planned| planning.forecast(planned)),
        measured_token_ms: if answers.tokens_per_second > 0.0 { 1e3 / answers.tokens_per_second } else { 0.0 },
        shortfall: shortfall.map(|shortfall| (shortfall.needed, shortfall.contributed)),
        reason: match (planned, shortfall) {
            (Some(planned), _) => match planning.standbys.sentence(members).filter(|_| planning.plans.up().is_some()) {
                Some(standby) => format!("{} {standby}", planned.reason),
                None => planned.reason.clone(),
            },
            (None, Some(shortfall)) => shortfall.sentence.clone(),
            (None, None) => planning.reason.clone(),
        },
        help: planning.help().to_vec(),
        spreading: planned.and_then(|planned| planning.spreading(&planned.plan)),
        checks: LayerChecksView::default(),
    }
}

fn member(peer: PeerId, member: &Member, has_work: bool, planning: &Planning, members: &Members) -> MemberView {
    let lent = member.hello.contribution.as_ref().map(|contribution| contribution.budget);
    let (_, shown) = planning.plans.shown();
    let loading = member.status.loading.filter(|report| report.phase != LoadPhase::Ready);
    let status = match () {
        () if !member.admitted => MemberStatus::Asking,
        () if peer != members.me && member.is_silent() => MemberStatus::Silent,
        () if member.has_failed() => MemberStatus::Failed,
        () if lent.is_none() => MemberStatus::Guest,
        () if planning.plans.awaits(peer) || planning.in_advance(peer) == Some(false) => MemberStatus::Loading,
        () if has_work => MemberStatus::Ready,
        () => MemberStatus::Spare,
    };
    let spare = shown.and_then(|planned| planned.spares.iter().find(|spare| spare.peer == peer));
    MemberView {
        spare: spare.filter(|_| status == MemberStatus::Spare).map(|spare| {
            let sentence = spare.reason.sentence(noun(member.hello.kind));
            with_departures(sentence, planning.departures(peer))
        }),
        standby: match planning.in_advance(peer) {
            Some(false) => Some("Loads its part in advance.".to_owned()),
            Some(true) => Some("Has loaded its part in advance.".to_owned()),
            None => planning.standbys.of(peer).map(|stands_by| standby(&stands_by, status, members)),
        },
        peer,
        name: member.hello.name.clone(),
        kind: member.hello.kind,
        adapter: member.hello.adapter.clone(),
        coordinator: peer == members.me,
        lent,
        used: member.status.used,
        status,
        loading,
        round_trip_ms: member.round_trip(),
        hidden: member.hello.hidden,
    }
}

/// Why a suitable device has no work: it leaves often.
fn with_departures(sentence: String, departures: u32) -> String {
    match departures {
        0 => sentence,
        1 => format!("{sentence} It left once lately."),
        often => format!("{sentence} It left {often} times lately."),
    }
}

/// The noun for a device in sentences.
fn noun(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Computer => "computer",
        DeviceKind::Phone => "phone",
        DeviceKind::Tablet => "tablet",
        DeviceKind::Native => "device",
    }
}

fn standby(stands_by: &StandsBy, status: MemberStatus, members: &Members) -> String {
    let names: Vec<String> = stands_by.lost.iter().map(|lost| format!("{}'s", members.name(*lost))).collect();
    let part = if names.len() == 1 { "part" } else { "parts" };
    let names = names.join(" and ");
    match (stands_by.is_ready, status) {
        (true, MemberStatus::Spare) => format!("Warm standby for {names} {part}."),
        (true, _) => format!("It also keeps a copy of {names} {part}."),
        (false, _) => format!("It is loading a standby copy of {names} {part}."),
    }
}
