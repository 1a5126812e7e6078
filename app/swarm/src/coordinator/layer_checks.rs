//! Checks of what stages compute. After an answer each stage says by hashes what it got and sent ([`ledger`]). Then the host draws a
//! share of the answers; of those its own device computes each stage's part again ([`replay`]), if it holds that stage's weights and
//! is of its kind. Nobody else's word convicts anybody.

mod ledger;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use potluck_plan::{ConversationId, ModelShape, Outcome, PeerId, Plan, Stage, Ticket, WeightUnit};
use potluck_protocol::{Frame, LayerChecksView, RowHashes, RowRange, Rows, StageHashes};

use super::Coordinator;
use super::faults::Wrong;
use crate::Action;
use crate::event_context::EventContext;
use crate::executor::is_checked;
use crate::kv_pages::{least_pages, pages};
use crate::members::{Members, SILENT_MILLIS};
use crate::worker::Worker;

pub(super) use ledger::EndedAnswer;
use ledger::{Committed, Ledger};
use replay::{Next, Replay, Target, Verdict};

/// Stages' parts of drawn answers that wait: each may take 32 MiB.
const MAX_DRAWN: usize = 4;
/// Devices that are remembered as not having shown their work, or as contradicting their neighbours.
const MAX_NAMED: usize = 32;

/// What is checked, and what was found.
#[derive(Default)]
pub(super) struct LayerChecks {
    ledger: Ledger,
    /// Answers that are to be computed again.
    drawn: VecDeque<Replay>,
    running: Option<Running>,
    /// Pieces that were in the engine when their answer was given up, each with where its KV cache lies.
    stopped: Vec<(Ticket, ConversationId)>,
    view: LayerChecksView,
}

/// An answer that is being computed again.
struct Running {
    replay: Replay,
    /// The piece in the engine.
    ticket: Ticket,
    /// Where its KV cache lies.
    conversation: ConversationId,
}

impl LayerChecks {
    pub fn view(&self) -> &LayerChecksView {
        &self.view
    }

    fn differ(&mut self, sender: PeerId, receiver: PeerId) {
        remember(&mut self.view.differ, (sender, receiver));
    }

    fn apart(&mut self, peer: PeerId) {
        remember(&mut self.view.apart, peer);
    }

    fn withheld(&mut self, peer: PeerId) {
        remember(&mut self.view.withheld, peer);
    }
}

/// Names one more, unless there are too many.
fn remember<T: PartialEq>(named: &mut Vec<T>, one: T) {
    if named.len() < MAX_NAMED && !named.contains(&one) {
        named.push(one);
    }
}

impl Coordinator {
    /// Asks for hashes of answers that have ended, and continues to recompute one that was drawn.
    /// Called with each event.
    pub fn check_layers(&mut self, worker: &mut Worker, cx: &mut EventContext) {
        self.ask_for_hashes(cx);
        let plan = self.planning.plans.active();
        let epoch = plan.map(|plan| plan.epoch);
        let old = self.layer_checks.ledger.forget_old(plan, cx.now);
        let mut late: Vec<PeerId> = old.iter().flat_map(|(.., committed)| committed.silent.clone()).collect();
        self.layer_checks.drawn.retain(|replay| {
            let (range, is_over) = (replay.range(), Some(replay.range().epoch) != epoch);
            let Next::Ask(peer, _) = replay.next() else { return !is_over };
            let is_late = cx.now.0 - replay.since.0 >= ledger::GIVE_UP_MILLIS;
            if is_late && !is_over && self.answers.is_newest(range.conversation, range.through) {
                late.push(peer);
            }
            !is_over && !is_late
        });
        // Who is away or silent cannot show anything.
        late.retain(|peer| *peer != cx.members.me && is_heard(*peer, &cx.members));
        late.into_iter().for_each(|peer| self.layer_checks.withheld(peer));
        old.into_iter().for_each(|(ended, range, committed)| self.judged(ended, range, committed, cx));
        if let Some(running) = &self.layer_checks.running {
            let is_over = Some(running.replay.range().epoch) != epoch;
            // The KV cache's pages are needed, or the weights are about to go.
            if (is_over || self.answers.lack_room() || !worker.is_settled())
                && let Some(mut replay) = self.stop_replay(cx)
                && !is_over
            {
                // It begins once more later.
                replay.begin_again();
                self.layer_checks.drawn.push_front(replay);
            }
        }
        if self.layer_checks.running.is_none() {
            self.start_replay(worker, cx);
        }
    }

