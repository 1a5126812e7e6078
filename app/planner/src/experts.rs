//! Experts on other peers: one or two stages keep all token mixers, and some of their experts live elsewhere (moex.txt
//! 3). A round trip per block costs more than a hop per stage, so this wins where whole blocks do not fit. The same
//! prediction compares both.

use potluck_plan::{BlockIndex, BlockRange, Bytes, ExpertHolder, PeerId, RemoteExperts, Stage, StageId};

use crate::cost::{Routing, call_millis, predict};
use crate::layers::LayerRange;
use crate::{Device, Room, Sharing, placement};

/// How many of the devices with the most memory are tried as the stage that keeps the token mixers.
const HUBS: usize = 8;
/// How many of them are tried in pairs, where none can alone.
const PAIRED_HUBS: usize = 4;

/// Who gets a block's experts.
#[derive(Clone, Copy)]
enum Spread {
    /// To the device with the most memory left: each reads little.
    ByRoom,
    /// To the device that answers first, until it is full: few are called.
    ByTime,
}

/// The better one of a plan by layers and the best with experts elsewhere.
pub(crate) fn better(room: &Room<'_>, layers: Option<Vec<Stage>>) -> Option<Vec<Stage>> {
    let has_experts = room.shape.blocks.iter().any(|block| block.expert_count() > 0);
    if !has_experts || (room.sharing == Sharing::Everyone && layers.is_some()) {
        return layers;
    }
    let millis = |stages: &Vec<Stage>| predict(room, &placement::plan(room, stages.clone())).token_millis;
    let hubs = hubs(room);
    let mut found = single_hubs(room, &hubs);
    if found.is_empty() && layers.is_none() {
        found = paired_hubs(room, &hubs);
    }
    let elsewhere = found.into_iter().map(|stages| (millis(&stages), stages)).min_by(|a, b| a.0.total_cmp(&b.0));
    match (layers, elsewhere) {
        (Some(layers), Some((with, stages))) => Some(if with < millis(&layers) { stages } else { layers }),
        (layers, elsewhere) => layers.or(elsewhere.map(|(_, stages)| stages)),
    }
}

/// The devices with the largest budgets, the coordinator before its equals.
fn hubs<'a>(room: &Room<'a>) -> Vec<&'a Device> {
    let mut hubs: Vec<&Device> = room.devices.iter().collect();
    hubs.sort_by_key(|device| (std::cmp::Reverse(device.budget), device.peer != room.coordinator, device.peer));
    hubs.truncate(HUBS);
    hubs
}

/// One stage with all token mixers.
fn single_hubs(room: &Room<'_>, hubs: &[&Device]) -> Vec<Vec<Stage>> {
    let blocks = room.shape.all_blocks();
    let spread = |spread| hubs.iter().filter_map(move |hub| place(room, &[(*hub, blocks)], spread));
    spread(Spread::ByRoom).chain(spread(Spread::ByTime)).collect()
}

/// Two stages with the token mixers, where no device has memory for all of them.
fn paired_hubs(room: &Room<'_>, hubs: &[&Device]) -> Vec<Vec<Stage>> {
    let end = room.shape.all_blocks().end;
    let paired = &hubs[..hubs.len().min(PAIRED_HUBS)];
    let pairs = paired.iter().flat_map(|first| paired.iter().map(move |second| (*first, *second)));
    let mut found = Vec::new();
    for (first, second) in pairs.filter(|(first, second)| first.peer != second.peer) {
        let cut = |at| [(first, BlockRange::new(0, at)), (second, BlockRange::new(at, end))];
        for spread in [Spread::ByRoom, Spread::ByTime] {
            found.extend((1..end).filter_map(|at| place(room, &cut(at), spread)));
        }
    }
    found
}

/// Stages on these devices; experts that do not fit go to the others. `None` if they do not fit there either, or if
/// none has to go (the search by layers covers that).
fn place(room: &Room<'_>, hubs: &[(&Device, BlockRange)], spread: Spread) -> Option<Vec<Stage>> {
    let is_hub = |peer: PeerId| hubs.iter().any(|(hub, _)| hub.peer == peer);
    let others = room.devices.iter().filter(|device| !is_hub(device.peer));
    let mut others: Vec<(&Device, Bytes)> =
        others.map(|device| (device, device.budget.saturating_sub(room.overhead))).collect();
    others.sort_by_key(|(device, _)| device.peer);
    let mut stages = Vec::new();
    for (index, (hub, blocks)) in hubs.iter().enumerate() {
        let layers = room.layers.range(*blocks, index == 0, index + 1 == hubs.len());
        let mut stage = Stage::new(StageId(index as u16), hub.peer, *blocks);
        stage.remote = overflow(room, hub, layers, &mut others, spread)?;
        stages.push(stage);
    }
    stages.iter().any(|stage| !stage.remote.is_empty()).then_some(stages)
}

/// Experts of a stage's last blocks that its device has no memory for, with their holders.
fn overflow(
    room: &Room<'_>,
    hub: &Device,
    layers: LayerRange,
    others: &mut [(&Device, Bytes)],
    spread: Spread,
) -> Option<Vec<RemoteExperts>> {
    if !room.shows(hub, room.layers.blocks(layers)) {
        return None;
    }
    let needed = room.layers.memory(layers).saturating_add(room.overhead);
    let mut excess = needed.saturating_sub(hub.budget).0;
    let mut remote = Vec::new();
    for block in room.layers.blocks(layers).iter().rev() {
        if excess == 0 {
            break;
        }
        if let Some(routing) = Routing::of(room, block).filter(|routing| routing.expert > Bytes::ZERO) {
            let away = excess.div_ceil(routing.expert.0).min(u64::from(routing.count)) as u16;
            remote.push(spread_block(room, hub, block, routing, away, others, spread)?);
            excess = excess.saturating_sub(routing.expert.0 * u64::from(away));
        }
    }
    remote.reverse();
    (excess == 0).then_some(remote)
}

/// The first experts stay, the last `away` go.
fn spread_block(
    room: &Room<'_>,
    hub: &Device,
    block: BlockIndex,
    routing: Routing,
    away: u16,
    others: &mut [(&Device, Bytes)],
    spread: Spread,
) -> Option<RemoteExperts> {
    let mut holders = vec![vec![ExpertHolder::Own]; usize::from(routing.count - away)];
    let time = |device: &Device| call_millis(room, hub, device.peer, routing, 1);
    for _ in 0..away {
        let fitting = others.iter_mut().filter(|(_, left)| *left >= routing.expert);
        let (device, left) = match spread {
            Spread::ByRoom => fitting.max_by_key(|(_, left)| *left)?,
            Spread::ByTime => fitting.min_by(|a, b| time(a.0).total_cmp(&time(b.0)))?,
        };
        *left = left.saturating_sub(routing.expert);
        holders.push(vec![ExpertHolder::Peer(device.peer)]);
    }
    Some(RemoteExperts { block, holders })
}
