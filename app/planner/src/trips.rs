//! The round trip for a block's experts on other peers: who is called with which probability, and how long until the
//! last answer is back (moex.txt 6.1).

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, FeedForwardShape, Hedging, PeerId, RemoteExperts, WireType};

use crate::cost::{millis, speed};
use crate::delay::{Attempt, Call, Delay, HEDGE_QUANTILE, hedge_millis};
use crate::layers::FRAME;
use crate::prediction::ExpertTrip;
use crate::{Device, Room};

/// A block's router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    /// Bytes of an expert.
    pub expert: Bytes,
    pub count: u16,
    pub used: u16,
}

/// Who holds the experts of a block, however that is written down.
pub(crate) trait BlockHolders {
    fn block(&self) -> BlockIndex;

    /// Experts of the block.
    fn experts(&self) -> usize;

    /// How many holders an expert has.
    fn count(&self, expert: usize) -> usize;

    /// An expert's holders in order of preference, counted from 0.
    fn holder(&self, expert: usize, level: usize) -> Option<ExpertHolder>;

    /// All experts have the same holders, in the same order.
    fn have_same_holders(&self) -> bool {
        let count = if self.experts() > 0 { self.count(0) } else { 0 };
        let same = |expert: usize| (0..count).all(|level| self.holder(expert, level) == self.holder(0, level));
        (0..self.experts()).all(|expert| self.count(expert) == count && same(expert))
    }
}

impl BlockHolders for &RemoteExperts {
    fn block(&self) -> BlockIndex {
        self.block
    }

    fn experts(&self) -> usize {
        self.holders.len()
    }

    fn count(&self, expert: usize) -> usize {
        self.holders[expert].len()
    }

    fn holder(&self, expert: usize, level: usize) -> Option<ExpertHolder> {
        self.holders[expert].get(level).copied()
    }
}

/// What a token asks of some experts, on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The probability that they are asked at all.
    pub called: f64,
    /// How many of them it uses.
    pub used: f64,
    /// How many vectors come back: one for each that it uses, or their sum.
    pub vectors: f64,
}

impl Routing {
    pub fn of(room: &Room<'_>, block: BlockIndex) -> Option<Self> {
        match room.shape.blocks.get(usize::from(block.0))?.feed_forward {
            FeedForwardShape::Experts { expert, count, used, .. } => Some(Self { expert, count, used }),
            FeedForwardShape::Dense { .. } => None,
        }
    }

    /// What a token asks of so many of the experts, all choices of the router being equally likely.
    pub fn asked(self, held: usize) -> Asked {
        let chance = (f64::from(self.used) / f64::from(self.count.max(1))).min(1.0);
        let used = std::iter::repeat_n(chance, held).sum();
        Asked { called: self.called(held), used, vectors: used }
    }

    /// Probability that a token uses at least one of `held` experts (hypergeometric).
    fn called(self, held: usize) -> f64 {
        let (count, held) = (usize::from(self.count), held.min(usize::from(self.count)));
        let missed = (0..usize::from(self.used)).map(|i| {
            let left = count.saturating_sub(i).max(1) as f64;
            (count.saturating_sub(held).saturating_sub(i)) as f64 / left
        });
        1.0 - missed.product::<f64>()
    }
}

impl Asked {
    /// The same, given that they are asked.
    fn given_called(self) -> Self {
        let given = |all: f64| if self.called > 0.0 { all / self.called } else { 0.0 };
        Self { called: 1.0, used: given(self.used), vectors: given(self.vectors) }
    }
}

/// Bytes of one call and of its answer.
#[derive(Clone, Copy, Debug)]
struct Message {
    out: f64,
    back: f64,
}

/// One vector out, and one back for each expert or for all, given that they are asked.
fn message(room: &Room<'_>, given: &Asked) -> Message {
    // In the format between stages, of so many values.
    let values = room.layers.message(1, 1).0.saturating_sub(FRAME) / room.wire.bytes(1).max(1);
    let vector = room.expert_wire.bytes(values) as f64;
    let frame = FRAME as f64;
    Message { out: frame + vector, back: frame + given.vectors * vector }
}

