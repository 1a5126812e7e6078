//! Experts that do not fit on their stages, spread over other devices.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use potluck_plan::{
    BlockIndex, BlockRange, Bytes, ExpertHolder, PeerId, Plan, RemoteExperts, Stage, StageId, WeightUnit,
};

use super::board::{Board, Roster};
use super::changes::repair_roster;
use super::groups;
use super::placement::{Lender, first_holders};
use crate::cost::{Estimate, millis};
use crate::layers::LayerRange;
use crate::trips::{BlockHolders, Routing, call_millis};
use crate::{Device, Room, Sharing, TAU, placement as plans};

/// Who gets the first copy of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All devices: each reads little.
    Everybody,
    /// As few as possible, those first that answer first.
    Quickest,
    /// All devices, and so many for each block: its experts lie together, so that a token asks fewer.
    Together(usize),
}

/// What all drafts of a search share.
pub(super) struct Pool<'r, 'a> {
    pub room: &'r Room<'a>,
    board: Board,
}

/// Devices for the stages, and the experts for which they have no memory.
pub(super) struct Draft<'a> {
    hubs: Vec<(&'a Device, BlockRange)>,
    /// In ascending order.
    away: Vec<usize>,
    /// First holders of all reach, where they were looked for already.
    everybody: Option<Roster>,
    /// A token takes at least this, milliseconds.
    pub bound: f64,
    /// What its time is multiplied by when it is compared with others: stages that move take their experts and the KV cache of
    /// every conversation along.
    pub handicap: f64,
}

/// Stages with experts elsewhere.
pub(super) struct Spread<'a> {
    /// The stages, without the holders of their experts.
    stages: Vec<Stage>,
    hub: &'a Device,
    hubs: BTreeSet<PeerId>,
    reach: Reach,
    roster: Roster,
    /// Experts of which the stage keeps a copy, for when no other device answers.
    kept: Vec<bool>,
}

impl<'r, 'a> Pool<'r, 'a> {
    pub fn new(room: &'r Room<'a>) -> Self {
        let experts = room.shape.all_blocks().iter().flat_map(|block| {
            let experts = room.shape.block_experts(block).into_iter().map(move |expert| (block, expert));
            experts.map(|key| (key, room.shape.unit_bytes(WeightUnit::Expert(key.0, key.1))))
        });
        let board = Board::new(experts.collect(), room.devices.iter().map(|device| device.peer).collect());
        Self { room, board }
    }

    /// A roster without any holder.
    fn roster(&self) -> Roster {
        Roster::new(&self.board, replicas(self.room))
    }
}

