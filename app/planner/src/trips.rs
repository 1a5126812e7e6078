//! The round trip for a block's experts on other peers: who is called with which probability, and how long until the
//! last answer is back (moex.txt 6.1).

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, FeedForwardShape, PeerId, RemoteExperts};

use crate::cost::{millis, speed};
use crate::delay::{Call, Copy, Delay, expected_max};
use crate::layers::FRAME;
use crate::prediction::ExpertTrip;
use crate::{Device, Room};

/// Where answers vary, the next holder is asked once the first one has taken longer than this share of its answers. So one
/// call in four is made twice, and of what two copies at once gain, about 60% is left at the 99th percentile.
pub const HEDGE_QUANTILE: f64 = 0.75;

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
    let vector = room.layers.message(1, 1).0.saturating_sub(FRAME) as f64;
    let frame = FRAME as f64;
    Message { out: frame + asked.rows * vector, back: frame + asked.vectors * vector }
}

/// Milliseconds of a call that one holder gets alone: there, its work, and back.
pub(crate) fn call_millis(room: &Room<'_>, caller: PeerId, holder: PeerId, routing: Routing, asked: &Asked) -> f64 {
    let asked = asked.given_called();
    let bytes = message(room, &asked);
    let there = room.links.millis(caller, holder, Bytes(bytes.out as u64));
    let back = room.links.millis(holder, caller, Bytes(bytes.back as u64));
    let work = asked.read * routing.expert.0 as f64;
    let computing =
        room.device(holder).map_or(0.0, |device| millis(device.session_millis) + work / speed(device.speed.decode));
    there + computing + back
}

/// A holder of some experts of a block that it is asked for first.
struct First {
    peer: PeerId,
    experts: Vec<usize>,
    /// Who is asked next for most of them, if all of them have a second holder.
    next: Option<PeerId>,
}

fn firsts(remote: &RemoteExperts) -> Vec<First> {
    let mut firsts: BTreeMap<PeerId, Vec<usize>> = BTreeMap::new();
    for (expert, holders) in remote.holders.iter().enumerate() {
        if let Some(ExpertHolder::Peer(peer)) = holders.first() {
            firsts.entry(*peer).or_default().push(expert);
        }
    }
    let first = |(peer, experts): (PeerId, Vec<usize>)| First { peer, next: next(remote, &experts), experts };
    firsts.into_iter().map(first).collect()
}

fn next(remote: &RemoteExperts, experts: &[usize]) -> Option<PeerId> {
    let mut counts: BTreeMap<PeerId, usize> = BTreeMap::new();
    for expert in experts {
        match remote.holders[*expert].get(1)? {
            ExpertHolder::Peer(peer) => *counts.entry(*peer).or_default() += 1,
            ExpertHolder::Own => {}
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(peer, _)| peer)
}

/// The round trip for a block's experts, averaged over the routers' choices for a batch of one token each of `tokens`
/// conversations.
pub(crate) fn trip(room: &Room<'_>, device: &Device, remote: &RemoteExperts, tokens: u32) -> Option<ExpertTrip> {
    let routing = Routing::of(room, remote.block)?;
    let firsts = firsts(remote);
    let asked: Vec<Asked> =
        firsts.iter().map(|first| routing.share(room, remote.block, &first.experts).asked(tokens)).collect();
    let all: Vec<Message> = asked.iter().map(|asked| message(room, &asked.given_called())).collect();
    let sum = |bytes: fn(&Message) -> f64| {
        asked.iter().zip(&all).map(|(asked, message)| asked.called * bytes(message)).sum::<f64>()
    };
    let (out, back) = (sum(|message| message.out), sum(|message| message.back));
    let mut hedged = 0.0;
    let calls = firsts.iter().zip(&asked).zip(&all).map(|((first, asked), message)| {
        let one = |holder: PeerId| {
            // Calls and answers of the other holders pass the caller's own link too.
            let others =
                shared_millis(room, device.peer, out - asked.called * message.out, back - asked.called * message.back);
            let median = call_millis(room, device.peer, holder, routing, asked) + others;
            Delay::spread(median, room.links.spread(holder))
        };
        let delay = one(first.peer);
        let mut copies = vec![Copy { delay: delay.clone(), start_millis: 0.0 }];
        if let Some(next) = first.next.filter(|_| matches!(delay, Delay::LogNormal { .. })) {
            copies.push(Copy { delay: one(next), start_millis: delay.quantile(HEDGE_QUANTILE) });
            hedged += (1.0 - HEDGE_QUANTILE) * asked.called * (message.out + message.back);
        }
        Call { chance: asked.called, copies }
    });
    let calls: Vec<Call> = calls.collect();
    Some(ExpertTrip {
        block: remote.block,
        holders: firsts.len(),
        replicas: remote.holders.iter().map(Vec::len).min().unwrap_or(0),
        asked: calls.iter().map(|call| call.copies.len()).max().unwrap_or(0),
        sync_millis: millis(device.sync_millis),
        wait_millis: expected_max(&calls),
        bytes: out + back + hedged,
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
