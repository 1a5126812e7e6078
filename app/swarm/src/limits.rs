//! What one peer may take of another. Nobody reaches these limits by using a room as the page does; whoever does loses
//! what is beyond them and gets a sentence where a person may be behind it. Nobody else notices.

use std::collections::BTreeSet;

use potluck_plan::{
    Bytes, ExpertId, KernelClass, LmHeadRequest, LogitsRequest, Millis, ModelShape, PeerId, Plan, PlanEpoch,
    SampledSteps, Work,
};
use potluck_protocol::{
    AnswerForm, CalibrationRuns, CreditView, ExpertCall, ExpertWaits, Forward, Hello, HolderReport, LayerChecksView,
    LogitOptions, MemberView, PassId, PromptRequest, Residency, ResidencyChange, RoomView, StandbyOrder, WorkerStatus,
};

use crate::kv_pages;
use crate::refusal::Refusal;

/// Bytes of a device's name. The page allows 40 characters, of up to four bytes each.
const MAX_NAME: usize = 160;
/// Bytes of what the GPU adapter calls itself.
const MAX_ADAPTER: usize = 256;
/// Bytes of the build's name: a hash or a version.
const MAX_BUILD: usize = 128;
/// Largest memory budget that makes sense, 1 PiB: sums over a room's devices stay far from overflow.
const MAX_BUDGET: Bytes = Bytes(1 << 50);
/// Newest plan epoch that a member may claim to have seen: a host that reloads begins at the seconds since 2026, so this
/// is 34 years. A host begins above its members' claims, so without a limit one of them could use the epochs up.
const MAX_CLAIMED_EPOCH: PlanEpoch = PlanEpoch(1 << 30);

/// Visitors that may ask the host to be let in at a time.
pub(crate) const MAX_ASKING: usize = 16;

/// Devices that a list of the host's doors remembers: more than any room has members.
pub(crate) const MAX_DEVICES: usize = 1_024;
/// Invites that a room remembers; older ones are void.
pub(crate) const MAX_INVITES: usize = 64;

/// Bytes of a question with its conversation, before it is rendered: a page of text has 2,000, and the longest contexts
/// of today's models about 500,000.
const MAX_PROMPT: usize = 1 << 20;
/// Messages of a conversation: the chat template adds tokens to each, also to empty ones.
const MAX_MESSAGES: usize = 2_048;
/// Functions that a question offers: agents with many servers of tools offer some hundreds.
pub const MAX_FUNCTIONS: usize = 1_024;
/// Bytes of a conversation's name, which the asking page makes up.
const MAX_CONVERSATION: usize = 128;
/// Questions that may wait in a room, and for one peer.
pub(crate) const MAX_WAITING: usize = 32;
pub(crate) const MAX_WAITING_PER_PEER: usize = 8;
/// Most bytes of one peer's questions that may wait: enough for all the questions above at their usual size.
pub(crate) const MAX_WAITING_BYTES_PER_PEER: usize = 2 * MAX_PROMPT;
/// Answers kept after their end for askers that lost pieces of them, and for one peer.
pub(crate) const KEPT_TRANSCRIPTS: usize = 64;
pub(crate) const KEPT_PER_PEER: usize = 8;
/// Log-probabilities that are kept with them: as many as of two long answers.
pub(crate) const KEPT_LOGPROBS: usize = 2 * 8_192 * 21;

/// Tokens of conversations between answers that a deputy keeps, all together: 16 MiB of them, hundreds of long ones.
pub(crate) const MAX_FOLLOWED_TOKENS: usize = 1 << 22;

/// Pieces of the host's file that are read for one peer at a time. A loader keeps up to 16 requests open; 64 pieces are
/// 16 MiB.
pub(crate) const MAX_PIECES: u32 = 64;

