//! Spares, the devices without work: why, and what their work would cost.

use potluck_plan::{Bytes, PeerId, Plan};

use crate::search::{Chain, OperatingPoint, Participation, Program, steady_millis};
use crate::{Room, experts};

/// In plans with more stages than this a spare is only tried as an additional stage, not in place of another.
const EXCHANGED_STAGES: usize = 6;

/// A device that contributes and has no work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spare {
    /// Who.
    pub peer: PeerId,
    /// Why.
    pub reason: SpareReason,
}

/// Why a device has no work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpareReason {
    /// Tokens would take longer with it.
    Slower {
        /// Milliseconds more per token.
        millis: f64,
    },
    /// Not even one block fits.
    TooSmall {
        /// Bytes it would have to contribute for the smallest block.
        needed: Bytes,
    },
    /// The model does not fit, and it must not be cut.
    TooSmallForAll {
        /// Bytes it would have to contribute for the whole model.
        needed: Bytes,
    },
    /// Not even one block fits, and experts that would cost more than they help.
    Experts {
        /// Bytes it would have to contribute for the smallest block.
        needed: Bytes,
        /// Milliseconds of the round trip that a token would need for experts on it.
        millis: f64,
    },
    /// Its largest binding is too small for the KV cache of any block.
    Unseen {
        /// Bytes of a block's keys, or of its values.
        needed: Bytes,
        /// Bytes of its largest binding.
        binding: Bytes,
    },
    /// The host keeps everything but experts for itself, and none of those is left for it.
    Protected,
    /// No partition gives it a part: there are more devices than blocks, or the others need what it would take.
    NoPart,
}

impl SpareReason {
    /// One sentence about the device, which is a `noun` ("phone").
    pub fn sentence(&self, noun: &str) -> String {
        match self {
            Self::Slower { millis } if *millis >= 1.0 => {
                format!("With this {noun}, each token would take {millis:.0} ms longer.")
            }
            Self::Slower { .. } => format!("Answers would not be faster with this {noun}."),
            Self::TooSmall { needed } => {
                format!("It lends too little: with {needed} it could hold a block of the model.")
            }
            Self::TooSmallForAll { needed } => {
                format!("It lends too little: this model cannot be divided and needs {needed} on one device.")
            }
            Self::Experts { needed, millis } => format!(
                "It lends too little for a block ({needed}), and it is too far away to hold experts: the round trip to it would \
                 add {millis:.0} ms per token."
            ),
            Self::Unseen { needed, binding } => {
                format!(
                    "Its GPU can address only {binding} at once, and the KV cache of a block needs {needed}. A shorter context \
                     would fix that."
                )
            }
            Self::Protected => {
                "The host protects its model: other devices get only experts, and there are none for this one."
                    .to_owned()
            }
            Self::NoPart => "The other devices already do all the work.".to_owned(),
        }
    }
}

/// Every device without work in the plan.
pub(crate) fn spares(room: &Room<'_>, plan: &Plan, token_millis: f64) -> Vec<Spare> {
    let working = plan.peers();
    if room.devices.iter().all(|device| working.contains(&device.peer)) {
        return Vec::new();
    }
    let chain = Chain::new(room);
    let mut program = Program::new(&chain, None);
    let worker = |peer: PeerId| chain.workers.iter().position(|worker| worker.peer == peer);
    let mut order: Vec<usize> = Vec::new();
    for worker in plan.stages.iter().filter_map(|stage| worker(stage.peer)) {
        // A device with two stages has its part at both ends, which the chain knows.
        if !order.contains(&worker) {
            order.push(worker);
        }
    }
    // Partitions are compared at the plan's own operating point; the winner's steady state differs.
    let planned = program.partition(&order, Participation::All);
    if let Some(partition) = planned.as_ref().filter(|_| chain.pauses()) {
        let point = OperatingPoint::of(&program, partition);
        program.set_point(&point, false);
    }
    let base = planned.map_or(token_millis, |partition| steady_millis(&program, &partition));
    let idle = (0..chain.workers.len()).filter(|worker| !working.contains(&chain.workers[*worker].peer));
    let spare = |worker: usize| {
        let whole = chain.memory(worker, 0, chain.layers);
        let reason = match (too_small(room, &chain, worker), unseen(room, chain.workers[worker].peer)) {
            _ if room.shape.is_whole() && whole > chain.workers[worker].capacity => {
                SpareReason::TooSmallForAll { needed: Bytes(whole).saturating_add(room.overhead) }
            }
            (Some(needed), _) => match experts::round_trip_millis(room, plan, chain.workers[worker].peer) {
                Some(millis) => SpareReason::Experts { needed, millis },
                None => SpareReason::TooSmall { needed },
            },
            (_, Some((needed, binding))) => SpareReason::Unseen { needed, binding },
            _ => match with(&mut program, &order, worker) {
                Some(millis) => SpareReason::Slower { millis: (millis - base).max(0.0) },
                None => SpareReason::NoPart,
            },
        };
        Spare { peer: chain.workers[worker].peer, reason }
    };
    let protected = room.devices.iter().filter(|device| device.experts_only && !working.contains(&device.peer));
    let protected = protected.map(|device| Spare { peer: device.peer, reason: SpareReason::Protected });
    idle.map(spare).chain(protected).collect()
}

