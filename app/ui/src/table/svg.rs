//! The drawn table. It is hidden from screen readers, because the list beside it says the same in words.

use leptos::prelude::*;
use potluck_panel::{MemberStatus, MemberView, PeerId, PlanStatus, Status};
use potluck_text::texts;

use super::{
    geometry::{CENTRE, HEIGHT, Point, TABLE, WIDTH, label, plate, ring, seat, seat_radius, short},
    holder_lights::HolderLights,
    hops::Hops,
    line::StageLine,
    token_path::{PathStep, StepKind, bottleneck, path_steps},
};
use crate::{
    common::device_symbol_path,
    state::store,
    text::{blocks_of, duration_ms, held_by},
};

/// The seats; the last one may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Seating {
    /// Members in seat order.
    pub members: Vec<Seat>,
    /// Number of seats, including the empty one.
    pub seats: usize,
    /// The seat of this tab.
    pub own: usize,
    /// What is missing from the plan, shown at the empty seat.
    pub missing: Option<String>,
}

/// A member and what its seat shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Seat {
    /// The member.
    pub member: MemberView,
    /// It is this tab.
    pub is_self: bool,
    /// All its blocks, otherwise the first other part that it holds.
    pub part: Option<String>,
}

impl Seat {
    fn of(status: &Status, member: &MemberView) -> Self {
        let part = status.plan.as_ref().and_then(|plan| {
            let other = || held_by(member.peer, plan, status.model.as_ref()).into_iter().next();
            blocks_of(member.peer, plan).or_else(other)
        });
        Self { member: member.clone(), is_self: status.is_self(member), part }
    }
}

impl Seating {
    /// The seats of a snapshot. One is empty while something is missing and while the host is the only member.
    pub fn of(status: &Status) -> Self {
        let seated = status.peers.iter().filter(|member| member.status != MemberStatus::Asking);
        let members: Vec<_> = seated.map(|member| Seat::of(status, member)).collect();
        let waiting = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Waiting);
        let missing = waiting.and_then(|plan| plan.waiting.as_ref()).map(|waiting| {
            let short = waiting.needed.saturating_sub(waiting.lent);
            if short > 0 { texts().seat.more(short) } else { texts().seat.one_more().into() }
        });
        let missing = missing.or_else(|| (members.len() == 1).then(|| texts().seat.invite().into()));
        Self {
            seats: members.len() + usize::from(missing.is_some()),
            own: members.iter().position(|seated| seated.is_self).unwrap_or(0),
            members,
            missing,
        }
    }

    /// The plate of a seated peer.
    pub fn plate_of(&self, peer: PeerId) -> Option<Point> {
        let index = self.members.iter().position(|seated| seated.member.peer == peer)?;
        Some(plate(index, self.own, self.seats))
    }

    /// Plates in the order in which a token visits them.
    pub fn stops(&self, status: &Status) -> Vec<Point> {
        let stages = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up).map(|plan| &plan.stages);
        stages.into_iter().flatten().filter_map(|stage| self.plate_of(stage.peer)).collect()
    }
}

/// The drawn table.
#[component]
pub fn TableSvg(
    /// The seat whose details are open.
    selected: RwSignal<Option<PeerId>>,
) -> impl IntoView {
    let store = store();
    let seating = Memo::new(move |_| store.room.status.with(Seating::of));
    let steps = Memo::new(move |_| store.room.status.with(path_steps));
    let seats = move || {
        let seating = seating.get();
        let steps = steps.get();
        let slowest = bottleneck(&steps).map(|index| &steps[index].kind);
        let radius = seat_radius(seating.seats);
        let drawn = seating.members.iter().enumerate().map(|(index, seated)| {
            let here = seat(index, seating.own, seating.seats);
            let dish = plate(index, seating.own, seating.seats);
            let is_own = |kind: &StepKind| matches!(kind, StepKind::Stage { peer, .. } if *peer == seated.member.peer);
            let millis = steps.iter().filter(|step| is_own(&step.kind)).map(PathStep::millis).sum();
            let slow = slowest.is_some_and(is_own);
            seat_view(seated.clone(), here, dish, radius, Pace { millis, slow }, selected)
        });
        let drawn = drawn.collect_view();
        let empty = seating.missing.clone().map(|missing| {
            let here = seat(seating.members.len(), seating.own, seating.seats);
            view! { <EmptySeat here radius missing /> }
        });
        view! { {drawn} {empty} }
    };
    view! {
        <svg class="table-svg" viewBox=format!("0 0 {WIDTH} {HEIGHT}") aria-hidden="true" focusable="false">
            <circle class="art-shadow" cx=CENTRE.x cy=CENTRE.y + 8.0 r=TABLE />
            <circle class="art-table" cx=CENTRE.x cy=CENTRE.y r=TABLE />
            <circle class="art-rim" cx=CENTRE.x cy=CENTRE.y r=TABLE - 7.0 />
            <StageLine seating />
            <Hops seating steps />
            <g class="table-pot">
                <circle class="art-pot" cx=CENTRE.x cy=CENTRE.y r="25" />
                <circle class="art-soup" cx=CENTRE.x cy=CENTRE.y r="18" />
                <path class="art-steam" d="M231 217c5-5-4-8 1-14M240 217c5-5-4-8 1-14M249 217c5-5-4-8 1-14" />
            </g>
            {seats}
            <HolderLights seating />
        </svg>
    }
}

/// Time that a seat's stages take per token.
#[derive(Clone, Copy)]
struct Pace {
    /// Milliseconds; 0 without a stage.
    millis: f64,
    /// It is the slowest step of a token's path.
    slow: bool,
}