impl<'a> Draft<'a> {
    /// Stages on these devices, whose other experts go elsewhere. `None` if the others have no memory for them, or if
    /// none has to go (the search by layers covers that).
    pub fn new(pool: &Pool<'_, 'a>, hubs: Vec<(&'a Device, BlockRange)>) -> Option<Self> {
        let room = pool.room;
        let (hub, _) = *hubs.first()?;
        let lenders = lenders(room, hub, &peers(&hubs));
        if room.sharing == Sharing::Experts {
            let sizes: Vec<u64> = hubs.iter().flat_map(|(_, blocks)| expert_sizes(room, *blocks)).collect();
            for given in [packed(&sizes, &lenders), certain(&sizes, &lenders)] {
                let Some(draft) = Self::giving(pool, hubs.clone(), &lenders, given) else { continue };
                // Where experts differ in size, hashing may pack fewer of them.
                if let Some(roster) = first_copies(pool, hub, &peers(&hubs), &draft.away, Reach::Everybody) {
                    return Some(Self { everybody: Some(roster), ..draft });
                }
            }
        }
        Self::giving(pool, hubs, &lenders, 0)
    }

    /// The same. So many experts go, also where their stage has memory for them.
    fn giving(
        pool: &Pool<'_, 'a>,
        hubs: Vec<(&'a Device, BlockRange)>,
        lenders: &[Lender],
        mut given: usize,
    ) -> Option<Self> {
        let last = hubs.len() - 1;
        let mut away: Vec<usize> = Vec::new();
        let mut bound = 0.0;
        for (index, (device, blocks)) in hubs.iter().enumerate() {
            let experts =
                overflow(pool, device, *blocks, pool.room.layers.range(*blocks, index == 0, index == last), given)?;
            given = given.saturating_sub(experts.len());
            let trips = experts.chunk_by(|a, b| pool.board.keys[*a].0 == pool.board.keys[*b].0).count();
            // The last of these blocks may keep some of its experts, and not every token needs the trip.
            bound += trips.saturating_sub(1) as f64 * trip_bound(pool.room, device, lenders);
            away.extend(experts);
        }
        away.sort_unstable();
        let smallest = away.iter().map(|expert| pool.board.bytes(*expert).0).min()?.max(1);
        let places: u64 = lenders.iter().map(|lender| lender.free.0 / smallest).sum();
        let handicap = handicap(pool.room, &hubs);
        (places >= away.len() as u64).then_some(Self { hubs, away, everybody: None, bound, handicap })
    }

    /// First holders for these experts.
    pub fn spread(&self, pool: &Pool<'_, 'a>, reach: Reach) -> Option<Spread<'a>> {
        let (hub, _) = *self.hubs.first()?;
        let hubs = peers(&self.hubs);
        let known = self.everybody.clone().filter(|_| reach == Reach::Everybody);
        let roster = known.or_else(|| first_copies(pool, hub, &hubs, &self.away, reach))?;
        let stage = |(index, (device, blocks)): (usize, &(&Device, BlockRange))| {
            Stage::new(StageId(index as u16), device.peer, *blocks)
        };
        let stages = self.hubs.iter().enumerate().map(stage).collect();
        Some(Spread { stages, hub, hubs, reach, roster, kept: vec![false; pool.board.keys.len()] })
    }
}

fn peers(hubs: &[(&Device, BlockRange)]) -> BTreeSet<PeerId> {
    hubs.iter().map(|(device, _)| device.peer).collect()
}

/// As for a change of a running plan: these stages are faster by enough, or stay where they are.
fn handicap(room: &Room<'_>, hubs: &[(&Device, BlockRange)]) -> f64 {
    let runs = room.devices.iter().any(|device| !device.active.is_empty());
    let stays = hubs.iter().all(|(device, blocks)| blocks.iter().all(|block| device.active.contains(&block)));
    if runs && !stays { 1.0 / TAU } else { 1.0 }
}

/// Milliseconds that a round trip takes at least.
fn trip_bound(room: &Room<'_>, hub: &Device, lenders: &[Lender]) -> f64 {
    let devices = lenders.iter().filter_map(|lender| room.device(lender.peer));
    let soonest = devices.map(|device| answer_millis(room, hub, device)).min_by(f64::total_cmp);
    millis(hub.sync_millis) + soonest.unwrap_or(0.0)
}

impl Spread<'_> {
    /// The same with further holders, as far as the others have memory. First copies stay the preferred ones.
    pub fn with_replicas(mut self, pool: &Pool<'_, '_>) -> Self {
        let (room, board) = (pool.room, &pool.board);
        let mut left = board.lending(&lenders(room, self.hub, &self.hubs));
        for (expert, number) in self
            .roster
            .placed()
            .flat_map(|expert| self.roster.holders(expert).iter().map(move |number| (expert, *number)))
        {
            let lender = left.iter_mut().find(|lender| lender.number == number);
            lender.into_iter().for_each(|lender| lender.free = lender.free.saturating_sub(board.bytes(expert)));
        }
        let first: Vec<bool> = (0..board.keys.len()).map(|expert| self.roster.count(expert) > 0).collect();
        let wanted = |expert: usize| if first[expert] { replicas(room) } else { 0 };
        match self.reach {
            // First copies lie on few devices. Where answers vary, so do further ones; else everybody takes part.
            Reach::Quickest if !room.links.varies() => {
                repair_roster(board, &mut self.roster, &mut left, wanted);
            }
            Reach::Everybody => {
                repair_roster(board, &mut self.roster, &mut left, wanted);
            }
            Reach::Together(_) | Reach::Quickest => {
                (self.roster, _) = groups::repair_roster_together(board, self.roster, left, wanted);
            }
        }
        if room.sharing == Sharing::Experts {
            self.keep_copies(pool);
        }
        self
    }

    /// A stage with memory left keeps copies of its own experts.
    fn keep_copies(&mut self, pool: &Pool<'_, '_>) {
        let (room, board) = (pool.room, &pool.board);
        let last = self.stages.len() - 1;
        for (index, stage) in self.stages.iter().enumerate() {
            let Some(device) = room.device(stage.peer) else { continue };
            let layers = room.layers.range(stage.blocks, index == 0, index == last);
            let away = || self.roster.placed().filter(|expert| stage.blocks.contains(board.keys[*expert].0));
            let gone: Bytes = away().map(|expert| board.bytes(expert)).sum();
            let all = room.layers.memory(layers).saturating_add(room.overhead);
            let mut free = device.budget.saturating_sub(all.saturating_sub(gone));
            for expert in away() {
                let bytes = board.bytes(expert);
                if bytes <= free {
                    free = free.saturating_sub(bytes);
                    self.kept[expert] = true;
                }
            }
        }
    }

    /// How many devices hold experts of other devices' stages.
    pub fn holders(&self) -> usize {
        let numbers: BTreeSet<u16> =
            self.roster.placed().flat_map(|expert| self.roster.holders(expert).iter().copied()).collect();
        numbers.len()
    }