/// Milliseconds of a call that one holder gets alone: there, its work, and back.
pub(crate) fn call_millis(room: &Room<'_>, caller: PeerId, holder: PeerId, routing: Routing, asked: &Asked) -> f64 {
    let asked = asked.given_called();
    let bytes = message(room, &asked);
    let way = room.links.way(caller, holder, Bytes(bytes.out as u64), Bytes(bytes.back as u64));
    way + work_millis(room, holder, routing, &asked)
}

/// Milliseconds of a holder's engine for a call.
fn work_millis(room: &Room<'_>, holder: PeerId, routing: Routing, asked: &Asked) -> f64 {
    room.device(holder).map_or(0.0, |device| millis(device.session_millis) + work(device, routing, asked))
}

/// Milliseconds to read the experts' weights.
fn work(device: &Device, routing: Routing, asked: &Asked) -> f64 {
    asked.used * routing.expert.0 as f64 / speed(device.speed.decode)
}

/// The share of experts that each holder has to load first; none of those that it does not name.
pub(crate) type Misses = BTreeMap<ExpertHolder, f64>;

/// Some of a block's experts, and the holder that is asked for them.
type Held = (ExpertHolder, Vec<usize>);

/// Some of a block's experts by the holder that is asked for them: for the first time, or for a copy (their `level`th
/// holder, counted from 0). `None` if one of them has fewer holders.
fn by_holder(block: &impl BlockHolders, experts: impl IntoIterator<Item = usize>, level: usize) -> Option<Vec<Held>> {
    let mut held: Vec<Held> = Vec::new();
    for expert in experts {
        let holder = block.holder(expert, level)?;
        match held.iter_mut().find(|(other, _)| *other == holder) {
            Some((_, experts)) => experts.push(expert),
            None => {
                let mut experts = Vec::with_capacity(block.experts().div_ceil(4));
                experts.push(expert);
                held.push((holder, experts));
            }
        }
    }
    held.sort_unstable_by_key(|(holder, _)| *holder);
    Some(held)
}

/// What is asked of one device in a block.
struct Load {
    asked: Asked,
    message: Message,
    /// Milliseconds of its engine, given that it is asked.
    work_millis: f64,
}

/// A block's experts and their holders.
struct Calls<'a, H> {
    room: &'a Room<'a>,
    caller: &'a Device,
    block: &'a H,
    routing: Routing,
    misses: &'a Misses,
    /// What each device is asked for the first time, and for each copy that is asked for at once.
    levels: Vec<Vec<(Held, Load)>>,
    /// Bytes of all calls and of their answers, on average.
    bytes: Message,
    /// How many calls there are, on average.
    asked: f64,
}

impl<'a, H: BlockHolders> Calls<'a, H> {
    fn new(room: &'a Room<'a>, caller: &'a Device, block: &'a H, misses: &'a Misses) -> Option<Self> {
        let (routing, bytes) = (Routing::of(room, block.block())?, Message { out: 0.0, back: 0.0 });
        let mut calls = Self { room, caller, block, routing, misses, levels: Vec::new(), bytes, asked: 0.0 };
        let copies = match room.hedging {
            Hedging::Copies(copies) => usize::from(copies.clamp(1, Hedging::MAX_COPIES)),
            Hedging::Off | Hedging::Adaptive => 1,
        };
        for level in 0..copies {
            // Experts with fewer holders are asked for less often.
            let experts = (0..block.experts()).filter(|expert| block.count(*expert) > level);
            let held = by_holder(block, experts, level).unwrap_or_default();
            let loads = held.into_iter().map(|(holder, experts)| {
                let load = calls.load(holder, &experts);
                ((holder, experts), load)
            });
            let loads = loads.collect();
            calls.levels.push(loads);
        }
        let loads = calls.levels.iter().flatten().filter(|((holder, _), _)| *holder != ExpertHolder::Own);
        (calls.bytes, calls.asked) = loads.fold((bytes, 0.0), |(sum, asked), (_, load)| {
            let out = sum.out + load.asked.called * load.message.out;
            let back = sum.back + load.asked.called * load.message.back;
            (Message { out, back }, asked + load.asked.called)
        });
        Some(calls)
    }

