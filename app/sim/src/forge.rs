//! Forged frames: what a device that is who it says it is could send nevertheless. It repeats its own frames, sends
//! those of others as if they were its own, alters them, and makes up new ones of every kind.
//!
//! What a plan asks of a device is left out: that it computes well is another matter, and what it says of itself is its
//! own loss. So whatever is sent here must change no answer, and nobody may be blamed or removed for it.

use std::collections::{BTreeSet, VecDeque};

use potluck_plan::{
    BlockIndex, Bytes, Candidates, ConversationId, ExpertId, KernelClass, LogitBias, ModelId, PeerId, PlanEpoch,
    Position, SampledSteps, StageId, WireType,
};
use potluck_protocol::{
    AnswerPart, AnswerStop, CalibrationRuns, Contribution, DeviceKind, ExpertCall, ExpertCancel, ExpertFailure,
    ExpertHint, ExpertResult, Followed, Forward, Frame, Hello, Hold, Holding, Leaving, LmHeadOutput, LoadFault,
    LogitOptions, LogitsResult, Message, PassId, PieceRequest, PromptRequest, Received, RequestId, Residency,
    ResidencyChange, Role, Sampling, StageFault, StageFaultKind, StartId, Timings, ToolChoice, ToolOffer, WorkerStatus,
};
use potluck_swarm::RelayRoute;

use super::fault::Fault;
use super::random::Random;
use super::world::{Scheduled, World};

/// Frames that forgers remember.
const OVERHEARD: usize = 400;
/// Most frames of a burst, and most milliseconds between two.
const BURST: u64 = 4;
const PAUSE_MILLIS: f64 = 600.0;

/// The devices that forge, and what they know.
pub(super) struct Forging {
    random: Random,
    pub devices: BTreeSet<usize>,
    /// Who sent what to whom: forgers work together, and each knows what it was sent.
    overheard: VecDeque<(usize, RelayRoute, Frame)>,
}

impl Forging {
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed ^ 0x0066_6f72_6765), devices: BTreeSet::new(), overheard: VecDeque::new() }
    }
}

impl World {
    /// Makes a device one that forges.
    pub fn forges(&mut self, index: usize) {
        self.forging.devices.insert(index);
    }

    /// A forger's accomplices see every frame.
    pub(super) fn overhear(&mut self, index: usize, to: RelayRoute, frame: &Frame) {
        let forging = &mut self.forging;
        if forging.devices.is_empty() || matches!(frame, Frame::Heartbeat { .. } | Frame::Probe { .. }) {
            return;
        }
        if forging.overheard.len() == OVERHEARD {
            forging.overheard.pop_front();
        }
        forging.overheard.push_back((index, to, frame.clone()));
    }

    /// Sends some forged frames, and `bursts - 1` more bursts later.
    pub(super) fn forge(&mut self, index: usize, bursts: u32) {
        for _ in 0..=self.forging.random.below(BURST) {
            if let Some((to, frame)) = self.forged(index) {
                self.send(index, to, frame);
            }
        }
        if bursts > 1 {
            let again = self.now + PAUSE_MILLIS * self.forging.random.unit();
            self.schedule(again, index, Scheduled::Fault(Fault::Forge(index, bursts - 1)));
        }
    }

    fn forged(&mut self, index: usize) -> Option<(RelayRoute, Frame)> {
        let sessions: Vec<RelayRoute> = self.peers[index].line.as_ref()?.sessions.iter().copied().collect();
        let ids: Vec<PeerId> = self.peers.iter().map(|peer| peer.id).collect();
        let Forging { random, overheard, .. } = &mut self.forging;
        let to = *sessions.get(random.below(sessions.len() as u64) as usize)?;
        let heard = overheard.get(random.below(overheard.len() as u64) as usize).cloned();
        let frame = match (random.below(4), heard) {
            // Once more to whom it was sent.
            (0, Some((from, receiver, frame))) if from == index => {
                return sessions.contains(&receiver).then_some((receiver, frame));
            }
            (0 | 1, Some((.., frame))) => frame,
            (2, Some((.., frame))) => altered(random, frame),
            (_, heard) => {
                let epoch = heard.and_then(|(.., frame)| epoch(&frame));
                invented(random, &ids, epoch.unwrap_or(PlanEpoch(1)))
            }
        };
        (!self.is_its_part(index, to, &frame)).then_some((to, frame))
    }

