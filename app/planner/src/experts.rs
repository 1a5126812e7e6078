//! Experts on other peers: where whole blocks do not fit on the small devices of a room.

use potluck_plan::{BlockIndex, BlockRange, Bytes, Holder, RemoteExperts, Stage, StageId};

use crate::cost::{CostModel, Ends};
use crate::{Device, Request};

/// One stage on the device with most memory, with every mixer and as many whole blocks of experts as fit; the experts of
/// the remaining blocks (the last ones) go to the others by room. `None` if even that does not fit.
pub(crate) fn place(request: &Request<'_>) -> Option<Stage> {
    let shape = request.shape;
    let hub = request.devices.iter().max_by_key(|device| (device.budget, device.peer == request.coordinator))?;
    let mut others: Vec<(&Device, Bytes)> = request
        .devices
        .iter()
        .filter(|device| device.peer != hub.peer)
        .map(|device| (device, device.budget.saturating_sub(request.overhead)))
        .collect();
    others.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.peer.cmp(&b.0.peer)));

    let all = shape.all_blocks();
    let everything = CostModel::new(request).stage_bytes(all, Ends { first: true, last: true });
    let experts = |index: BlockIndex| {
        let block = &shape.blocks[usize::from(index.0)];
        Bytes(block.expert_bytes().0 * u64::from(block.expert_count()))
    };
    let mut excess = everything.saturating_sub(hub.budget);
    let mut remote = Vec::new();
    for block in all.iter().rev() {
        if excess == Bytes::ZERO {
            break;
        }
        if experts(block) > Bytes::ZERO {
            remote.push(RemoteExperts { block, holders: spread(request, block, &mut others)? });
            excess = excess.saturating_sub(experts(block));
        }
    }
    if excess > Bytes::ZERO {
        return None;
    }
    remote.reverse();
    Some(Stage { id: StageId(0), peer: hub.peer, blocks: BlockRange::new(0, all.end), remote })
}

/// Gives each expert of a block to the device with most room left, so that a block's experts spread evenly.
fn spread(request: &Request<'_>, block: BlockIndex, others: &mut [(&Device, Bytes)]) -> Option<Vec<Vec<Holder>>> {
    let size = request.shape.blocks[usize::from(block.0)].expert_bytes();
    request
        .shape
        .block_experts(block)
        .iter()
        .map(|_| {
            let (device, room) = others.iter_mut().max_by_key(|(_, room)| *room)?;
            if *room < size {
                return None;
            }
            *room = room.saturating_sub(size);
            Some(vec![Holder::Peer(device.peer)])
        })
        .collect()
}
