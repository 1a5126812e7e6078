//! Experts that do not fit on their stages, spread over other devices.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{
    BlockIndex, BlockRange, Bytes, ExpertHolder, ExpertId, PeerId, Plan, RemoteExperts, Stage, StageId,
};

use super::placement::{ExpertKey, Holders, Lender, Wanted, place};
use super::{groups, repair};
use crate::cost::millis;
use crate::trips::{Routing, call_millis};
use crate::{Device, Room, Sharing};

/// A used expert gets more replicas than others, this many times as many at most.
const MOST: usize = 2;

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

/// Devices for the stages, and the experts for which they have no memory.
pub(super) struct Draft<'a> {
    hubs: Vec<(&'a Device, BlockRange)>,
    away: Vec<Wanted>,
    /// A token takes at least this, milliseconds.
    pub bound: f64,
}

/// Stages with experts elsewhere.
pub(super) struct Spread<'a> {
    pub stages: Vec<Stage>,
    hub: &'a Device,
    hubs: BTreeSet<PeerId>,
    reach: Reach,
    placed: Holders,
    /// Experts of which the stage keeps a copy, for when no other device answers.
    kept: BTreeSet<ExpertKey>,
}

impl<'a> Draft<'a> {
    /// Stages on these devices, whose other experts go elsewhere. `None` if the others have no memory for them, or if
    /// none has to go (the search by layers covers that).
    pub fn new(room: &Room<'a>, hubs: Vec<(&'a Device, BlockRange)>) -> Option<Self> {
        let (hub, _) = *hubs.first()?;
        let lenders = lenders(room, hub, &peers(&hubs));
        if room.sharing == Sharing::Experts {
            let sizes: Vec<u64> = hubs.iter().flat_map(|(_, blocks)| expert_sizes(room, *blocks)).collect();
            for given in [packed(&sizes, &lenders), certain(&sizes, &lenders)] {
                let most = Self::giving(room, hubs.clone(), &lenders, given);
                // Where experts differ in size, hashing may pack fewer of them.
                if let Some(draft) = most.filter(|draft| draft.spread(room, Reach::Everybody).is_some()) {
                    return Some(draft);
                }
            }
        }
        Self::giving(room, hubs, &lenders, 0)
    }

    /// The same. So many experts go, also where their stage has memory for them.
    fn giving(
        room: &Room<'a>,
        hubs: Vec<(&'a Device, BlockRange)>,
        lenders: &[Lender],
        mut given: usize,
    ) -> Option<Self> {
        let last = hubs.len() - 1;
        let mut away: Vec<Wanted> = Vec::new();
        let mut bound = 0.0;
        for (index, (device, blocks)) in hubs.iter().enumerate() {
            let experts = overflow(room, device, *blocks, (index == 0, index == last), given)?;
            given = given.saturating_sub(experts.len());
            let trips = experts.iter().map(|wanted| wanted.expert.0).collect::<BTreeSet<_>>().len();
            // The last of these blocks may keep some of its experts, and not every token needs the trip.
            bound += trips.saturating_sub(1) as f64 * trip_bound(room, device, lenders);
            away.extend(experts);
        }
        let smallest = away.iter().map(|wanted| wanted.bytes.0).min()?.max(1);
        let places: u64 = lenders.iter().map(|lender| lender.free.0 / smallest).sum();
        (places >= away.len() as u64).then_some(Self { hubs, away, bound })
    }

    /// First holders for these experts.
    pub fn spread(&self, room: &Room<'a>, reach: Reach) -> Option<Spread<'a>> {
        let (hub, _) = *self.hubs.first()?;
        let hubs = peers(&self.hubs);
        let placed = first_copies(room, hub, &hubs, &self.away, reach)?;
        let stage = |(index, (device, blocks)): (usize, &(&Device, BlockRange))| {
            Stage::new(StageId(index as u16), device.peer, *blocks)
        };
        let stages = self.hubs.iter().enumerate().map(stage).collect();
        let mut spread = Spread { stages, hub, hubs, reach, placed, kept: BTreeSet::new() };
        spread.fill_in(room);
        Some(spread)
    }
}

fn peers(hubs: &[(&Device, BlockRange)]) -> BTreeSet<PeerId> {
    hubs.iter().map(|(device, _)| device.peer).collect()
}

/// Milliseconds that a round trip takes at least.
fn trip_bound(room: &Room<'_>, hub: &Device, lenders: &[Lender]) -> f64 {
    let devices = lenders.iter().filter_map(|lender| room.device(lender.peer));
    let soonest = devices.map(|device| answer_millis(room, hub, device)).min_by(f64::total_cmp);
    millis(hub.sync_millis) + soonest.unwrap_or(0.0)
}

impl Spread<'_> {
    /// The same with further holders, as far as the others have memory. First copies stay the preferred ones.
    pub fn with_replicas(mut self, room: &Room<'_>) -> Vec<Stage> {
        let held = |peer: PeerId| -> Bytes {
            let keys = self.placed.iter().filter(|(_, holders)| holders.contains(&peer)).map(|(key, _)| *key);
            keys.map(|key| expert_bytes(room, key)).sum()
        };
        let left: Vec<Lender> = lenders(room, self.hub, &self.hubs)
            .into_iter()
            .map(|lender| Lender { free: lender.free.saturating_sub(held(lender.peer)), ..lender })
            .collect();
        let wanted = |block, expert| replicas(room, block, expert);
        match self.reach {
            Reach::Together(_) => groups::replicate(room.shape, &mut self.placed, &left, wanted),
            // First copies lie on few devices. Where answers vary, so do further ones; else everybody takes part.
            Reach::Quickest if room.links.varies() => groups::replicate(room.shape, &mut self.placed, &left, wanted),
            Reach::Everybody | Reach::Quickest => {
                for (block, expert, peer) in repair(room.shape, &self.placed, &left, wanted) {
                    self.placed.entry((block, expert)).or_default().push(peer);
                }
            }
        }
        if room.sharing == Sharing::Experts {
            self.keep_copies(room);
        }
        self.fill_in(room);
        self.stages
    }

    /// A stage with memory left keeps copies of its own experts.
    fn keep_copies(&mut self, room: &Room<'_>) {
        let last = self.stages.len() - 1;
        for (index, stage) in self.stages.iter().enumerate() {
            let Some(device) = room.device(stage.peer) else { continue };
            let layers = room.layers.range(stage.blocks, index == 0, index == last);
            let away = || self.placed.keys().filter(|(block, _)| stage.blocks.contains(*block));
            let gone: Bytes = away().map(|key| expert_bytes(room, *key)).sum();
            let all = room.layers.memory(layers).saturating_add(room.overhead);
            let mut free = device.budget.saturating_sub(all.saturating_sub(gone));
            for key in away() {
                let bytes = expert_bytes(room, *key);
                if bytes <= free {
                    free = free.saturating_sub(bytes);
                    self.kept.insert(*key);
                }
            }
        }
    }

    /// Writes the holders into the stages.
    fn fill_in(&mut self, room: &Room<'_>) {
        for stage in &mut self.stages {
            let blocks: BTreeSet<BlockIndex> =
                self.placed.keys().map(|(block, _)| *block).filter(|block| stage.blocks.contains(*block)).collect();
            let holders = |key: ExpertKey| match self.placed.get(&key) {
                Some(peers) => {
                    let own = self.kept.contains(&key).then_some(ExpertHolder::Own);
                    peers.iter().map(|peer| ExpertHolder::Peer(*peer)).chain(own).collect()
                }
                None => vec![ExpertHolder::Own],
            };
            let remote = |block: BlockIndex| RemoteExperts {
                block,
                holders: room.shape.block_experts(block).into_iter().map(|expert| holders((block, expert))).collect(),
            };
            stage.remote = blocks.into_iter().map(remote).collect();
        }
    }
}

