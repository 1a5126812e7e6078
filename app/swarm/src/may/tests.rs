//! Every frame from every kind of sender to every kind of receiver.

use std::collections::BTreeSet;

use potluck_plan::{
    Arithmetic, BlockIndex, BlockRange, Bytes, ConversationId, Cuts, ExpertId, KernelClass, KvCacheType, LogitBias,
    ModelId, ModelShape, Position, RemoteExperts, Stage, WireType,
};
use potluck_protocol::{
    AnswerPart, AnswerStop, Checkers, ExpertCancel, ExpertHint, ExpertResult, Followed, Forward, Hedging, Hello,
    Holding, Leaving, LmHeadOutput, LoadFault, LogitOptions, ModelCard, ModelSource, PassId, PieceRequest, PlanView,
    Prepare, PromptRequest, Received, RequestId, RoomView, RowRange, Sampling, Sharing, Signal, StandbyOrder, Timings,
    ToolOffer,
};

use super::*;
use crate::examples;

const HOST: PeerId = PeerId([1; 16]);
const FIRST: PeerId = PeerId([2; 16]);
const SECOND: PeerId = PeerId([3; 16]);
/// Holds expert 0 of the second stage's block.
const HOLDER: PeerId = PeerId([4; 16]);
const GUEST: PeerId = PeerId([5; 16]);
const STRANGER: PeerId = PeerId([6; 16]);
/// Was invited to chat.
const CHATTER: PeerId = PeerId([7; 16]);

const EPOCH: PlanEpoch = PlanEpoch(7);
const CALL: u64 = 5;

/// The letters that stand for senders below.
const SENDERS: [(char, PeerId, SenderRole); 7] = [
    ('s', STRANGER, SenderRole::Stranger),
    ('c', CHATTER, SenderRole::Chatter),
    ('g', GUEST, SenderRole::Member),
    ('1', FIRST, SenderRole::Member),
    ('2', SECOND, SenderRole::Member),
    ('x', HOLDER, SenderRole::Member),
    ('h', HOST, SenderRole::Host),
];

struct Receiver {
    me: PeerId,
    plan: Plan,
}

impl Plans for Receiver {
    fn me(&self) -> PeerId {
        self.me
    }

    fn hosts(&self) -> bool {
        self.me == HOST
    }

    fn on_device(&self, epoch: PlanEpoch) -> Option<&Plan> {
        (epoch == EPOCH && self.plan.peers().contains(&self.me)).then_some(&self.plan)
    }

    fn in_room(&self, epoch: PlanEpoch) -> Option<&Plan> {
        (epoch == EPOCH && self.hosts()).then_some(&self.plan)
    }

    fn awaits_result(&self, epoch: PlanEpoch, call: u64, holder: PeerId) -> bool {
        epoch == EPOCH && self.me == SECOND && call == CALL && holder == HOLDER
    }
}

fn receiver(me: PeerId) -> Receiver {
    let mut second = Stage::new(StageId(1), SECOND, BlockRange::new(1, 2));
    let holders = vec![vec![ExpertHolder::Peer(HOLDER), ExpertHolder::Own], vec![ExpertHolder::Own]];
    second.remote = vec![RemoteExperts { block: BlockIndex(1), holders }];
    let plan =
        Plan { epoch: EPOCH, ..examples::plan(vec![Stage::new(StageId(0), FIRST, BlockRange::new(0, 1)), second]) };
    Receiver { me, plan }
}

fn heard(me: PeerId, frame: &Frame) -> String {
    let receiver = receiver(me);
    let others = SENDERS.iter().filter(|(_, from, _)| *from != me);
    others.filter(|(_, from, role)| may(*from, *role, &receiver, frame).is_ok()).map(|(letter, ..)| *letter).collect()
}