    /// The plan asks the device for just this: whether it does it well is not the question here.
    fn is_its_part(&self, index: usize, to: RelayRoute, frame: &Frame) -> bool {
        let is_work = matches!(
            frame,
            Frame::Forward(_)
                | Frame::ExpertCall(_)
                | Frame::ExpertResult(_)
                | Frame::ExpertCancel(_)
                | Frame::ExpertHint(_)
                | Frame::Holding(_)
                | Frame::LogitsResult(_)
                | Frame::StageFault(_)
                | Frame::RowHashes(_)
                | Frame::Rows(_)
        );
        let (Some(receiver), from) = (self.behind(to), self.peers[index].id) else { return true };
        let receiver = &self.peers[receiver].machine;
        is_work && (receiver.hears(from, frame) || receiver.is_in_plan_with(from))
    }

    /// An honest device that the host distrusts, or that had to leave the room.
    pub(super) fn is_wronged(&self) -> Option<String> {
        let honest = |index: &usize| {
            let forges = self.forging.devices.contains(index) || self.false_passes.lies(*index);
            !forges && self.peers[*index].wrong.is_none()
        };
        (0..self.peers.len()).filter(honest).find_map(|index| {
            let peer = &self.peers[index];
            let blamed = self.peers[0].machine.has_blamed(peer.id);
            match &peer.closed {
                Some(reason) => Some(format!("device {index} had to leave: {reason}")),
                None => blamed.then(|| format!("device {index} is honest and was blamed")),
            }
        })
    }
}

fn epoch(frame: &Frame) -> Option<PlanEpoch> {
    match frame {
        Frame::Forward(forward) => Some(forward.epoch),
        Frame::Prepare(prepare) => Some(prepare.plan.epoch),
        Frame::Commit(epoch) | Frame::Committed(epoch) | Frame::Prepared(epoch) | Frame::Abandon(epoch) => Some(*epoch),
        _ => None,
    }
}

fn any<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// Somebody's frame with something else in it.
fn altered(random: &mut Random, frame: Frame) -> Frame {
    let number = random.next();
    match frame {
        Frame::Forward(forward) => Frame::Forward(match number % 4 {
            0 => Forward { pass: PassId(u64::MAX), live: Vec::new(), sampling: Some(sampled(random)), ..forward },
            1 => Forward { epoch: PlanEpoch(forward.epoch.0.wrapping_add(1)), ..forward },
            2 => Forward { count: u32::MAX, base: Position(u32::MAX), ..forward },
            _ => Forward { hidden: vec![f32::NAN; forward.hidden.len()], ..forward },
        }),
        Frame::ExpertCall(call) => Frame::ExpertCall(ExpertCall { normed: vec![f32::NAN; 1], ..call }),
        Frame::ExpertResult(result) => {
            let outputs = vec![f32::INFINITY; result.outputs.len()];
            Frame::ExpertResult(ExpertResult { outputs, millis: f64::NAN, ..result })
        }
        Frame::LogitsResult(result) => {
            let best =
                Candidates { ids: vec![(number % 200) as u32], logits: vec![1.0], sampled: None, log_sum_exp: None };
            let stage_millis = vec![f64::NAN; result.stage_millis.len()];
            Frame::LogitsResult(LogitsResult { result: LmHeadOutput::Candidates(vec![best]), stage_millis, ..result })
        }
        Frame::Hello(hello) => Frame::Hello(said(random, hello)),
        Frame::Answer(request, AnswerPart::Text { index, channel, .. }) => Frame::Answer(
            request,
            AnswerPart::Text { index, channel, delta: "x".into(), tokens: vec![120], logprobs: Vec::new() },
        ),
        Frame::Prepare(mut prepare) => {
            prepare.plan.epoch = PlanEpoch(prepare.plan.epoch.0.wrapping_add(1));
            prepare.plan.stages.truncate(1);
            Frame::Prepare(prepare)
        }
        other => other,
    }
}

/// What a device may say of itself, true or not.
fn said(random: &mut Random, hello: Hello) -> Hello {
    match random.below(5) {
        0 => Hello { start: StartId(random.next()), ..hello },
        1 => Hello { epoch: PlanEpoch(u32::MAX), ..hello },
        2 => Hello { name: "x".repeat(100_000), ..hello },
        3 => {
            let (budget, bandwidth) = (Bytes(1 << random.below(64)), any(random, &[f64::NAN, 1.0, 1e300]));
            let lent = Contribution { budget, binding: budget, bandwidth, sync_millis: random.unit() };
            Hello { contribution: Some(lent), ..hello }
        }
        _ => Hello { contribution: None, ..hello },
    }
}