fn seat_view(
    Seat { member, is_self, part }: Seat,
    here: Point,
    dish: Point,
    radius: f64,
    pace: Pace,
    selected: RwSignal<Option<PeerId>>,
) -> impl IntoView {
    let works = matches!(member.status, MemberStatus::Ready | MemberStatus::Loading);
    let lent = member.lent.unwrap_or_default();
    let share = if lent.0 > 0 { member.used.0 as f64 / lent.0 as f64 } else { 0.0 };
    let class = match (member.status, member.hidden) {
        (MemberStatus::Failed, _) => "seat seat-failed",
        (MemberStatus::Silent, _) => "seat seat-silent",
        (MemberStatus::Loading, _) => "seat seat-loading",
        (_, true) => "seat seat-slow",
        (MemberStatus::Ready, _) => "seat seat-ready",
        (MemberStatus::Spare, _) => "seat seat-spare",
        (MemberStatus::Guest | MemberStatus::Asking, _) => "seat seat-guest",
    };
    let below = part.filter(|_| works).unwrap_or_else(|| texts().member.of(member.status, member.hidden).to_owned());
    let below = match pace {
        Pace { slow: true, millis } => texts().seat.slowest_at(millis),
        Pace { millis, .. } if millis > 0.0 => format!("{below} · {}", duration_ms(millis)),
        _ => below,
    };
    let name = if is_self { texts().seat.you().to_owned() } else { short(&member.name, 15) };
    let (name_y, words_y) = label(here, radius);
    let scale = radius / 30.0;
    let icon = format!("translate({:.1} {:.1}) scale({scale:.2}) translate(-12 -12)", here.x, here.y);
    let peer = member.peer;
    let select = move |_| selected.update(|open| *open = (*open != Some(peer)).then_some(peer));
    view! {
        <g class=class class:seat-slowest=pace.slow class:seat-chosen=move || selected.get() == Some(peer) on:click=select>
            {works.then(|| view! {
                <circle class="art-plate" cx=dish.x cy=dish.y r="14" />
                <circle class="seat-dish" cx=dish.x cy=dish.y r="8.5" />
            })}
            <circle class="seat-ground" cx=here.x cy=here.y r=radius />
            <circle class="seat-track" cx=here.x cy=here.y r=radius />
            <path class="seat-ring" d=ring(here, radius, share) />
            <g class="seat-icon" transform=icon><path d=device_symbol_path(member.kind) /></g>
            <text class="seat-name" x=here.x y=name_y>{name}</text>
            <text class="seat-words" x=here.x y=words_y>
                {short(&below, 24)}
            </text>
        </g>
    }
}

#[component]
fn EmptySeat(here: Point, radius: f64, missing: String) -> impl IntoView {
    let store = store();
    let (name_y, words_y) = label(here, radius);
    let cross = format!("M{0:.1} {2:.1}h16M{1:.1} {3:.1}v16", here.x - 8.0, here.x, here.y, here.y - 8.0);
    view! {
        <g class="seat seat-empty" on:click=move |_| store.screen.dialog.set(Some(crate::state::DialogKind::Invite))>
            <circle class="seat-ground" cx=here.x cy=here.y r=radius />
            <path class="seat-cross" d=cross />
            <text class="seat-name" x=here.x y=name_y>{texts().seat.empty()}</text>
            <text class="seat-words" x=here.x y=words_y>{missing}</text>
        </g>
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::table::fixtures::{member, of_tab, plan_of, stage};
    use potluck_panel::{PlanReport, StageReport, Waiting};

    fn status(state: PlanStatus, stages: Vec<StageReport>) -> Status {
        let waiting = Waiting { needed: 5_200_000_000, lent: 2_000_000_000, sentence: "More.".into() };
        let waiting = (state == PlanStatus::Waiting).then_some(waiting);
        let plan = PlanReport { state, stages, waiting, ..plan_of(&[]) };
        Status { plan: Some(plan), peers: vec![member("a", false), member("b", true)], ..of_tab("b") }
    }

    #[test]
    fn an_empty_seat_says_what_is_missing() {
        let seating = Seating::of(&status(PlanStatus::Waiting, vec![]));
        assert_eq!(seating.missing.as_deref(), Some("needs 3.2 GB of memory"));
        assert_eq!((seating.seats, seating.own), (3, 1));
    }

    #[test]
    fn a_token_visits_the_plates_of_its_stages() {
        let status = status(PlanStatus::Up, vec![stage("b", 1.0), stage("a", 9.0), stage("x", 1.0)]);
        let seating = Seating::of(&status);
        assert_eq!(seating.missing, None);
        let stops = seating.stops(&status);
        assert_eq!(stops, vec![plate(1, 1, 2), plate(0, 1, 2)]);
    }

    #[test]
    fn a_host_with_both_ends_shows_all_its_blocks() {
        let range = |name, first_block, end_block| StageReport { first_block, end_block, ..stage(name, 1.0) };
        let stages = vec![range("b", 0, 2), range("a", 2, 5), range("b", 5, 6)];
        let seating = Seating::of(&status(PlanStatus::Up, stages));
        let parts: Vec<&str> = seating.members.iter().filter_map(|seat| seat.part.as_deref()).collect();
        assert_eq!(parts, ["blocks 2–4", "blocks 0–1, 5"]);
    }

    #[test]
    fn a_lone_host_has_a_free_seat_beside_it() {
        let mut alone = status(PlanStatus::Up, vec![stage("b", 1.0)]);
        alone.peers.remove(0);
        assert_eq!(Seating::of(&alone).seats, 2);
    }
}
