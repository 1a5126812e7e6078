//! What stages have committed to: each stage says by hashes what it got and sent, and only then the host's secret decides which
//! answers are computed again. Where a stage's outputs are not the next one's inputs, one of the two says something
//! untrue. A stage that
//! says nothing, or is contradicted, does not keep the others from being computed again.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_plan::{Candidates, ConversationId, KernelClass, LogitBias, Millis, PeerId, Plan, StageId};
use potluck_protocol::{PassId, RowHashes, RowRange, StageHashes};

/// Answers whose hashes may be awaited at a time.
const MAX_OPEN: usize = 16;
/// Hashes are awaited for this long.
pub(super) const GIVE_UP_MILLIS: f64 = 10_000.0;

/// An answer that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::coordinator) struct EndedAnswer {
    pub conversation: ConversationId,
    /// The newest chunk of its conversation.
    pub through: PassId,
    /// The tokens that every stage has computed, from the conversation's beginning on.
    pub tokens: Vec<u32>,
    /// The kernels that computed each.
    pub classes: Vec<KernelClass>,
    /// What the last stage sent for some of the positions.
    pub results: BTreeMap<u32, Candidates>,
    /// What was added to the logits before.
    pub bias: LogitBias,
}

/// What is known of an answer once its stages have committed to their rows, or had the time for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Committed {
    /// Devices that did not answer in time.
    pub silent: Vec<PeerId>,
    /// Devices that answered, but did not say what they got and sent.
    pub withheld: Vec<PeerId>,
    /// The first device says that it sent what the second one says that it did not get. One of them is wrong, and nobody else can
    /// say which one.
    pub differ: Vec<(PeerId, PeerId)>,
    /// The hashes of each stage in order; none of one that did not say them, or that a neighbour contradicts.
    pub hashes: Vec<Option<StageHashes>>,
}

impl Committed {
    /// All devices have said what they got and sent, and that is the same.
    pub fn all_agree(&self) -> bool {
        self.hashes.iter().all(Option::is_some)
    }
}

/// An answer whose stages are asked for their hashes.
struct Open {
    ended: EndedAnswer,
    stages: Vec<(StageId, PeerId)>,
    hashes: BTreeMap<StageId, Option<StageHashes>>,
    since: Millis,
}

/// The answers whose hashes are awaited.
#[derive(Default)]
pub(super) struct Ledger {
    open: Vec<(RowRange, Open)>,
}

impl Ledger {
    /// An answer has ended. Returns whom to ask for hashes, and of which rows.
    pub fn begin(&mut self, ended: EndedAnswer, plan: &Plan, now: Millis) -> Vec<(PeerId, RowRange)> {
        let stages: Vec<(StageId, PeerId)> = plan.stages.iter().map(|stage| (stage.id, stage.peer)).collect();
        let Some((first, _)) = stages.first().filter(|_| self.open.len() < MAX_OPEN && !ended.tokens.is_empty()) else {
            return Vec::new();
        };
        let EndedAnswer { conversation, through, ref tokens, .. } = ended;
        let (epoch, positions) = (plan.epoch, tokens.len() as u32);
        let range = RowRange { epoch, stage: *first, conversation, through, positions };
        let asks = stages.iter().map(|(stage, peer)| (*peer, RowRange { stage: *stage, ..range })).collect();
        self.open.push((range, Open { ended, stages, hashes: BTreeMap::new(), since: now }));
        asks
    }

    /// A stage has said what it got and sent. Once the last one has: the answer, its range at the first stage, and what is known of
    /// it. What nobody asked for changes nothing.
    pub fn answered(&mut self, from: PeerId, answer: RowHashes) -> Option<(EndedAnswer, RowRange, Committed)> {
        let RowHashes { range, hashes } = answer;
        let is_its = |(known, open): &(RowRange, Open)| {
            RowRange { stage: known.stage, ..range } == *known && open.stages.contains(&(range.stage, from))
        };
        let index = self.open.iter().position(is_its)?;
        let open = &mut self.open[index].1;
        let place = open.stages.iter().position(|(stage, _)| *stage == range.stage)?;
        let pages = range.pages() as usize;
        let wanted = |is_end: bool| if is_end { 0 } else { pages };
        let fits = |hashes: &StageHashes| {
            hashes.inputs.len() == wanted(place == 0) && hashes.outputs.len() == wanted(place + 1 == open.stages.len())
        };
        let hashes = hashes.filter(fits);
        // The first word counts.
        open.hashes.entry(range.stage).or_insert(hashes);
        if open.hashes.len() < open.stages.len() {
            return None;
        }
        let (first, open) = self.open.remove(index);
        let judged = judge(&open.stages, open.hashes);
        Some((open.ended, first, judged))
    }

    /// Plans before this one are over, and what was asked long ago is not answered any more. Returns what is known of the latter.
    pub fn forget_old(&mut self, plan: Option<&Plan>, now: Millis) -> Vec<(EndedAnswer, RowRange, Committed)> {
        let epoch = plan.map(|plan| plan.epoch);
        self.open.retain(|(range, _)| Some(range.epoch) == epoch);
        let late = self.open.extract_if(.., |(_, open)| now.0 - open.since.0 >= GIVE_UP_MILLIS);
        late.map(|(range, open)| (open.ended, range, judge(&open.stages, open.hashes))).collect()
    }
}

fn judge(stages: &[(StageId, PeerId)], mut said: BTreeMap<StageId, Option<StageHashes>>) -> Committed {
    let mut committed = Committed::default();
    for (stage, peer) in stages {
        let said = said.remove(stage);
        match &said {
            None => committed.silent.push(*peer),
            Some(None) => committed.withheld.push(*peer),
            Some(Some(_)) => {}
        }
        committed.hashes.push(said.flatten());
    }
    let contradicts = |pair: &[Option<StageHashes>]| match pair {
        [Some(sender), Some(receiver)] => sender.outputs != receiver.inputs,
        _ => false,
    };
    let apart: Vec<usize> = (1..stages.len()).filter(|at| contradicts(&committed.hashes[at - 1..=*at])).collect();
    for at in apart {
        committed.differ.push((stages[at - 1].1, stages[at].1));
        (committed.hashes[at - 1], committed.hashes[at]) = (None, None);
    }
    committed
}

/// True for the share of answers that is computed again. Nobody but the host knows the secret, and stages have committed to their
/// rows before.
pub(super) fn is_drawn(secret: u64, share: f64, range: &RowRange) -> bool {
    let mut hasher = DefaultHasher::new();
    (secret, range).hash(&mut hasher);
    share > 0.0 && (hasher.finish() as f64 / u64::MAX as f64) < share
}

/// Chooses one of this many.
pub(super) fn choose(secret: u64, range: &RowRange, count: usize) -> Option<usize> {
    let mut hasher = DefaultHasher::new();
    (range, secret).hash(&mut hasher);
    (hasher.finish() as usize).checked_rem(count)
}