/// The budget that the smallest block needs, if that is more than the device's.
fn too_small(room: &Room<'_>, chain: &Chain, worker: usize) -> Option<Bytes> {
    let last = chain.layers - usize::from(chain.ends.1);
    let smallest = (1..last).map(|layer| chain.memory(worker, layer, layer + 1)).min()?;
    (smallest > chain.workers[worker].capacity).then(|| Bytes(smallest).saturating_add(room.overhead))
}

/// The smallest buffer of a block's keys (the largest of a model that must not be cut) and the device's largest binding,
/// if that is smaller.
pub(crate) fn unseen(room: &Room<'_>, peer: PeerId) -> Option<(Bytes, Bytes)> {
    let blocks = room.layers.count().saturating_sub(2);
    let buffers = room.layers.iter().skip(1).take(blocks).map(|layer| layer.buffer);
    let smallest = if room.shape.is_whole() { buffers.max()? } else { buffers.min()? };
    let binding = room.device(peer)?.binding;
    (smallest > binding).then_some((smallest, binding))
}

/// The least milliseconds per token with this worker taking part, in addition to the plan's or in place of one of them.
fn with(program: &mut Program<'_>, order: &[usize], worker: usize) -> Option<f64> {
    let mut orders = Vec::new();
    for at in 0..=order.len() {
        let mut longer = order.to_vec();
        longer.insert(at, worker);
        if order.len() <= EXCHANGED_STAGES {
            orders.extend((0..longer.len()).filter(|out| longer[*out] != worker).map(|out| {
                let mut exchanged = longer.clone();
                exchanged.remove(out);
                exchanged
            }));
        }
        orders.push(longer);
    }
    let partitions = orders.iter().filter_map(|order| program.partition(order, Participation::All));
    let best = partitions.min_by(|a, b| a.millis.total_cmp(&b.millis))?;
    Some(steady_millis(program, &best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_told_why_in_one_sentence() {
        let slower = |millis| SpareReason::Slower { millis }.sentence("phone");
        assert_eq!(slower(39.6), "With this phone, each token would take 40 ms longer.");
        assert_eq!(slower(0.2), "Answers would not be faster with this phone.");
        let needed = Bytes(3_000_000_000);
        let small = SpareReason::TooSmall { needed };
        let expected = "It lends too little: with 3.0 GB it could hold a block of the model.";
        assert_eq!(small.sentence("phone"), expected);
        let experts = SpareReason::Experts { needed, millis: 2.6 };
        let expected = "It lends too little for a block (3.0 GB), and it is too far away to hold experts: the round trip to it would add 3 ms per token.";
        assert_eq!(experts.sentence("phone"), expected);
        let unseen = SpareReason::Unseen { needed: Bytes(268_000_000), binding: Bytes(134_000_000) };
        let expected = "Its GPU can address only 134 MB at once, and the KV cache of a block needs 268 MB. A shorter context would fix that.";
        assert_eq!(unseen.sentence("phone"), expected);
    }
}