/// Chunks that may wait at a stage. Eight answers keep four chunks in flight each, and a replay one.
pub(crate) const MAX_CHUNKS: usize = 64;
/// Expert calls of one device that may be in the engine; one more is answered with a failure and asked again. A chunk of 512
/// tokens with all its experts here takes about ten.
pub(crate) const MAX_CALLS: usize = 64;
/// Experts that one hint names at most: those of a token in 64 blocks, of which a token uses eight.
pub(crate) const MAX_HINTS: usize = 512;
/// Experts of one token in a call. Most models use eight or fewer.
const MAX_ROW: usize = 64;
/// Holders of experts that a device may report: as many as there are members in the largest rooms.
const MAX_HOLDERS: usize = 64;
/// Values of hidden vectors of one conversation that a stage keeps to show them to the host, 16 MiB: 1,024 positions of a model with
/// 4,096 values a position. Longer conversations are not checked.
pub(crate) const MAX_SHOWN_VALUES: usize = 1 << 22;
/// The same of all conversations together.
pub(crate) const MAX_KEPT_VALUES: usize = 4 * MAX_SHOWN_VALUES;
/// Newest pass that a chunk may have. A host counts from 0 when it opens its room, so a thousand a second are 34 years.
const MAX_PASS: PassId = PassId(1 << 40);

/// Round trips that a member may report: as many as it does in the largest rooms.
pub(crate) const MAX_ROUND_TRIPS: usize = 64;
/// Times of one kind that a device may report. It measures a few dozen.
const MAX_RUNS: usize = 1_024;

/// How many frames of a kind one peer may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// At once.
    pub burst: f64,
    /// On average.
    pub per_second: f64,
}

/// Hellos: more than anybody hides and shows a tab. A hello with another contribution makes the host plan anew.
pub(crate) const HELLOS: RateLimit = RateLimit { burst: 64.0, per_second: 4.0 };
/// Requests to send pieces of answers again: each may repeat a whole answer.
pub(crate) const RESUMES: RateLimit = RateLimit { burst: 32.0, per_second: 8.0 };

/// How many full room views a peer gets for its hellos: each takes up to 200 kB.
pub(crate) const GREETINGS: RateLimit = RateLimit { burst: 8.0, per_second: 0.5 };
/// Bytes of one peer's questions that were rendered and tokenized and then were too long. A slow tab takes a second for a megabyte,
/// so it spends at most a thirtieth of its time on a peer that keeps doing this.
pub(crate) const IN_VAIN: RateLimit = RateLimit { burst: 4.0 * MAX_PROMPT as f64, per_second: 32_768.0 };

/// Members of a room, and devices in a list about them: more than any relay's room has.
const MAX_MEMBERS: usize = 1_024;
/// Stages of a plan, and numbers about them.
const MAX_STAGES: usize = 2 * ModelShape::MAX_BLOCKS;
/// Most expert placements in a plan: four times those of the largest models.
const MAX_PLACES: usize = 4 * ModelShape::MAX_EXPERTS;
/// Changes of where a plan's experts lie: five times the experts of today's largest models.
const MAX_CHANGES: usize = 128 * 1024;
/// Bytes of one sentence. Some quote what a file says.
const MAX_SENTENCE: usize = 16_384;
/// Bytes of what a model's file says of itself: some hold a whole licence.
const MAX_MODEL_TEXT: usize = 65_536;
/// Sentences in a list.
const MAX_SENTENCES: usize = 64;

/// A budget that refills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    left: f64,
    at: Millis,
}

impl Allowance {
    pub fn full(limit: RateLimit, now: Millis) -> Self {
        Self { left: limit.burst, at: now }
    }

    /// Takes one. False if none is left.
    #[must_use]
    pub fn take(&mut self, limit: RateLimit, now: Millis) -> bool {
        self.refill(limit, now);
        let has_one = self.left >= 1.0;
        if has_one {
            self.left -= 1.0;
        }
        has_one
    }

    /// Takes what was used, even if that is more than is left.
    pub fn spend(&mut self, amount: f64, limit: RateLimit, now: Millis) {
        self.refill(limit, now);
        self.left -= amount;
    }