    fn load(&self, holder: ExpertHolder, experts: &[usize]) -> Load {
        let mut asked = self.routing.asked(experts.len());
        // Who has all of them answers with their sum, unless some may have to be loaded first, or a sum has other bits than rounded vectors.
        let has_all = experts.len() == self.block.experts() && !self.misses.contains_key(&holder);
        if has_all && (self.room.expert_wire == WireType::F32 || self.block.have_same_holders()) {
            asked.vectors = asked.called;
        }
        let given = asked.given_called();
        let work_millis = match holder {
            ExpertHolder::Own => millis(self.caller.sync_millis) + work(self.caller, self.routing, &given),
            ExpertHolder::Peer(peer) => work_millis(self.room, peer, self.routing, &given),
        };
        let work_millis = work_millis + self.loading(holder, &given);
        Load { asked, message: message(self.room, &given), work_millis }
    }

    /// Milliseconds for which a holder that loads on demand waits for its storage: (1 − recall) × the time to load.
    fn loading(&self, holder: ExpertHolder, asked: &Asked) -> f64 {
        let device = match holder {
            ExpertHolder::Own => Some(self.caller),
            ExpertHolder::Peer(peer) => self.room.device(peer),
        };
        let (Some(missed), Some(device)) = (self.misses.get(&holder), device) else { return 0.0 };
        missed * asked.used * self.routing.expert.0 as f64 / speed(device.storage)
    }

    /// The own engine computes while others are waited for.
    fn own(&self) -> Option<&Load> {
        load_of(self.levels.first()?, ExpertHolder::Own)
    }

    /// How long some experts take at a holder. What else it is asked for in this block, and asked for before, takes its
    /// time too, and calls and answers of other holders pass the caller's node and its own link.
    fn delay(&self, holder: ExpertHolder, load: &Load, level: usize) -> Delay {
        let before = self.levels.iter().take(level).filter_map(|loads| load_of(loads, holder));
        let queue: f64 = before.map(|load| load.asked.called * load.work_millis).sum();
        let ExpertHolder::Peer(peer) = holder else { return Delay::Fixed(queue + load.work_millis) };
        let all = self.bytes;
        let (out, back) =
            (all.out - load.asked.called * load.message.out, all.back - load.asked.called * load.message.back);
        let others = shared_millis(self.room, self.caller.peer, out, back);
        let others = others + millis(self.caller.ask_millis) * (self.asked - load.asked.called).max(0.0);
        let alone = call_millis(self.room, self.caller.peer, peer, self.routing, &load.asked);
        let median = alone + self.loading(holder, &load.asked.given_called()) + others + queue;
        Delay::spread(median, self.room.links.spread(peer))
    }

    /// The calls of a block, those for its own experts last. `None` if some expert has no holder.
    fn calls(&self) -> Option<Vec<Call>> {
        let firsts = self.levels.first()?;
        let held: usize = firsts.iter().map(|((_, experts), _)| experts.len()).sum();
        let others = firsts.iter().filter(|((holder, _), _)| *holder != ExpertHolder::Own);
        let own = self.own().map(|own| Call { chance: own.asked.called, ..Call::sure(Delay::Fixed(own.work_millis)) });
        let calls = others.map(|((holder, experts), load)| self.call(*holder, experts, load)).chain(own);
        (held == self.block.experts()).then(|| calls.collect())
    }

