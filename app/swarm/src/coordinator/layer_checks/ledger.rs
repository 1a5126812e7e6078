//! What stages have committed to: each stage says by hashes what it got and sent, and only then the host's secret decides which
//! answers are computed again. Where a stage's outputs are not the next one's inputs, one of the two says what is not so.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_plan::{Candidates, ConversationId, KernelClass, Millis, PeerId, Plan, StageId};
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
}

/// What is known of an answer once all stages have committed to their rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Committed {
    /// This device has not said what it got and sent.
    Withheld(PeerId),
    /// The first device says that it sent what the second one says that it did not get. One of them is wrong, and nobody can say
    /// which one.
    Differ(PeerId, PeerId),
    /// All agree: the hashes of each stage in order.
    Agree(Vec<StageHashes>),
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
    /// An answer has ended. Returns whom to ask for hashes, with what.
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

    /// Plans before this one are over, and what was asked long ago is not answered any more. Returns who has not answered the latter.
    pub fn forget_old(&mut self, plan: Option<&Plan>, now: Millis) -> Vec<PeerId> {
        let epoch = plan.map(|plan| plan.epoch);
        self.open.retain(|(range, _)| Some(range.epoch) == epoch);
        let late = self.open.extract_if(.., |(_, open)| now.0 - open.since.0 >= GIVE_UP_MILLIS);
        let silent = |(_, open): (RowRange, Open)| {
            open.stages.into_iter().filter(move |(stage, _)| !open.hashes.contains_key(stage)).map(|(_, peer)| peer)
        };
        late.flat_map(silent).collect()
    }
}

fn judge(stages: &[(StageId, PeerId)], mut hashes: BTreeMap<StageId, Option<StageHashes>>) -> Committed {
    let mut all: Vec<StageHashes> = Vec::with_capacity(stages.len());
    for (stage, peer) in stages {
        let Some(hashes) = hashes.remove(stage).flatten() else { return Committed::Withheld(*peer) };
        if let Some(before) = all.last().filter(|before| before.outputs != hashes.inputs) {
            let sender = stages[all.len() - 1].1;
            debug_assert_eq!(before.outputs.len(), hashes.inputs.len(), "both were counted");
            return Committed::Differ(sender, *peer);
        }
        all.push(hashes);
    }
    Committed::Agree(all)
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