    /// More was used than there was.
    pub fn is_spent(&mut self, limit: RateLimit, now: Millis) -> bool {
        self.refill(limit, now);
        self.left <= 0.0
    }

    fn refill(&mut self, limit: RateLimit, now: Millis) {
        self.left = (self.left + (now.0 - self.at.0).max(0.0) / 1e3 * limit.per_second).min(limit.burst);
        self.at = now;
    }
}

/// Checks what a peer says of itself.
///
/// # Errors
/// One sentence for the person at the other device.
pub(crate) fn hello(hello: &Hello) -> Result<(), &'static str> {
    if hello.name.len() > MAX_NAME {
        return Err("This device's name is too long. Give it one of at most 40 characters.");
    }
    let lends = hello.contribution.is_none_or(|lent| {
        let are_numbers = [lent.bandwidth, lent.sync_millis].iter().all(|value| value.is_finite() && *value >= 0.0);
        are_numbers && lent.budget <= MAX_BUDGET
    });
    if hello.adapter.len() > MAX_ADAPTER || hello.build.len() > MAX_BUILD || !lends {
        return Err("What this device says of itself cannot be right. Open Potluck on it again.");
    }
    Ok(())
}

/// The longest part of a device's own name, or of its adapter's, that others accept.
pub(crate) fn own_name(name: &str) -> String {
    cut(name, MAX_NAME)
}

/// As [`own_name`].
pub(crate) fn own_adapter(adapter: &str) -> String {
    cut(adapter, MAX_ADAPTER)
}

fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}

/// The epoch that a member claims to have seen; none if it cannot be true.
pub(crate) fn claimed_epoch(hello: &Hello) -> PlanEpoch {
    if hello.epoch <= MAX_CLAIMED_EPOCH { hello.epoch } else { PlanEpoch::default() }
}

/// What of a status can be used.
pub(crate) fn status(mut status: WorkerStatus) -> WorkerStatus {
    status.used = status.used.min(MAX_BUDGET);
    status.round_trips.truncate(MAX_ROUND_TRIPS);
    status.round_trips.retain(|(_, millis)| is_time(*millis));
    status.holders.truncate(MAX_HOLDERS);
    status.holders.retain(|holder| {
        let HolderReport { round_trip_millis, slow_millis, engine_millis, experts, work, .. } = *holder;
        [round_trip_millis, slow_millis, engine_millis, experts, work.gpu_millis].into_iter().all(is_time)
    });
    let ExpertWaits { trips, millis, engine_millis, own_millis, bytes } = status.expert_waits;
    if ![trips, millis, engine_millis, own_millis, bytes].into_iter().all(is_time) {
        status.expert_waits = ExpertWaits::default();
    }
    status.expert_phases.truncate(MAX_HOLDERS);
    status.expert_phases.retain(|phase| is_time(phase.millis));
    for loading in [&mut status.loading, &mut status.holding] {
        *loading = loading.filter(|loading| is_time(loading.rate));
    }
    if !is_time(status.decode_millis) {
        status.decode_millis = 0.0;
    }
    status
}

/// As many as a host names.
fn are_few(checks: &LayerChecksView) -> bool {
    let LayerChecksView { checked, unlike, apart, differ, withheld, .. } = checks;
    [checked, unlike, apart, withheld].into_iter().all(|peers| peers.len() <= MAX_MEMBERS)
        && differ.len() <= MAX_MEMBERS
}