fn hello() -> Hello {
    Hello {
        start: StartId(0),
        build: "sim".into(),
        kernel_class: 1,
        name: "Forger".into(),
        kind: DeviceKind::Native,
        adapter: "simulated".into(),
        contribution: None,
        epoch: PlanEpoch(0),
        hidden: false,
    }
}

/// Parameters of a sampler, and more tokens before it than anybody needs.
fn sampled(random: &mut Random) -> SampledSteps {
    let (temperature, seed) = (any(random, &[f32::NAN, 0.0, 1e30]), random.next());
    let sampling = Sampling { temperature, penalty_window: u32::MAX, seed, ..Sampling::default() };
    SampledSteps { sampling, recent: vec![u32::MAX; 1 << random.below(12)] }
}

/// A frame out of nothing.
fn invented(random: &mut Random, ids: &[PeerId], epoch: PlanEpoch) -> Frame {
    let peer = any(random, ids);
    let epoch = PlanEpoch(epoch.0.wrapping_add(any(random, &[0, 0, 1, u32::MAX])));
    let (request, conversation) = (RequestId(1 + random.below(3) as u32), ConversationId(1 + random.below(6) as u32));
    let (stage, pass) = (StageId(random.below(3) as u16), PassId(any(random, &[0, 1, random.0 % 500, u64::MAX])));
    let end = AnswerPart::End { pieces: 0, stop: AnswerStop::Complete, timings: Timings::default() };
    match random.below(31) {
        0 => Frame::Refused("Go away.".into()),
        1 => Frame::Bye,
        2 => Frame::Unknown,
        3..=5 => Frame::Hello(said(random, hello())),
        6 => {
            let round_trips = vec![(peer, any(random, &[f64::NAN, f64::INFINITY, 0.0, 1e9])); 100];
            let status =
                WorkerStatus { prepared: Some(epoch), decode_millis: f64::NAN, round_trips, ..Default::default() };
            Frame::Heartbeat { sent: f64::NAN, status: Some(status) }
        }
        7 => Frame::HeartbeatBack { sent: any(random, &[f64::NAN, f64::NEG_INFINITY, 0.0]), probed: 1, idle: true },
        8 => Frame::Commit(epoch),
        9 => Frame::Abandon(epoch),
        10 => Frame::Prepared(epoch),
        11 => Frame::PrepareFailed(epoch, LoadFault::Failed("no".into())),
        12 => Frame::PrepareFailed(epoch, LoadFault::NoRoom("no".into())),
        13 => Frame::Committed(epoch),
        14 => Frame::Expect,
        15 => Frame::Stop(request),
        29 => Frame::Deputy(None),
        30 => Frame::Follow(Box::new(Followed::Forgot(peer))),
        16 => Frame::Resume(request, Received { pieces: 3, tokens: 70, last: vec![u32::MAX; 64] }),
        17 => Frame::Answer(request, end),
        18 => Frame::Answer(request, AnswerPart::Unknown),
        19 => {
            let kind = match random.below(4) {
                0 => StageFaultKind::DeviceLost,
                1 => StageFaultKind::Gap(Position(0)),
                2 => StageFaultKind::Failed("no".into()),
                _ => StageFaultKind::BadResult(peer),
            };
            Frame::StageFault(StageFault { epoch, stage, conversation, pass: Some(pass), kind })
        }
        20 => Frame::Forward(Forward {
            epoch,
            stage,
            pass,
            live: Vec::new(),
            conversation,
            base: Position(0),
            class: KernelClass::Decode,
            count: 1,
            tokens: vec![65],
            further_steps: any(random, &[0, 3, u16::MAX]),
            sampling: any(random, &[false, true]).then(|| sampled(random)),
            lm_head: None,
            bias: LogitBias::default(),
            allowed: Vec::new(),
            stage_millis: Vec::new(),
            wire: WireType::F32,
            hidden: Vec::new(),
        }),
        21 => {
            let (block, call, class) = (BlockIndex(0), u64::from(epoch.0) << 32, KernelClass::Decode);
            let (rows, wire) = (vec![Vec::new(); 3], WireType::F32);
            let weights = if any(random, &[false, true]) { vec![vec![f32::NAN]; 3] } else { Vec::new() };
            Frame::ExpertCall(ExpertCall { epoch, call, block, class, rows, weights, wire, normed: Vec::new() })
        }
        22 => {
            // Stages count the plans that they prepared, which are few.
            let call = ((1 + u64::from(epoch.0) % 3) << 32) + random.below(100);
            let (failed, wire) = (any(random, &[None, Some(ExpertFailure::NotHere)]), WireType::F32);
            match random.below(6) {
                0 => Frame::ExpertCancel(ExpertCancel { epoch, call }),
                4 => Frame::ExpertHint(ExpertHint { epoch, experts: vec![(BlockIndex(0), ExpertId(u16::MAX)); 9] }),
                1 => {
                    Frame::Residency(Residency { epoch, version: u32::MAX, changes: vec![ResidencyChange::Drop(peer)] })
                }
                2 => Frame::Hold(Hold { epoch, version: 1, experts: vec![(BlockIndex(0), ExpertId(0))] }),
                3 => Frame::Holding(Holding { epoch, version: random.below(9) as u32, failed: None }),
                _ => Frame::ExpertResult(ExpertResult {
                    epoch,
                    call,
                    millis: 0.0,
                    failed,
                    wire,
                    outputs: vec![f32::NAN],
                }),
            }
        }
        23 => Frame::PieceRequest(PieceRequest { id: random.next(), file: 0, offset: 0, len: u32::MAX }),
        24 => Frame::Piece { id: random.below(9), failed: None, bytes: vec![0; 9] },
        25 => {
            let runs = CalibrationRuns { decode_short: vec![f64::NAN; 9], ..CalibrationRuns::default() };
            Frame::Calibrated(ModelId([0; 32]), Box::new(Ok(runs)))
        }
        26 => Frame::Writing,
        27 => Frame::Closed(any(random, &[Leaving::ForGood, Leaving::ForNow])),
        _ => Frame::Prompt(PromptRequest {
            request,
            conversation: "a".into(),
            messages: vec![Message::new(Role::User, "who are you?")],
            raw: true,
            max_tokens: 1 + random.below(8) as u32,
            sampling: Sampling::default(),
            reasoning: None,
            tools: ToolOffer {
                functions: vec!["{".into(); random.below(3) as usize],
                choice: if random.below(2) == 0 { ToolChoice::Any } else { ToolChoice::Function("?".into()) },
            },
            logits: LogitOptions::default(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_protocol::Sharing;
    use potluck_swarm::Event;

    use super::*;
    use crate::{Link, SimDevice, SimModel, undisturbed};

    /// The host looks at its own rows before it sends them, so it knows who lies.
    #[test]
    fn a_stage_that_accuses_the_host_falsely_loses_its_own_work() {
        let model = SimModel::dense(6);
        let (mut world, asker, plan, place) = (1..60u32)
            .find_map(|seed| {
                let workers = 1 + seed % 3;
                let speed = [0.25, 0.5, 1.0, 2.0, 4.0][seed as usize % 5];
                let host = SimDevice::with_budget(620).at_speed(speed);
                let mut world = World::new(u64::from(seed), model.clone(), Sharing::Everyone, host);
                for at in 0..workers {
                    let upload = [f64::INFINITY, 2e4][seed as usize % 2];
                    let link = Link { up: upload, latency: 5.0, ..Link::default() };
                    world.add(SimDevice::with_budget(620).behind(link), 5.0 * f64::from(at));
                }
                let asker = world.add(SimDevice::default(), 20.0);
                world.prompt(asker, 1, "how do bees find home?", 60, 5_000.0);
                world.run(9_000.0, |world| world.answer(asker, 1).is_some_and(|answer| answer.tokens.len() > 3));
                let plan = world.view(0).room?.plan.plan.clone()?;
                let host = world.peers[0].id;
                let place = plan.stages.windows(2).find(|pair| pair[0].peer == host)?[1].clone();
                Some((world, asker, plan, place))
            })
            .unwrap();
        let host = world.peers[0].id;
        let liar = world.peers.iter().position(|peer| peer.id == place.peer).unwrap();
        let (conversation, kind) = (ConversationId(1), StageFaultKind::BadResult(host));
        let fault = StageFault { epoch: plan.epoch, stage: place.id, conversation, pass: None, kind };
        let (route, from) = (world.peers[liar].line.as_ref().unwrap().route, place.peer);
        world.event(0, Event::Frame { route, from, frame: Frame::StageFault(fault) });
        assert!(world.peers[0].machine.has_blamed(from), "the liar is distrusted");
        assert!(!world.peers[0].machine.has_blamed(host), "the host is not");
        world.run(60_000.0, |world| world.answer(asker, 1).is_some_and(|answer| answer.end.is_some()));
        let prompt: Vec<u32> = "how do bees find home?".bytes().map(u32::from).collect();
        assert_eq!(world.answer(asker, 1).unwrap().tokens, undisturbed(&model, &prompt, 60));
    }
}
