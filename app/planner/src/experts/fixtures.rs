//! Models, rooms and placements for tests.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{
    Arithmetic, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PlanEpoch, WireType,
};

use super::board::{Board, Roster};
use super::placement::{ExpertKey, Holders, Lender, Unplaced, first_holders};
use crate::{Device, Effort, Hedging, Layers, Links, Room, Sharing};

/// Equal blocks with experts of 100 bytes.
pub fn shape(blocks: usize, count: u16, used: u16) -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(40),
        kv_cache_per_position: Bytes(1),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Experts {
            router: Bytes(10),
            expert: Bytes(100),
            count,
            used,
            shared: Bytes::ZERO,
        },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 8,
        vocabulary: 8,
        embedding: Bytes(50),
        lm_head: Bytes(50),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

/// All its experts.
pub fn keys(shape: &ModelShape) -> impl Iterator<Item = ExpertKey> {
    shape
        .all_blocks()
        .iter()
        .flat_map(|block| shape.block_experts(block).into_iter().map(move |expert| (block, expert)))
}

/// A room in which everything is off that is not asked for. The first device is the host.
pub fn room<'a>(shape: &'a ModelShape, layers: &'a Layers, devices: &'a [Device], links: &'a Links) -> Room<'a> {
    Room {
        shape,
        layers,
        devices,
        links,
        coordinator: devices[0].peer,
        sharing: Sharing::Fastest,
        ends: Default::default(),
        replicas: 1,
        hedging: Hedging::Off,
        context: 10,
        overhead: Bytes(20),
        wire: WireType::F32,
        expert_wire: WireType::F32,
        arithmetic: Arithmetic::Exact,
        epoch: PlanEpoch(1),
        effort: Effort::default(),
    }
}

/// An expert that needs holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub expert: ExpertKey,
    /// Its weight bytes.
    pub bytes: Bytes,
    /// How many holders it shall have where memory allows; one at least.
    pub replicas: usize,
}

/// Holders for all of these experts within the devices' memory. Every expert gets its first holder before any gets a
/// second; of those that want one more, the ones that want most come first.
///
/// # Errors
/// [`Unplaced`] if some expert would have no holder.
pub fn place(wanted: &[Wanted], lenders: &[Lender]) -> Result<Holders, Unplaced> {
    let experts: BTreeMap<ExpertKey, Bytes> = wanted.iter().map(|wanted| (wanted.expert, wanted.bytes)).collect();
    let board = Board::new(experts, lenders.iter().map(|lender| lender.peer).collect::<BTreeSet<_>>());
    let mut lending = board.lending(lenders);
    let mut order: Vec<&Wanted> = wanted.iter().collect();
    order.sort_by_key(|wanted| (std::cmp::Reverse(wanted.replicas), wanted.expert));
    let by_number = |wanted: &&Wanted| Some((board.expert(wanted.expert)?, wanted.replicas));
    let order: Vec<(usize, usize)> = order.iter().filter_map(by_number).collect();
    let most = wanted.iter().map(|wanted| wanted.replicas).max().unwrap_or(0).max(1);
    let mut roster = Roster::new(&board, most);
    first_holders(&board, &mut roster, order.iter().map(|(expert, _)| *expert), &mut lending)?;
    for round in 1..most {
        for (expert, _) in order.iter().filter(|(_, replicas)| round < *replicas) {
            let next = board.next_holder(*expert, board.bytes(*expert), roster.holders(*expert), &mut lending);
            next.into_iter().for_each(|number| roster.push(*expert, number));
        }
    }
    let peers = |expert: usize| roster.holders(expert).iter().map(|number| board.peer(*number)).collect();
    Ok((0..board.keys.len()).map(|expert| (board.keys[expert], peers(expert))).collect())
}