    /// The call of some experts of which another peer is the first holder.
    fn call(&self, holder: ExpertHolder, experts: &[usize], load: &Load) -> Call {
        let chance = load.asked.called;
        let first = self.delay(holder, load, 0);
        let mut attempts = vec![Attempt::of_one(first.clone(), 0.0)];
        match self.room.hedging {
            Hedging::Off => {}
            Hedging::Copies(_) => {
                attempts.extend((1..self.levels.len()).map_while(|level| self.copy(chance, experts, level, 0.0)));
            }
            Hedging::Adaptive if matches!(first, Delay::LogNormal { .. }) => {
                let start = hedge_millis(|share| Some(first.quantile(share))).unwrap_or(f64::INFINITY);
                attempts.extend(self.copy(chance, experts, 1, start));
            }
            Hedging::Adaptive => {}
        }
        Call { chance, attempts }
    }

    /// The same experts asked of their next holders, which need not be one: those take about as long as each other.
    fn copy(&self, chance: f64, experts: &[usize], level: usize, start_millis: f64) -> Option<Attempt> {
        let held = by_holder(self.block, experts.iter().copied(), level)?;
        let (mut devices, mut median, mut variation) = (0.0, 0.0, 0.0);
        for (holder, experts) in &held {
            let load = self.load(*holder, experts);
            let share = load.asked.called / chance;
            let delay = self.delay(*holder, &load, level);
            devices += share;
            median += share * delay.quantile(0.5);
            if let Delay::LogNormal { sigma, .. } = delay {
                variation += share * sigma;
            }
        }
        let delay = Delay::spread(median / devices, variation / devices);
        (devices > 0.0).then(|| Attempt { delay, devices: devices.max(1.0), start_millis })
    }
}

fn load_of(loads: &[(Held, Load)], holder: ExpertHolder) -> Option<&Load> {
    loads.iter().find(|((other, _), _)| *other == holder).map(|(_, load)| load)
}

/// The round trip for a block's experts, averaged over the routers' choices, without the wait for these calls.
pub(crate) fn trip(
    room: &Room<'_>,
    device: &Device,
    block: &impl BlockHolders,
    misses: &Misses,
) -> Option<(ExpertTrip, Vec<Call>)> {
    let asking = Calls::new(room, device, block, misses)?;
    let calls = asking.calls()?;
    let others = &calls[..calls.len() - usize::from(asking.own().is_some())];
    let most = others.iter().map(|call| call.attempts.len()).max().unwrap_or(0);
    // A copy that goes out later is sent for some calls only.
    let is_later = room.hedging == Hedging::Adaptive && most > 1;
    let copied = if is_later { 1.0 - HEDGE_QUANTILE } else { 0.0 };
    let Message { out, back } = asking.bytes;
    let trip = ExpertTrip {
        block: block.block(),
        holders: others.len(),
        others_asked: others.iter().map(|call| call.chance).sum(),
        replicas: (0..block.experts()).map(|expert| block.count(expert)).min().unwrap_or(0),
        asked: most,
        sync_millis: millis(device.sync_millis),
        wait_millis: 0.0,
        bytes: (out + back) * (1.0 + copied),
    };
    Some((trip, calls))
}

/// Milliseconds that bytes of other calls take on a peer's own access link.
fn shared_millis(room: &Room<'_>, peer: PeerId, out: f64, back: f64) -> f64 {
    let (up, down) = (room.links.up(peer), room.links.down(peer));
    up.transfer_millis(Bytes(out.max(0.0) as u64)) + down.transfer_millis(Bytes(back.max(0.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_that_a_holder_is_called_is_hypergeometric() {
        let routing = Routing { expert: Bytes(10), count: 4, used: 2 };
        // Two of four are chosen; both are among the other two in 1 of 6 cases.
        assert!((routing.called(2) - 5.0 / 6.0).abs() < 1e-12, "{}", routing.called(2));
        assert_eq!(routing.called(0), 0.0);
        assert_eq!(routing.called(4), 1.0);
    }
}
