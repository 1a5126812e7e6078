//! "Everyone takes part": devices without a block hold experts.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, ExpertId, PeerId, RemoteExperts, Stage};

use super::board::Board;
use super::placement::Lender;
use super::spread::lenders;
use crate::cost::predict;
use crate::trips::Routing;
use crate::{Room, placement as plans};

/// Gives devices that have no stage the experts of as few blocks as possible: each such block costs a round trip. The
/// stage keeps its copies, so that nothing is lost with a small device.
pub(super) fn with_experts(room: &Room<'_>, mut stages: Vec<Stage>) -> Vec<Stage> {
    let prediction = predict(room, &plans::plan(room, stages.clone()));
    // The slowest stage gives first, from its last block.
    let mut givers: Vec<usize> = (0..stages.len()).collect();
    givers.sort_by(|a, b| prediction.stages[*b].millis().total_cmp(&prediction.stages[*a].millis()));
    let working: BTreeSet<PeerId> = stages.iter().map(|stage| stage.peer).collect();
    let blocks: Vec<(usize, BlockIndex)> = givers
        .into_iter()
        .flat_map(|giver| stages[giver].blocks.iter().rev().map(move |block| (giver, block)).collect::<Vec<_>>())
        .filter(|(_, block)| !room.keeps_experts(*block))
        .collect();
    let Some(first) = stages.first().and_then(|stage| room.device(stage.peer)) else { return stages };
    let mut idle = lenders(room, first, &working);
    for (giver, block) in blocks {
        let Some(routing) = Routing::of(room, block) else { continue };
        idle.retain(|lender| lender.free >= routing.expert && lender.weight > 0.0);
        if idle.is_empty() {
            break;
        }
        let (mut now, later) = split(idle, usize::from(routing.count));
        let remote = share_out(block, routing, &mut now);
        stages[giver].remote.push(remote);
        stages[giver].remote.sort_by_key(|remote| remote.block);
        idle = later;
    }
    stages
}

/// As many devices as a block has experts, and the rest.
fn split(mut idle: Vec<Lender>, count: usize) -> (Vec<Lender>, Vec<Lender>) {
    let later = idle.split_off(idle.len().min(count));
    (idle, later)
}

/// One expert for each device, then the others for whoever has memory left.
fn share_out(block: BlockIndex, routing: Routing, idle: &mut [Lender]) -> RemoteExperts {
    let mut holders = vec![vec![ExpertHolder::Own]; usize::from(routing.count)];
    for (expert, lender) in idle.iter_mut().enumerate() {
        lender.free = lender.free.saturating_sub(routing.expert);
        holders[expert].insert(0, ExpertHolder::Peer(lender.peer));
    }
    let experts = (0..routing.count).map(|expert| ((block, ExpertId(expert)), routing.expert.max(Bytes(1))));
    let board = Board::new(experts.collect(), idle.iter().map(|lender| lender.peer).collect());
    let mut lenders = board.lending(idle);
    for (expert, holders) in holders.iter_mut().enumerate().skip(idle.len()) {
        if let Some(number) = board.next_holder(expert, board.bytes(expert), &[], &mut lenders) {
            holders.insert(0, ExpertHolder::Peer(board.peer(number)));
        }
    }
    RemoteExperts { block, holders }
}
