//! The round trip for a block's experts on other peers: who is called with which probability, and how long until the
//! last answer is back (moex.txt 6.1).

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, FeedForwardShape, Hedging, PeerId, RemoteExperts};

use crate::cost::{millis, speed};
use crate::delay::{Attempt, Call, Delay, HEDGE_QUANTILE, expected_max, hedge_millis};
use crate::layers::FRAME;
use crate::prediction::ExpertTrip;
use crate::{Device, Room};

/// Holders that may compute the same at once, whatever the host asks for.
pub const MAX_COPIES: u8 = 4;

/// A block's router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    /// Bytes of an expert.
    pub expert: Bytes,
    pub count: u16,
    pub used: u16,
}

/// Some experts of a block.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// The probability that a token uses at least one of them.
    called: f64,
    /// The probability that a token uses it, for each.
    each: Vec<f64>,
}

/// What a batch asks of some experts, on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The probability that they are asked at all.
    pub called: f64,
    /// Tokens that use at least one of them.
    pub rows: f64,
    /// One for each token and expert.
    pub vectors: f64,
    /// Distinct experts whose weights are read.
    pub read: f64,
}

impl Routing {
    pub fn of(room: &Room<'_>, block: BlockIndex) -> Option<Self> {
        match room.shape.blocks.get(usize::from(block.0))?.feed_forward {
            FeedForwardShape::Experts { expert, count, used, .. } => Some(Self { expert, count, used }),
            FeedForwardShape::Dense { .. } => None,
        }
    }

    /// How often tokens use these experts: as measured, else all choices are equally likely.
    pub fn share(self, room: &Room<'_>, block: BlockIndex, experts: &[usize]) -> Share {
        match room.layers.expert_shares(block, self.count) {
            Some(shares) => {
                let use_of = |expert: &usize| (f64::from(self.used) * shares[*expert]).min(1.0);
                let each: Vec<f64> = experts.iter().map(use_of).collect();
                Share { called: 1.0 - each.iter().map(|chance| 1.0 - chance).product::<f64>(), each }
            }
            None => {
                let chance = f64::from(self.used) / f64::from(self.count.max(1));
                Share { called: self.called(experts.len()), each: vec![chance.min(1.0); experts.len()] }
            }
        }
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

impl Share {
    /// What a batch of this many tokens asks of them. Tokens choose independently of each other.
    pub fn asked(&self, tokens: u32) -> Asked {
        let (all, sum) = (f64::from(tokens), self.each.iter().sum::<f64>());
        let any = |chance: f64| if tokens == 1 { chance } else { 1.0 - (1.0 - chance).powf(all) };
        Asked {
            called: any(self.called),
            rows: all * self.called,
            vectors: all * sum,
            read: if tokens == 1 { sum } else { self.each.iter().map(|chance| any(*chance)).sum() },
        }
    }
}

impl Asked {
    /// The same, given that they are asked.
    fn given_called(self) -> Self {
        let of = |value: f64| if self.called > 0.0 { value / self.called } else { 0.0 };
        Self { called: 1.0, rows: of(self.rows), vectors: of(self.vectors), read: of(self.read) }
    }
}

/// Bytes of one call and of its answer.
#[derive(Clone, Copy, Debug)]
struct Message {
    out: f64,
    back: f64,
}

/// One vector out for each token, one back for each token and expert.
fn message(room: &Room<'_>, asked: &Asked) -> Message {
    // In the format between stages, of so many values.
    let values = room.layers.message(1, 1).0.saturating_sub(FRAME) / room.wire.bytes(1).max(1);
    let vector = room.expert_wire.bytes(values) as f64;
    let frame = FRAME as f64;
    Message { out: frame + asked.rows * vector, back: frame + asked.vectors * vector }
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
    asked.read * routing.expert.0 as f64 / speed(device.speed.decode)
}

/// The share of experts that each holder has to load first; none of those that it does not name.
pub(crate) type Misses = BTreeMap<ExpertHolder, f64>;

/// Some of a block's experts by the holder that is asked for them: for the first time, or for a copy (their `level`th
/// holder, counted from 0). `None` if one of them has fewer holders.
fn by_holder(
    remote: &RemoteExperts,
    experts: impl IntoIterator<Item = usize>,
    level: usize,
) -> Option<BTreeMap<ExpertHolder, Vec<usize>>> {
    let mut holders: BTreeMap<ExpertHolder, Vec<usize>> = BTreeMap::new();
    for expert in experts {
        holders.entry(*remote.holders[expert].get(level)?).or_default().push(expert);
    }
    Some(holders)
}

/// What is asked of one device in a block.
struct Load {
    asked: Asked,
    message: Message,
    /// Milliseconds of its engine, given that it is asked.
    work_millis: f64,
}

/// A block's experts and their holders, for a batch of one token each of `tokens` conversations.
struct Calls<'a> {
    room: &'a Room<'a>,
    caller: &'a Device,
    remote: &'a RemoteExperts,
    routing: Routing,
    tokens: u32,
    misses: &'a Misses,
    /// What each device is asked for the first time, and for each copy that is asked for at once.
    levels: Vec<BTreeMap<ExpertHolder, Load>>,
}

impl<'a> Calls<'a> {
    fn new(
        room: &'a Room<'a>,
        caller: &'a Device,
        remote: &'a RemoteExperts,
        tokens: u32,
        misses: &'a Misses,
    ) -> Option<Self> {
        let routing = Routing::of(room, remote.block)?;
        let mut calls = Self { room, caller, remote, routing, tokens, misses, levels: Vec::new() };
        let copies = match room.hedging {
            Hedging::Copies(copies) => usize::from(copies.clamp(1, MAX_COPIES)),
            Hedging::Off | Hedging::Adaptive => 1,
        };
        for level in 0..copies {
            // Experts with fewer holders are asked for less often.
            let experts = (0..remote.holders.len()).filter(|expert| remote.holders[*expert].len() > level);
            let holders = by_holder(remote, experts, level).unwrap_or_default();
            let loads = holders.into_iter().map(|(holder, experts)| (holder, calls.load(holder, &experts)));
            let loads = loads.collect();
            calls.levels.push(loads);
        }
        Some(calls)
    }