fn forward(stage: u16) -> Frame {
    Frame::Forward(Forward {
        epoch: EPOCH,
        stage: StageId(stage),
        pass: PassId(u64::MAX),
        live: Vec::new(),
        conversation: ConversationId(1),
        base: Position(0),
        class: KernelClass::Decode,
        count: 1,
        tokens: Vec::new(),
        further_steps: 0,
        sampling: None,
        lm_head: None,
        bias: LogitBias::default(),
        allowed: Vec::new(),
        stage_millis: Vec::new(),
        wire: WireType::F32,
        hidden: vec![0.0; 4],
    })
}

fn call(block: u16, expert: u16) -> Frame {
    let (epoch, class, wire) = (EPOCH, KernelClass::Decode, WireType::F32);
    let rows = vec![vec![ExpertId(expert)]];
    Frame::ExpertCall(ExpertCall {
        epoch,
        call: CALL,
        block: BlockIndex(block),
        class,
        rows,
        weights: Vec::new(),
        wire,
        normed: vec![0.0; 4],
    })
}

fn result(call: u64) -> Frame {
    let (epoch, wire, outputs) = (EPOCH, WireType::F32, vec![0.0; 4]);
    Frame::ExpertResult(ExpertResult { epoch, call, millis: 1.0, failed: None, wire, outputs })
}

fn residency(epoch: PlanEpoch) -> Frame {
    Frame::Residency(Residency { epoch, version: 1, changes: Vec::new() })
}

fn rows(stage: u16) -> RowRange {
    let conversation = ConversationId(1);
    RowRange { epoch: EPOCH, stage: StageId(stage), conversation, through: PassId(1), positions: 1 }
}

fn fault(stage: u16, kind: StageFaultKind) -> Frame {
    let (epoch, conversation) = (EPOCH, ConversationId(1));
    Frame::StageFault(StageFault { epoch, stage: StageId(stage), conversation, pass: None, kind })
}

fn logits(epoch: PlanEpoch) -> Frame {
    Frame::LogitsResult(LogitsResult {
        epoch,
        pass: PassId(1),
        conversation: ConversationId(1),
        base: Position(0),
        tokens: 1,
        result: LmHeadOutput::NotRequested,
        stage_millis: Vec::new(),
    })
}

fn hello() -> Frame {
    Frame::Hello(Hello { epoch: EPOCH, ..examples::hello() })
}

fn card() -> ModelCard {
    ModelCard {
        id: ModelId([0; 32]),
        source: ModelSource::Relay { name: String::new() },
        name: String::new(),
        architecture: String::new(),
        quantization: String::new(),
        bytes: Bytes::ZERO,
        parameters: 0,
        active_parameters: 0,
        blocks: 2,
        experts: 0,
        context: 64,
        licence: String::new(),
    }
}

fn shape() -> ModelShape {
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 4,
        vocabulary: 8,
        embedding: Bytes::ZERO,
        lm_head: Bytes::ZERO,
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: Vec::new(),
    }
}

fn room() -> Box<RoomView> {
    Box::new(RoomView {
        host: HOST,
        model: None,
        context: 64,
        sharing: Sharing::Fastest,
        ends: Default::default(),
        plan: PlanView::default(),
        members: Vec::new(),
        tokens_per_second: 0.0,
        tokens: 0,
        credits: Vec::new(),
        deputy: None,
    })
}

fn standby() -> Frame {
    Frame::StandBy(Box::new(StandbyOrder {
        epoch: EPOCH,
        model: card(),
        shape: shape(),
        overhead: Bytes::ZERO,
        context: 64,
        arithmetic: Arithmetic::Exact,
        kv_cache: KvCacheType::F32,
        units: Vec::new(),
        in_advance: false,
    }))
}

fn prepare() -> Frame {
    let plan = receiver(HOST).plan;
    let (model, shape, overhead, hedging) = (card(), shape(), Bytes::ZERO, Hedging::Off);
    Frame::Prepare(Box::new(Prepare { plan, model, shape, overhead, keep: None, hedging, spot_checks: 0.0 }))
}

fn prompt() -> Frame {
    Frame::Prompt(PromptRequest {
        request: RequestId(1),
        conversation: String::new(),
        messages: Vec::new(),
        raw: true,
        max_tokens: 1,
        sampling: Sampling::default(),
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    })
}