    /// Says who is checked, unless this device is about to hold something else. Called with each tick.
    pub fn look_who_is_checked(&mut self, worker: &Worker, cx: &mut EventContext) {
        if !worker.is_settled() {
            return;
        }
        self.drop_what_is_not_held(worker, cx);
        let me = cx.members.me;
        let (Some(model), Some(plan)) = (&self.model, self.planning.plans.active()) else {
            self.layer_checks.view.checked.clear();
            self.layer_checks.view.unlike.clear();
            return;
        };
        let is_possible = self.command.spot_checks.share > 0.0 && is_checked(plan, me);
        let can_be = |peer: &PeerId| {
            let mut stages = plan.stages.iter().filter(|stage| stage.peer == *peer);
            *peer != me
                && cx.members.get(*peer).is_some()
                && stages.all(|stage| worker.can_replay(plan, &units(plan, stage, &model.shape), me))
        };
        let peers = if is_possible { plan.peers() } else { Default::default() };
        let is_alike = |peer: &PeerId| cx.members.are_alike(me, *peer);
        let view = &mut self.layer_checks.view;
        (view.checked, view.unlike) = peers.into_iter().filter(can_be).partition(is_alike);
        view.asked = is_possible;
    }

    /// What this device holds no copy of any more cannot be computed again.
    fn drop_what_is_not_held(&mut self, worker: &Worker, cx: &mut EventContext) {
        let me = cx.members.me;
        let drawn = std::mem::take(&mut self.layer_checks.drawn);
        self.layer_checks.drawn = drawn.into_iter().filter(|replay| self.holds(&replay.target, worker, me)).collect();
        let running = self.layer_checks.running.as_ref();
        if running.is_some_and(|running| !self.holds(&running.replay.target, worker, me)) {
            self.stop_replay(cx);
        }
    }

    fn ask_for_hashes(&mut self, cx: &mut EventContext) {
        let ended = self.answers.take_ended();
        let Some(plan) = self.planning.plans.active().filter(|plan| is_checked(plan, cx.members.me)) else { return };
        if self.command.spot_checks.share <= 0.0 {
            return;
        }
        for answer in ended {
            for (peer, range) in self.layer_checks.ledger.begin(answer, plan, cx.now) {
                cx.out.send(peer, Frame::CommitRows(range));
            }
        }
    }

    /// A stage says by hashes what it got and sent.
    pub fn row_hashes(&mut self, from: PeerId, hashes: RowHashes, cx: &mut EventContext) {
        let Some((ended, range, committed)) = self.layer_checks.ledger.answered(from, hashes) else { return };
        self.judged(ended, range, committed, cx);
    }

    /// All stages have answered, or have had the time to. Those that have are computed again, whatever the others did.
    fn judged(&mut self, ended: EndedAnswer, range: RowRange, committed: Committed, cx: &mut EventContext) {
        // Devices that have got newer rows are not named, nor is this one.
        let is_newest = self.answers.is_newest(range.conversation, range.through);
        let withheld = committed.withheld.iter().filter(|peer| is_newest && **peer != cx.members.me);
        withheld.for_each(|peer| self.layer_checks.withheld(*peer));
        committed.differ.iter().for_each(|(sender, receiver)| self.layer_checks.differ(*sender, *receiver));
        self.layer_checks.view.compared += u32::from(committed.all_agree());
        self.draw(ended, range, committed.hashes, cx);
    }