    /// A token's time in a room, up to the waits for experts.
    pub fn estimate(&self, pool: &Pool<'_, '_>, room: &Room<'_>) -> Estimate {
        let plan = plans::plan(room, self.stages.clone());
        Estimate::of(room, &plan, |stage| self.remote(pool, stage.blocks))
    }

    /// The blocks of a stage that have experts elsewhere.
    fn remote<'s>(&'s self, pool: &'s Pool<'_, '_>, blocks: BlockRange) -> Vec<SpreadBlock<'s>> {
        let block = |block| {
            let experts = pool.board.block(block);
            let has_some = experts.clone().any(|expert| self.roster.count(expert) > 0);
            has_some.then_some(SpreadBlock {
                roster: &self.roster,
                kept: &self.kept,
                board: &pool.board,
                block,
                experts,
            })
        };
        blocks.iter().filter_map(block).collect()
    }

    /// The stages, with the holders of their experts.
    pub fn into_stages(mut self, pool: &Pool<'_, '_>) -> Vec<Stage> {
        let mut stages = std::mem::take(&mut self.stages);
        for stage in &mut stages {
            stage.remote = self.remote(pool, stage.blocks).iter().map(SpreadBlock::named).collect();
        }
        stages
    }
}

/// Who holds the experts of a block of a [`Spread`].
struct SpreadBlock<'s> {
    roster: &'s Roster,
    kept: &'s [bool],
    board: &'s Board,
    block: BlockIndex,
    experts: Range<usize>,
}

impl SpreadBlock<'_> {
    fn named(&self) -> RemoteExperts {
        let holders = |expert| (0..self.count(expert)).filter_map(|level| self.holder(expert, level)).collect();
        RemoteExperts { block: self.block, holders: (0..self.experts()).map(holders).collect() }
    }

    /// The stage has it: nobody else does, or it keeps a copy.
    fn is_own(&self, expert: usize) -> bool {
        self.roster.count(expert) == 0 || self.kept[expert]
    }
}

impl BlockHolders for SpreadBlock<'_> {
    fn block(&self) -> BlockIndex {
        self.block
    }

    fn experts(&self) -> usize {
        self.experts.len()
    }

    fn count(&self, expert: usize) -> usize {
        let expert = self.experts.start + expert;
        self.roster.count(expert) + usize::from(self.is_own(expert))
    }

    fn holder(&self, expert: usize, level: usize) -> Option<ExpertHolder> {
        let expert = self.experts.start + expert;
        let holders = self.roster.holders(expert);
        match holders.get(level) {
            Some(number) => Some(ExpertHolder::Peer(self.board.peer(*number))),
            None => (level == holders.len() && self.is_own(expert)).then_some(ExpertHolder::Own),
        }
    }
}

/// How many holders an expert shall have.
pub(super) fn replicas(room: &Room<'_>) -> usize {
    usize::from(room.replicas).max(1)
}

/// Bytes of each expert of these blocks, in the order in which a stage gives them.
fn expert_sizes(room: &Room<'_>, blocks: BlockRange) -> impl Iterator<Item = u64> {
    let given = blocks.iter().rev().filter(|block| !room.keeps_experts(*block));
    let routings = given.filter_map(|block| Routing::of(room, block));
    let sizes = routings.flat_map(|routing| std::iter::repeat_n(routing.expert.0, usize::from(routing.count)));
    sizes.filter(|bytes| *bytes > 0)
}

/// How many of these experts find a place, one after the other, each on the device with the most memory left.
fn packed(sizes: &[u64], lenders: &[Lender]) -> usize {
    let mut free: Vec<u64> = lenders.iter().map(|lender| lender.free.0).collect();
    let places = sizes.iter().map_while(|bytes| {
        let most = free.iter_mut().max()?;
        *most = most.checked_sub(*bytes)?;
        Some(())
    });
    places.count()
}

/// How many of them find a place whoever is chosen for each: no device is left with room for the largest.
fn certain(sizes: &[u64], lenders: &[Lender]) -> usize {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let mut left: u64 = lenders.iter().map(|lender| (lender.free.0 + 1).saturating_sub(largest)).sum();
    let places = sizes.iter().map_while(|bytes| {
        left = left.checked_sub(*bytes)?;
        Some(())
    });
    places.count()
}