    fn load(&self, holder: ExpertHolder, experts: &[usize]) -> Load {
        let asked = self.routing.share(self.room, self.remote.block, experts).asked(self.tokens);
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
        missed * asked.read * self.routing.expert.0 as f64 / speed(device.storage)
    }

    /// The own engine computes while others are waited for.
    fn own(&self) -> Option<&Load> {
        self.levels.first()?.get(&ExpertHolder::Own)
    }

    /// Bytes of all calls and of their answers, on average.
    fn bytes(&self) -> Message {
        let loads = self.levels.iter().flatten().filter(|(holder, _)| **holder != ExpertHolder::Own);
        loads.fold(Message { out: 0.0, back: 0.0 }, |sum, (_, load)| Message {
            out: sum.out + load.asked.called * load.message.out,
            back: sum.back + load.asked.called * load.message.back,
        })
    }

    /// How long some experts take at a holder. What else it is asked for in this block, and asked for before, takes its
    /// time too, and calls and answers of other holders pass the caller's own link.
    fn delay(&self, holder: ExpertHolder, experts: &[usize], level: usize) -> Delay {
        let before = self.levels.iter().take(level).filter_map(|loads| loads.get(&holder));
        let queue: f64 = before.map(|load| load.asked.called * load.work_millis).sum();
        let load = self.load(holder, experts);
        let ExpertHolder::Peer(peer) = holder else { return Delay::Fixed(queue + load.work_millis) };
        let all = self.bytes();
        let (out, back) =
            (all.out - load.asked.called * load.message.out, all.back - load.asked.called * load.message.back);
        let others = shared_millis(self.room, self.caller.peer, out, back);
        let alone = call_millis(self.room, self.caller.peer, peer, self.routing, &load.asked);
        let median = alone + self.loading(holder, &load.asked.given_called()) + others + queue;
        Delay::spread(median, self.room.links.spread(peer))
    }

    /// The call of some experts of which this peer is the first holder.
    fn call(&self, peer: PeerId, experts: &[usize]) -> Call {
        let chance = self.levels[0][&ExpertHolder::Peer(peer)].asked.called;
        let first = self.delay(ExpertHolder::Peer(peer), experts, 0);
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
        let holders = by_holder(self.remote, experts.iter().copied(), level)?;
        let (mut devices, mut median, mut variation) = (0.0, 0.0, 0.0);
        for (holder, experts) in &holders {
            let share = self.load(*holder, experts).asked.called / chance;
            let delay = self.delay(*holder, experts, level);
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

/// The round trip for a block's experts, averaged over the routers' choices for a batch of one token each of `tokens`
/// conversations.
pub(crate) fn trip(
    room: &Room<'_>,
    device: &Device,
    remote: &RemoteExperts,
    tokens: u32,
    misses: &Misses,
) -> Option<ExpertTrip> {
    let calls = Calls::new(room, device, remote, tokens, misses)?;
    let firsts = by_holder(remote, 0..remote.holders.len(), 0)?;
    let of_peer = |(holder, experts): (&ExpertHolder, &Vec<usize>)| match holder {
        ExpertHolder::Peer(peer) => Some(calls.call(*peer, experts)),
        ExpertHolder::Own => None,
    };
    let mut asked: Vec<Call> = firsts.iter().filter_map(of_peer).collect();
    let holders = asked.len();
    let most = asked.iter().map(|call| call.attempts.len()).max().unwrap_or(0);
    let Message { out, back } = calls.bytes();
    // A copy that goes out later is sent for some calls only.
    let is_later = room.hedging == Hedging::Adaptive && most > 1;
    let copied = if is_later { 1.0 - HEDGE_QUANTILE } else { 0.0 };
    let others_asked = asked.iter().map(|call| call.chance).sum();
    asked.extend(calls.own().map(|own| Call { chance: own.asked.called, ..Call::sure(Delay::Fixed(own.work_millis)) }));
    Some(ExpertTrip {
        block: remote.block,
        holders,
        others_asked,
        replicas: remote.holders.iter().map(Vec::len).min().unwrap_or(0),
        asked: most,
        sync_millis: millis(device.sync_millis),
        wait_millis: expected_max(&asked),
        bytes: (out + back) * (1.0 + copied),
    })
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

    #[test]
    fn a_batch_shares_its_calls() {
        let share = Share { called: 0.5, each: vec![0.25, 0.25] };
        let one = share.asked(1);
        assert_eq!((one.called, one.rows, one.vectors, one.read), (0.5, 0.5, 0.5, 0.5));
        let two = share.asked(2);
        assert_eq!((two.called, two.rows, two.vectors), (0.75, 1.0, 1.0));
        assert_eq!(two.read, 2.0 * (1.0 - 0.75 * 0.75), "each is read unless both tokens miss it");
    }
}