    /// Decides whether an answer is computed again. If so, the host computes the part of each stage for which it can.
    fn draw(
        &mut self,
        ended: EndedAnswer,
        range: RowRange,
        mut hashes: Vec<Option<StageHashes>>,
        cx: &mut EventContext,
    ) {
        let checks = self.command.spot_checks;
        if !ledger::is_drawn(checks.secret, checks.share, &range) {
            return;
        }
        let (Some(model), Some(plan)) = (&self.model, self.planning.plans.active()) else { return };
        if plan.epoch != range.epoch || hashes.len() != plan.stages.len() {
            return;
        }
        // If there is no room for all, it is not always the same ones that are left out.
        let first = ledger::choose(checks.secret, &range, plan.stages.len()).unwrap_or_default();
        let LayerChecks { drawn, view, .. } = &mut self.layer_checks;
        for place in (0..plan.stages.len()).map(|place| (place + first) % plan.stages.len()) {
            let stage = &plan.stages[place];
            // Results of another plan's last stage cannot be compared.
            let has_nothing = plan.has_lm_head(stage.id) && ended.results.is_empty();
            let is_alike = view.checked.contains(&stage.peer);
            if !(is_alike || view.unlike.contains(&stage.peer)) || drawn.len() >= MAX_DRAWN || has_nothing {
                continue;
            }
            let Some(StageHashes { inputs, outputs }) = hashes[place].take() else { continue };
            let target = Target {
                peer: stage.peer,
                is_alike,
                is_routed: has_experts(stage, &model.shape),
                blocks: stage.blocks,
                embeds: plan.embeds(stage.id),
                next: plan.stages.get(place + 1).map(|next| (next.id, next.peer)),
                wire: plan.wire,
                width: model.shape.hidden as usize,
            };
            let range = RowRange { stage: stage.id, ..range };
            let Some(replay) = Replay::new(target, ended.clone(), range, [inputs, outputs], cx.now) else { return };
            if let Next::Ask(peer, request) = replay.next() {
                cx.out.send(peer, Frame::RowsRequest(request));
            }
            drawn.push_back(replay);
        }
    }

    /// A stage shows what it got.
    pub fn rows(&mut self, from: PeerId, rows: Rows, cx: &mut EventContext) {
        let shown = |(index, replay): (usize, &mut Replay)| Some((index, replay.shown(from, &rows)?));
        let Some((index, next)) = self.layer_checks.drawn.iter_mut().enumerate().find_map(shown) else { return };
        // Many pages may come over a slow line.
        self.layer_checks.drawn[index].since = cx.now;
        match next {
            Next::Ask(peer, request) => cx.out.send(peer, Frame::RowsRequest(request)),
            Next::Compute | Next::Restart => {}
            Next::End(verdict) => {
                if let Some(replay) = self.layer_checks.drawn.remove(index) {
                    self.conclude(&replay, verdict, cx);
                }
            }
        }
    }

    fn holds(&self, target: &Target, worker: &Worker, me: PeerId) -> bool {
        let (Some(model), Some(plan)) = (&self.model, self.planning.plans.active()) else { return false };
        let stage = plan.stages.iter().find(|stage| stage.peer == target.peer && stage.blocks == target.blocks);
        stage.is_some_and(|stage| worker.can_replay(plan, &units(plan, stage, &model.shape), me))
    }

    /// Begins with the first answer whose rows are here and whose KV cache has room.
    fn start_replay(&mut self, worker: &mut Worker, cx: &mut EventContext) {
        let Some(model) = &self.model else { return };
        if self.handover.is_some() || !worker.is_settled() {
            return;
        }
        let context = self.command.context as usize;
        let least = least_pages(model.shape.is_recurrent(), context);
        let needed = |replay: &Replay| pages(replay.ended().tokens.len()).max(least);
        let is_ready =
            |replay: &Replay| replay.next() == Next::Compute && self.answers.have_room(needed(replay), context);
        let Some(index) = self.layer_checks.drawn.iter().position(is_ready) else { return };
        let replay = &self.layer_checks.drawn[index];
        let needed = needed(replay);
        if !self.holds(&replay.target, worker, cx.members.me) {
            return;
        }
        let Some(dropped) = self.answers.set_aside(needed, context) else { return };
        // Other devices free their pages with the next chunk.
        worker.free(&dropped.into_iter().collect(), cx);
        let Some(replay) = self.layer_checks.drawn.remove(index) else { return };
        cx.kv_cache.for_checks = needed;
        let conversation = cx.kv_cache.fresh_id();
        let ticket = worker.replay(replay.task(conversation), cx);
        self.layer_checks.running = Some(Running { replay, ticket, conversation });
    }