/// True if a room is plausible: nothing in it is longer than what honest hosts send.
pub(crate) fn is_room(view: &RoomView) -> bool {
    let RoomView { model, plan, members, credits, .. } = view;
    let is_short = |text: &String| text.len() <= MAX_SENTENCE;
    let is_member = |member: &MemberView| {
        member.name.len() <= MAX_NAME
            && member.adapter.len() <= MAX_ADAPTER
            && [&member.spare, &member.standby].into_iter().flatten().all(is_short)
    };
    let is_credit = |credit: &CreditView| credit.name.len() <= MAX_NAME && credit.peers.len() <= MAX_MEMBERS;
    let is_model = model.as_ref().is_none_or(|model| {
        let texts = [&model.name, &model.architecture, &model.quantization, &model.licence];
        texts.into_iter().all(|text| text.len() <= MAX_MODEL_TEXT)
    });
    let numbers = [
        plan.stage_bytes.len(),
        plan.kv_cache_bytes.len(),
        plan.predicted_ms.len(),
        plan.measured_ms.len(),
        plan.hops.len(),
    ];
    let are_experts = plan
        .experts
        .as_ref()
        .is_none_or(|experts| experts.holders.len() <= MAX_MEMBERS && experts.phases.len() <= MAX_MEMBERS);
    members.len() <= MAX_MEMBERS
        && members.iter().all(is_member)
        && credits.len() <= MAX_MEMBERS
        && credits.iter().all(is_credit)
        && is_model
        && numbers.into_iter().all(|count| count <= MAX_STAGES)
        && plan.plan.as_ref().is_none_or(is_plan)
        && are_experts
        && are_few(&plan.checks)
        && plan.help.len() <= MAX_SENTENCES
        && plan.help.iter().chain([&plan.reason]).chain(&plan.spreading).all(is_short)
}

/// True if a plan can be this large.
fn is_plan(plan: &Plan) -> bool {
    let blocks = plan.stages.iter().map(|stage| stage.remote.len()).sum::<usize>();
    let lists = plan.stages.iter().flat_map(|stage| &stage.remote).map(|remote| &remote.holders);
    let places = lists.flatten().map(|holders| holders.len().max(1)).sum::<usize>();
    plan.stages.len() <= MAX_STAGES && plan.pools.len() <= MAX_MEMBERS && blocks <= MAX_STAGES && places <= MAX_PLACES
}

/// True if this many changes are plausible while a plan runs. A device is removed once, which visits every expert's holders, and no
/// expert has more holders than there are devices.
pub(crate) fn is_residency(residency: &Residency) -> bool {
    let changes = &residency.changes;
    let is_drop = |change: &&ResidencyChange| matches!(change, ResidencyChange::Drop(_));
    let peer = |change: &ResidencyChange| match change {
        ResidencyChange::Add { peer, .. } | ResidencyChange::Drop(peer) => *peer,
    };
    changes.len() <= MAX_CHANGES
        && changes.iter().filter(is_drop).count() <= MAX_MEMBERS
        && changes.iter().map(peer).collect::<BTreeSet<PeerId>>().len() <= MAX_MEMBERS
}

/// Checks a question before anything is computed with it.
///
/// # Errors
/// One sentence for the asker.
pub fn prompt(prompt: &PromptRequest) -> Result<(), String> {
    let functions = prompt.tools.functions.len();
    if prompt.messages.len() > MAX_MESSAGES || functions > MAX_FUNCTIONS || prompt.bytes() > MAX_PROMPT {
        return Err(Refusal::TooLong.to_string());
    }
    let sampling = &prompt.sampling;
    let values = [sampling.temperature, sampling.top_p, sampling.min_p, sampling.repetition_penalty];
    if prompt.conversation.len() > MAX_CONVERSATION || !values.iter().all(|value| value.is_finite()) {
        return Err("The question's settings cannot be right. Choose others and ask again.".to_owned());
    }
    if prompt.logits.top_logprobs.is_some_and(|count| count > LogitOptions::MAX_TOP) {
        let most = LogitOptions::MAX_TOP;
        return Err(format!("The question wants too many likely tokens. Ask for at most {most}."));
    }
    if prompt.logits.form.bytes() > AnswerForm::MAX_BYTES {
        let most = AnswerForm::MAX_BYTES >> 10;
        return Err(format!(
            "The form that the answer must have is too long. Ask with a schema or a grammar of at most {most} KiB."
        ));
    }
    Ok(())
}