/// Every frame, and whom the host, the second stage and the holder of an expert hear with it.
fn table() -> Vec<(Frame, [&'static str; 3])> {
    let end = AnswerPart::End { pieces: 0, stop: AnswerStop::Stopped, timings: Timings::default() };
    let piece = PieceRequest { id: 1, file: 0, offset: 0, len: 1 };
    vec![
        (hello(), ["scg12x", "g1xh", "g12h"]),
        (Frame::Refused(String::new()), ["", "h", "h"]),
        (Frame::Heartbeat { sent: 0.0, status: None }, ["scg12x", "g1xh", "g12h"]),
        (Frame::HeartbeatBack { sent: 0.0, probed: 0, idle: true }, ["scg12x", "g1xh", "g12h"]),
        (Frame::Probe { sent: 0.0, bytes: Vec::new() }, ["cg12x", "g1xh", "g12h"]),
        (Frame::Calibrate(Box::new(card())), ["", "h", "h"]),
        (Frame::Calibrated(ModelId([0; 32]), Box::new(Err(String::new()))), ["g12x", "", ""]),
        (Frame::Bye, ["scg12x", "g1xh", "g12h"]),
        (Frame::Room(room()), ["", "h", "h"]),
        (Frame::RoomUpdate(EPOCH, room()), ["", "h", "h"]),
        (Frame::Closed(Leaving::ForGood), ["", "h", "h"]),
        (Frame::Checkers(Checkers::default()), ["", "h", "h"]),
        (prepare(), ["", "h", "h"]),
        (Frame::Prepared(EPOCH), ["g12x", "", ""]),
        (Frame::PrepareFailed(EPOCH, LoadFault::Failed(String::new())), ["g12x", "", ""]),
        (Frame::Commit(EPOCH), ["", "h", "h"]),
        (Frame::Committed(EPOCH), ["g12x", "", ""]),
        (Frame::Abandon(EPOCH), ["", "h", "h"]),
        (standby(), ["", "h", "h"]),
        (forward(1), ["", "1", ""]),
        (call(1, 0), ["", "", "2"]),
        (result(CALL), ["", "x", ""]),
        (Frame::ExpertCancel(ExpertCancel { epoch: EPOCH, call: CALL }), ["", "", "2"]),
        (Frame::ExpertHint(ExpertHint { epoch: EPOCH, experts: Vec::new() }), ["", "", "2"]),
        (residency(EPOCH), ["", "h", "h"]),
        (Frame::Hold(Hold { epoch: EPOCH, version: 1, experts: Vec::new() }), ["", "h", "h"]),
        (Frame::Holding(Holding { epoch: EPOCH, version: 1, failed: None }), ["g12x", "", ""]),
        (logits(EPOCH), ["2", "", ""]),
        (Frame::CommitRows(rows(1)), ["", "h", ""]),
        (Frame::RowHashes(RowHashes { range: rows(1), hashes: None }), ["2", "", ""]),
        (Frame::RowsRequest(RowsRequest { range: rows(1), page: 0 }), ["", "h", ""]),
        (Frame::Rows(Rows { request: RowsRequest { range: rows(0), page: 0 }, values: Vec::new() }), ["1", "", ""]),
        (Frame::Signal(Signal::Allowed(true)), ["", "", ""]),
        (Frame::Deputy(None), ["", "h", "h"]),
        (Frame::Follow(Box::new(Followed::Anew)), ["", "h", "h"]),
        (fault(1, StageFaultKind::Gap(Position(0))), ["2", "", ""]),
        (Frame::Writing, ["cg12x", "", ""]),
        (Frame::Expect, ["", "h", "h"]),
        (prompt(), ["cg12x", "", ""]),
        (Frame::Resume(RequestId(1), Received::default()), ["cg12x", "", ""]),
        (Frame::Stop(RequestId(1)), ["cg12x", "", ""]),
        (Frame::Answer(RequestId(1), end), ["", "h", "h"]),
        (Frame::Unknown, ["cg12x", "g1xh", "g12h"]),
        (Frame::PieceRequest(piece), ["g12x", "", ""]),
        (Frame::Piece { id: 1, failed: None, bytes: Vec::new() }, ["", "h", "h"]),
    ]
}

#[test]
fn everyone_says_only_what_it_may() {
    for (frame, expected) in table() {
        let got = [HOST, SECOND, HOLDER].map(|me| heard(me, &frame));
        assert_eq!(got, expected, "at the host, the second stage and the holder: {frame:?}");
    }
}

#[test]
fn the_table_has_every_frame() {
    let number = |frame: &Frame| potluck_protocol::encode(frame).map_or(u8::MAX, |bytes| bytes[6]);
    let numbers: BTreeSet<u8> = table().iter().map(|(frame, _)| number(frame)).collect();
    assert_eq!(numbers, (0..45).collect(), "frame numbers");
}

/// Row 3: `pass = MAX, live = []` would free every conversation.
#[test]
fn rows_come_from_the_stage_before_and_the_first_ones_from_the_host() {
    assert_eq!(heard(FIRST, &forward(0)), "h");
    assert_eq!(heard(SECOND, &forward(1)), "1");
    assert_eq!(heard(SECOND, &forward(0)), "", "not a stage of this device");
    assert_eq!(heard(FIRST, &forward(1)), "", "not a stage of this device");
}

#[test]
fn experts_are_called_by_the_stage_that_runs_their_block() {
    assert_eq!(heard(HOLDER, &call(1, 0)), "2");
    assert_eq!(heard(HOLDER, &call(0, 0)), "", "the first stage has its experts itself");
    assert_eq!(heard(HOLDER, &call(9, 0)), "", "there is no such block");
    assert_eq!(heard(SECOND, &call(1, 0)), "", "its own block");
}

#[test]
fn results_come_from_a_holder_that_was_asked() {
    assert_eq!(heard(SECOND, &result(CALL)), "x");
    assert_eq!(heard(SECOND, &result(CALL + 1)), "");
}

#[test]
fn experts_of_other_plans_are_not_moved() {
    assert_eq!(heard(SECOND, &residency(PlanEpoch(6))), "");
    let hold = Frame::Hold(Hold { epoch: PlanEpoch(8), version: 1, experts: Vec::new() });
    assert_eq!(heard(HOLDER, &hold), "");
}

#[test]
fn frames_of_other_plans_are_nobodys() {
    let (plan, old) = (receiver(HOST), PlanEpoch(6));
    assert_eq!(may(SECOND, SenderRole::Member, &plan, &logits(old)), Err(Refusal::NoSuchPlan));
}

/// Row 11: nobody but the next in line can say that a device's numbers are wrong.
#[test]
fn a_stage_accuses_only_those_that_it_takes_numbers_from() {
    let accuse = |stage, accused| heard(HOST, &fault(stage, StageFaultKind::BadResult(accused)));
    assert_eq!(accuse(1, FIRST), "2", "the stage before");
    assert_eq!(accuse(1, HOLDER), "2", "a holder of its experts");
    assert_eq!(accuse(1, SECOND), "2", "itself");
    assert_eq!(accuse(0, FIRST), "1", "itself");
    for (stage, accused) in [(0, SECOND), (0, HOLDER), (0, HOST), (1, GUEST), (1, HOST)] {
        assert_eq!(accuse(stage, accused), "", "stage {stage} takes nothing from {accused:?}");
    }
    let otherwise = |holder| heard(HOST, &fault(1, StageFaultKind::OtherWireType { holder, answered: WireType::F16 }));
    assert_eq!(otherwise(HOLDER), "2", "a holder of its experts");
    assert_eq!([FIRST, SECOND, HOST].map(otherwise), [""; 3], "they hold no experts for it");
}

#[test]
fn a_device_with_experts_only_says_that_it_lost_its_gpu() {
    assert_eq!(heard(HOST, &fault(0, StageFaultKind::DeviceLost)), "12x");
}