    /// Frees what was computed again.
    fn stop_replay(&mut self, cx: &mut EventContext) -> Option<Replay> {
        let Running { replay, ticket, conversation } = self.layer_checks.running.take()?;
        cx.out.act(Action::Cancel(ticket));
        cx.out.act(Action::Forget(conversation));
        // A piece that has not reached the engine yet takes pages once more.
        self.layer_checks.stopped.push((ticket, conversation));
        cx.kv_cache.for_checks = 0;
        Some(replay)
    }

    /// This device has computed a piece again.
    pub fn replayed(&mut self, ticket: Ticket, outcome: Outcome, worker: &mut Worker, cx: &mut EventContext) {
        for (_, conversation) in self.layer_checks.stopped.extract_if(.., |(stopped, _)| *stopped == ticket) {
            cx.out.act(Action::Forget(conversation));
        }
        let Some(running) = self.layer_checks.running.as_mut().filter(|running| running.ticket == ticket) else {
            return;
        };
        match running.replay.computed(outcome) {
            Next::Compute => {
                running.ticket = worker.replay(running.replay.task(running.conversation), cx);
            }
            Next::Restart => {
                cx.out.act(Action::Forget(running.conversation));
                running.conversation = cx.kv_cache.fresh_id();
                running.ticket = worker.replay(running.replay.task(running.conversation), cx);
            }
            Next::Ask(..) => {}
            Next::End(verdict) => {
                if let Some(replay) = self.stop_replay(cx) {
                    self.conclude(&replay, verdict, cx);
                }
            }
        }
    }

    fn conclude(&mut self, replay: &Replay, verdict: Verdict, cx: &mut EventContext) {
        let range = replay.range();
        self.layer_checks.view.repeated +=
            u32::from(matches!(verdict, Verdict::Equal | Verdict::Close | Verdict::Wrong));
        self.layer_checks.view.equal += u32::from(verdict == Verdict::Equal);
        match verdict {
            Verdict::Wrong if replay.convicts() => self.convict(replay.target.peer, cx),
            Verdict::Wrong => self.layer_checks.apart(replay.target.peer),
            Verdict::Withheld(peer) if self.answers.is_newest(range.conversation, range.through) => {
                self.layer_checks.withheld(peer);
            }
            Verdict::Withheld(_) | Verdict::Equal | Verdict::Close | Verdict::Unsteady | Verdict::NotComputed => {}
        }
    }

    /// The host's own device has computed twice something else than this one sent. Its part goes to others. What people have read of
    /// its answers is marked, and those that are being written begin again.
    fn convict(&mut self, peer: PeerId, cx: &mut EventContext) {
        let sentence = self.distrust(peer, Wrong::Numbers, cx);
        if let Some(model) = &self.model {
            self.answers.begin_again_without(peer, model, cx);
        }
        if self.planning.lose(peer, cx) {
            self.recover(Some(peer), &format!("{sentence} The answer is written again without it."), cx);
        } else {
            self.after_answer(cx);
        }
    }
}

/// A router chooses experts in one of its blocks.
fn has_experts(stage: &Stage, shape: &ModelShape) -> bool {
    stage.blocks.iter().any(|block| !shape.block_experts(block).is_empty())
}

/// All that a stage has on its GPU.
fn units(plan: &Plan, stage: &Stage, shape: &ModelShape) -> Vec<WeightUnit> {
    let ends = [(plan.embeds(stage.id), WeightUnit::Embedding), (plan.has_lm_head(stage.id), WeightUnit::LmHead)];
    let ends = ends.into_iter().filter_map(|(has, unit)| has.then_some(unit));
    let block = |block| {
        let experts = shape.block_experts(block).into_iter().map(move |expert| WeightUnit::Expert(block, expert));
        shape.block_units(block).into_iter().chain(experts).collect::<Vec<WeightUnit>>()
    };
    ends.chain(stage.blocks.iter().flat_map(block)).collect()
}

/// It is here and has said something lately.
fn is_heard(peer: PeerId, members: &Members) -> bool {
    members.get(peer).is_some_and(|member| member.is_available() && member.silent < SILENT_MILLIS)
}