/// True if a stage of the plan may be sent this chunk.
pub(crate) fn is_chunk(forward: &Forward, plan: &Plan) -> bool {
    let Forward { base, count, further_steps, sampling, live, conversation, lm_head, stage_millis, .. } = forward;
    let end = base.0.checked_add(*count).and_then(|end| end.checked_add(u32::from(*further_steps)));
    let candidates = |lm_head: LmHeadRequest| lm_head.logits.candidates();
    let top = lm_head.is_none_or(|lm_head| candidates(lm_head).is_some_and(|max| max <= LogitsRequest::MAX_TOP));
    // Tokens are not computed ahead of a bias or of a choice of tokens.
    let biased = (forward.bias.is_empty() && forward.allowed.is_empty()) || *further_steps == 0;
    let allowed = forward.allowed.len() <= Work::DECODE_TOKENS;
    *count as usize <= Work::PREFILL_TOKENS
        && *further_steps < Work::MAX_STEPS
        && sampling.as_ref().is_none_or(|steps| steps.recent.len() <= SampledSteps::MAX_WINDOW as usize)
        // The host promises that all conversations fit the plan's pages, of which each takes one at least.
        && end.is_some_and(|end| kv_pages::pages(end as usize) <= kv_pages::of_plan(plan))
        && forward.pass <= MAX_PASS
        && live.len() <= kv_pages::of_plan(plan)
        && live.contains(conversation)
        && top
        && biased
        && allowed
        // Each stage before has added one. With one more, a later stage would take this stage for the liar.
        && plan.stage(forward.stage).is_some_and(|(before, _)| are_stage_times(stage_millis, before))
}

/// True if a holder may be asked this: as many finite vectors as rows, for each row a few experts, none twice, and a finite weight for each
/// of them, or none at all.
pub(crate) fn is_call(call: &ExpertCall, width: usize) -> bool {
    let rows = call.rows.len();
    let most = match call.class {
        KernelClass::Decode => Work::DECODE_TOKENS,
        KernelClass::Prefill => Work::PREFILL_TOKENS,
    };
    let is_row = |row: &Vec<ExpertId>| {
        let is_new = |(index, expert): (usize, &ExpertId)| !row[..index].contains(expert);
        (1..=MAX_ROW).contains(&row.len()) && row.iter().enumerate().all(is_new)
    };
    let whole = (1..=most).contains(&rows) && rows.checked_mul(width) == Some(call.normed.len());
    let is_of_row = |(row, weights): (&Vec<ExpertId>, &Vec<f32>)| {
        row.len() == weights.len() && weights.iter().all(|weight| weight.is_finite())
    };
    let weighted = call.weights.len() == rows && call.rows.iter().zip(&call.weights).all(is_of_row);
    (call.weights.is_empty() || weighted)
        && whole
        && call.rows.iter().all(is_row)
        && call.normed.iter().all(|value| value.is_finite())
}

/// True if these can be the times of so many stages.
pub(crate) fn are_stage_times(millis: &[f64], stages: usize) -> bool {
    millis.len() <= stages && millis.iter().copied().all(is_time)
}

/// True if a device's times are times, and no more than it can have measured.
pub(crate) fn are_runs(runs: &CalibrationRuns) -> bool {
    let lists = [
        &runs.decode_short,
        &runs.decode_long,
        &runs.decode_lm_head,
        &runs.short_paused,
        &runs.lm_head_paused,
        &runs.prefill_short,
        &runs.prefill_long,
    ];
    let paused = runs.decode_paused.iter().map(|(_, millis)| millis);
    runs.decode_paused.len() <= MAX_RUNS
        && lists.into_iter().chain(paused).all(|millis| millis.len() <= MAX_RUNS && millis.iter().copied().all(is_time))
}

/// True if a model has room for the units of a standby order.
pub(crate) fn is_order(order: &StandbyOrder) -> bool {
    order.shape.is_plausible() && order.units.len() <= ModelShape::MAX_EXPERTS + 8 * ModelShape::MAX_BLOCKS
}

/// A span of time: finite and not negative.
pub(crate) fn is_time(millis: f64) -> bool {
    millis.is_finite() && millis >= 0.0
}