/// Experts of a stage's last blocks that its device has no memory for: of as few blocks as possible, because each costs
/// a round trip, and of a block's experts the last ones. At least `given` go.
fn overflow(
    pool: &Pool<'_, '_>,
    device: &Device,
    blocks: BlockRange,
    layers: LayerRange,
    given: usize,
) -> Option<Vec<usize>> {
    let room = pool.room;
    if !room.shows(device, blocks) {
        return None;
    }
    let needed = room.layers.memory(layers).saturating_add(room.overhead);
    let mut excess = needed.saturating_sub(device.budget).0;
    let mut away: Vec<usize> = Vec::new();
    for block in blocks.iter().rev().filter(|block| !room.keeps_experts(*block)) {
        if excess == 0 && away.len() >= given {
            break;
        }
        if let Some(routing) = Routing::of(room, block).filter(|routing| routing.expert > Bytes::ZERO) {
            let too_many = usize::try_from(excess.div_ceil(routing.expert.0)).unwrap_or(usize::MAX);
            let wanted = too_many.max(given.saturating_sub(away.len()));
            let (before, first) = (away.len(), pool.board.block(block).start);
            let experts = room.shape.block_experts(block);
            away.extend(experts.iter().rev().take(wanted).map(|expert| first + usize::from(expert.0)));
            excess = excess.saturating_sub(routing.expert.0 * (away.len() - before) as u64);
        }
    }
    (excess == 0).then_some(away)
}

fn first_copies(
    pool: &Pool<'_, '_>,
    hub: &Device,
    hubs: &BTreeSet<PeerId>,
    away: &[usize],
    reach: Reach,
) -> Option<Roster> {
    let (room, board) = (pool.room, &pool.board);
    let mut lenders = lenders(room, hub, hubs);
    let place = |lenders: &[Lender]| {
        let mut roster = pool.roster();
        first_holders(board, &mut roster, away.iter().copied(), &mut board.lending(lenders)).ok()?;
        Some(roster)
    };
    match reach {
        Reach::Everybody => return place(&lenders),
        Reach::Together(holders) => {
            return groups::place(board, pool.roster(), away, holders, board.lending(&lenders));
        }
        Reach::Quickest => {}
    }
    // Per byte of memory a device that answers sooner weighs more.
    let per_byte: BTreeMap<PeerId, f64> =
        lenders.iter().map(|lender| (lender.peer, lender.weight / lender.free.0.max(1) as f64)).collect();
    lenders.sort_by(|a, b| per_byte[&b.peer].total_cmp(&per_byte[&a.peer]).then(a.peer.cmp(&b.peer)));
    let needed: Bytes = away.iter().map(|expert| board.bytes(*expert)).sum();
    let mut sums = lenders.iter().scan(Bytes::ZERO, |sum, lender| {
        *sum = sum.saturating_add(lender.free);
        Some(*sum)
    });
    let fewest = sums.position(|sum| sum >= needed)? + 1;
    (fewest..=lenders.len()).find_map(|count| place(&lenders[..count]))
}

/// What these devices have left for experts of a plan that runs, weighed as when it was made.
pub fn lenders_left(room: &Room<'_>, plan: &Plan, left: &BTreeMap<PeerId, Bytes>) -> Vec<Lender> {
    let Some(hub) = plan.stages.first().and_then(|stage| room.device(stage.peer)) else { return Vec::new() };
    let lender = |(peer, free): (&PeerId, &Bytes)| {
        Some(Lender { peer: *peer, weight: weight(room, hub, room.device(*peer)?), free: *free })
    };
    left.iter().filter_map(lender).collect()
}

/// Memory and how soon it answers.
fn weight(room: &Room<'_>, hub: &Device, device: &Device) -> f64 {
    let lent = device.budget.saturating_sub(room.overhead);
    lent.0 as f64 / rounded(answer_millis(room, hub, device))
}

/// What all other devices lend. They weigh by memory and by how soon they answer.
pub(super) fn lenders(room: &Room<'_>, hub: &Device, hubs: &BTreeSet<PeerId>) -> Vec<Lender> {
    let others = room.devices.iter().filter(|device| !hubs.contains(&device.peer));
    let lender = |device: &Device| {
        let free = device.budget.saturating_sub(room.overhead);
        Lender { peer: device.peer, weight: weight(room, hub, device), free }
    };
    let mut lenders: Vec<Lender> = others.map(lender).filter(|lender| lender.free > Bytes::ZERO).collect();
    lenders.sort_by_key(|lender| lender.peer);
    lenders
}

/// Milliseconds of a call for one expert.
pub(super) fn answer_millis(room: &Room<'_>, hub: &Device, holder: &Device) -> f64 {
    let routing = room.shape.all_blocks().iter().find_map(|block| Routing::of(room, block));
    routing.map_or(1.0, |routing| call_millis(room, hub.peer, holder.peer, routing, &routing.asked(1)))
}

/// To a power of two, so that the noise of measurements moves no expert.
fn rounded(millis: f64) -> f64 {
    millis.max(1e-3).log2().round().exp2()
}