/// How many holders an expert shall have: more if it is used more than others.
fn replicas(room: &Room<'_>, block: BlockIndex, expert: ExpertId) -> usize {
    let count = room.shape.expert_count(block);
    let shares = room.layers.expert_shares(block, count as u16);
    let share = shares.and_then(|shares| shares.get(usize::from(expert.0))).map_or(1.0, |share| share * count as f64);
    let wanted = usize::from(room.replicas).max(1);
    ((wanted as f64 * share).round() as usize).clamp(wanted, MOST * wanted)
}

/// Bytes of each expert of these blocks, in the order in which a stage gives them.
fn expert_sizes(room: &Room<'_>, blocks: BlockRange) -> impl Iterator<Item = u64> {
    let routings = blocks.iter().rev().filter_map(|block| Routing::of(room, block));
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
/// a round trip, and of a block's experts those that are used least. At least `given` go.
fn overflow(
    room: &Room<'_>,
    device: &Device,
    blocks: BlockRange,
    (embeds, has_lm_head): (bool, bool),
    given: usize,
) -> Option<Vec<Wanted>> {
    if !room.shows(device, blocks) {
        return None;
    }
    let layers = room.layers.range(blocks, embeds, has_lm_head);
    let needed = room.layers.memory(layers).saturating_add(room.overhead);
    let mut excess = needed.saturating_sub(device.budget).0;
    let mut away: Vec<Wanted> = Vec::new();
    for block in blocks.iter().rev() {
        if excess == 0 && away.len() >= given {
            break;
        }
        if let Some(routing) = Routing::of(room, block).filter(|routing| routing.expert > Bytes::ZERO) {
            let too_many = usize::try_from(excess.div_ceil(routing.expert.0)).unwrap_or(usize::MAX);
            let wanted = too_many.max(given.saturating_sub(away.len()));
            let wanted_of = |expert| Wanted { expert: (block, expert), bytes: routing.expert, replicas: 1 };
            let before = away.len();
            away.extend(by_use(room, block).into_iter().take(wanted).map(wanted_of));
            excess = excess.saturating_sub(routing.expert.0 * (away.len() - before) as u64);
        }
    }
    (excess == 0).then_some(away)
}

/// A block's experts, the least used first; of equal ones the last.
fn by_use(room: &Room<'_>, block: BlockIndex) -> Vec<ExpertId> {
    let mut experts = room.shape.block_experts(block);
    experts.reverse();
    if let Some(shares) = room.layers.expert_shares(block, experts.len() as u16) {
        experts.sort_by(|a, b| shares[usize::from(a.0)].total_cmp(&shares[usize::from(b.0)]));
    }
    experts
}

fn first_copies(
    room: &Room<'_>,
    hub: &Device,
    hubs: &BTreeSet<PeerId>,
    away: &[Wanted],
    reach: Reach,
) -> Option<Holders> {
    let mut lenders = lenders(room, hub, hubs);
    match reach {
        Reach::Everybody => return place(away, &lenders).ok(),
        Reach::Together(holders) => return groups::place(away, holders, &lenders).ok(),
        Reach::Quickest => {}
    }
    // Per byte of memory a device that answers sooner weighs more.
    let per_byte: BTreeMap<PeerId, f64> =
        lenders.iter().map(|lender| (lender.peer, lender.weight / lender.free.0.max(1) as f64)).collect();
    lenders.sort_by(|a, b| per_byte[&b.peer].total_cmp(&per_byte[&a.peer]).then(a.peer.cmp(&b.peer)));
    let needed: Bytes = away.iter().map(|wanted| wanted.bytes).sum();
    let mut sums = lenders.iter().scan(Bytes::ZERO, |sum, lender| {
        *sum = sum.saturating_add(lender.free);
        Some(*sum)
    });
    let fewest = sums.position(|sum| sum >= needed)? + 1;
    (fewest..=lenders.len()).find_map(|count| place(away, &lenders[..count]).ok())
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
    let block = room.shape.all_blocks().iter().find_map(|block| Some((block, Routing::of(room, block)?)));
    block.map_or(1.0, |(block, routing)| {
        let asked = routing.share(room, block, &[0]).asked(1);
        call_millis(room, hub.peer, holder.peer, routing, &asked)
    })
}

/// To a power of two, so that the noise of measurements moves no expert.
fn rounded(millis: f64) -> f64 {
    millis.max(1e-3).log2().round().exp2()
}

fn expert_bytes(room: &Room<'_>, (block, _): ExpertKey) -> Bytes {
    room.shape.unit_bytes(potluck_plan::WeightUnit::Expert(block, ExpertId(0)))
}
