//! The search: every useful set and order of devices, or what is missing.

use potluck_plan::{Bytes, PeerId, Plan, Stage, StageId};

use crate::cost::{CostModel, Ends, token_millis};
use crate::{Device, Request, Sharing, experts, layers};

/// Up to this many devices every subset is tried; above, the fastest devices are added one by one.
const ALL_SUBSETS: usize = 10;

/// A plan with what the planner expects of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Weight bytes of each stage (without experts elsewhere).
    pub stage_bytes: Vec<Bytes>,
    /// Milliseconds a token of each stage's engine.
    pub stage_millis: Vec<f64>,
    /// Milliseconds a token in all.
    pub token_millis: f64,
    /// One sentence for people: why this plan, what it costs.
    pub reason: String,
}

/// The room is too small for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Bytes one device would need for everything.
    pub needed: Bytes,
    /// Bytes lent in all.
    pub lent: Bytes,
    /// Bytes that are missing, at least.
    pub missing: Bytes,
    /// One sentence.
    pub sentence: String,
}

/// The best plan for the devices, or what is missing.
///
/// # Errors
/// [`Shortfall`] if the model does not fit on the devices, however cut.
pub fn plan(request: &Request<'_>) -> Result<Planned, Shortfall> {
    let model = CostModel::new(request);
    let best = best_layers(request, &model);
    if let Some(stages) = best.or_else(|| experts::place(request).map(|stage| vec![stage])) {
        return Ok(describe(request, &model, stages));
    }
    Err(shortfall(request, &model))
}

fn best_layers(request: &Request<'_>, model: &CostModel<'_>) -> Option<Vec<Stage>> {
    let order = preferred_order(request);
    let blocks = request.shape.blocks.len() as u16;
    let sets: Vec<Vec<&Device>> = match request.sharing {
        // All of them, then one fewer from the slow end: every device that can take part does.
        Sharing::Everyone => (1..=order.len().min(usize::from(blocks))).rev().map(|n| order[..n].to_vec()).collect(),
        Sharing::Fastest if order.len() <= ALL_SUBSETS => subsets(&order),
        Sharing::Fastest => (1..=order.len()).map(|n| order[..n].to_vec()).collect(),
    };
    let cuts = sets.into_iter().filter_map(|set| {
        let ranges = layers::cut(model, &set, blocks, request.sharing)?;
        let stage = |(i, (device, range)): (usize, (&&Device, _))| Stage::new(StageId(i as u16), device.peer, range);
        Some(set.iter().zip(ranges).enumerate().map(stage).collect::<Vec<_>>())
    });
    match request.sharing {
        Sharing::Everyone => {
            let mut cuts = cuts.peekable();
            let most = cuts.peek()?.len();
            cuts.take_while(|stages| stages.len() == most).min_by(|a, b| by_millis(request, a, b))
        }
        Sharing::Fastest => cuts.min_by(|a, b| by_millis(request, a, b)),
    }
}

fn by_millis(request: &Request<'_>, a: &[Stage], b: &[Stage]) -> std::cmp::Ordering {
    let millis = |stages: &[Stage]| {
        token_millis(request, &wrap(request, stages.to_vec())).0 + layers::move_millis(request.devices, stages)
    };
    // Fewest hops first where the times are equal.
    millis(a).total_cmp(&millis(b)).then(a.len().cmp(&b.len()))
}

/// The coordinator first (its hop is free), then from fast to slow.
fn preferred_order<'a>(request: &Request<'a>) -> Vec<&'a Device> {
    let mut order: Vec<&Device> = request.devices.iter().collect();
    order.sort_by(|a, b| {
        let coordinator = (b.peer == request.coordinator).cmp(&(a.peer == request.coordinator));
        coordinator.then(b.bandwidth.total_cmp(&a.bandwidth)).then(a.peer.cmp(&b.peer))
    });
    order
}

fn subsets<'a>(order: &[&'a Device]) -> Vec<Vec<&'a Device>> {
    let chosen =
        |mask: u32| order.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, device)| *device);
    (1..1u32 << order.len()).map(|mask| chosen(mask).collect()).collect()
}

fn wrap(request: &Request<'_>, stages: Vec<Stage>) -> Plan {
    Plan { epoch: request.epoch, model: request.shape.model, stages, wire: request.wire, context: request.context }
}

fn describe(request: &Request<'_>, model: &CostModel<'_>, stages: Vec<Stage>) -> Planned {
    let plan = wrap(request, stages);
    let (token_millis, stage_millis) = token_millis(request, &plan);
    let ends = |stage: &Stage| Ends { first: plan.embeds(stage.id), last: plan.has_head(stage.id) };
    let remote = |stage: &Stage| -> Bytes {
        let experts = stage.remote.iter().flat_map(|remote| {
            let size = request.shape.blocks[usize::from(remote.block.0)].expert_bytes();
            remote.holders.iter().filter(|holders| !holders.contains(&potluck_plan::Holder::Own)).map(move |_| size)
        });
        experts.sum()
    };
    let stage_bytes =
        plan.stages.iter().map(|stage| model.weight_bytes(stage.blocks, ends(stage)).saturating_sub(remote(stage)));
    let stage_bytes = stage_bytes.collect();
    let reason = reason(request, &plan, token_millis);
    Planned { plan, stage_bytes, stage_millis, token_millis, reason }
}

fn reason(request: &Request<'_>, plan: &Plan, millis: f64) -> String {
    let hops = plan.crossings(request.coordinator);
    let working: std::collections::BTreeSet<PeerId> = plan.peers();
    let spare = request.devices.iter().filter(|device| !working.contains(&device.peer)).count();
    let devices = |n: usize| if n == 1 { "1 device".to_owned() } else { format!("{n} devices") };
    let hops = match hops {
        0 => "no message leaves the device".to_owned(),
        1 => "1 message a token".to_owned(),
        n => format!("{n} messages a token"),
    };
    let work = match (request.sharing, working.len()) {
        _ if plan.stages.iter().any(|stage| !stage.remote.is_empty()) => {
            "Whole blocks do not fit on every device, so experts are on other devices".to_owned()
        }
        (_, 1) => "One device holds the whole model".to_owned(),
        (Sharing::Everyone, n) => format!("Everyone takes part: {} share the blocks", devices(n)),
        (Sharing::Fastest, n) => format!("The fastest way to fit the model: {} share the blocks", devices(n)),
    };
    let spare = if spare == 0 { String::new() } else { format!("; {} kept warm as spare", devices(spare)) };
    format!("{work}, {hops}, about {millis:.0} ms a token expected{spare}.")
}

fn shortfall(request: &Request<'_>, model: &CostModel<'_>) -> Shortfall {
    let all = request.shape.all_blocks();
    let one = model.stage_bytes(all, Ends { first: true, last: true });
    let extra = request.overhead.0 * (request.devices.len().max(1) as u64 - 1);
    let needed = one.saturating_add(Bytes(extra));
    let lent: Bytes = request.devices.iter().map(|device| device.budget).sum();
    let missing = needed.saturating_sub(lent);
    let sentence = if missing > Bytes::ZERO {
        format!("The model needs {needed} and the room lends {lent}: {missing} more and it fits.")
    } else {
        let block = request.shape.blocks.iter().map(potluck_plan::BlockShape::weights).max().unwrap_or_default();
        format!(
            "The room lends {lent}, but no device has room for its part: one block takes {block}, lend more on one device."
        )
    };
    Shortfall { needed, lent, missing, sentence }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use potluck_plan::{BlockShape, FeedForwardShape, ModelId, ModelShape, PlanEpoch, WireType};

    use super::*;

    fn dense(blocks: usize) -> ModelShape {
        let block = BlockShape {
            mixer: Bytes(40),
            state_per_position: Bytes(1),
            feed_forward: FeedForwardShape::Dense { bytes: Bytes(60) },
        };
        ModelShape {
            model: ModelId([1; 32]),
            hidden: 8,
            vocabulary: 8,
            embedding: Bytes(50),
            head: Bytes(50),
            tied_head: false,
            blocks: vec![block; blocks],
        }
    }

    fn moe(blocks: usize) -> ModelShape {
        let mut shape = dense(blocks);
        for block in &mut shape.blocks {
            block.feed_forward = FeedForwardShape::Experts {
                router: Bytes(10),
                expert: Bytes(100),
                count: 4,
                used: 2,
                shared: Bytes::ZERO,
            };
        }
        shape
    }

    fn device(id: u8, budget: u64, bandwidth: f64) -> Device {
        Device {
            peer: PeerId([id; 16]),
            budget: Bytes(budget),
            bandwidth,
            sync_millis: 1.0,
            latency_millis: if id == 0 { 0.0 } else { 5.0 },
            holds: BTreeSet::new(),
        }
    }

    fn ask(shape: &ModelShape, devices: &[Device], sharing: Sharing) -> Result<Planned, Shortfall> {
        plan(&Request {
            shape,
            devices,
            coordinator: PeerId([0; 16]),
            sharing,
            context: 10,
            overhead: Bytes(20),
            wire: WireType::F32,
            epoch: PlanEpoch(1),
        })
    }

    #[test]
    fn a_model_that_fits_stays_on_one_device_when_speed_counts() {
        let devices = [device(0, 2000, 1e6), device(1, 2000, 1e6)];
        let planned = ask(&dense(4), &devices, Sharing::Fastest).expect("it fits");
        assert_eq!(planned.plan.stages.len(), 1);
        assert!(planned.reason.contains("1 device kept warm"), "{}", planned.reason);
    }

    #[test]
    fn everyone_takes_part_gives_each_device_blocks() {
        let devices = [device(0, 2000, 1e6), device(1, 2000, 1e6), device(2, 2000, 1e6)];
        let planned = ask(&dense(6), &devices, Sharing::Everyone).expect("it fits");
        assert_eq!(planned.plan.peers().len(), 3);
        assert_eq!(planned.plan.validate(&dense(6)), Ok(()));
        assert!(planned.plan.stages.iter().all(|stage| stage.blocks.len() == 2), "{:?}", planned.plan.stages);
    }

    #[test]
    fn a_model_too_large_for_one_device_is_cut() {
        // 4 blocks of 100 + 10 state each, 50 + 50 ends, 20 overhead: 560 on one device.
        let alone = ask(&dense(4), &[device(0, 300, 1e6)], Sharing::Fastest).expect_err("too large");
        assert_eq!((alone.needed, alone.missing), (Bytes(560), Bytes(260)));
        assert!(alone.sentence.contains("260 bytes more"), "{}", alone.sentence);
        let three = [device(0, 300, 1e6), device(1, 300, 1e6), device(2, 300, 1e6)];
        let planned = ask(&dense(4), &three, Sharing::Fastest).expect("fits on three");
        assert_eq!(planned.plan.validate(&dense(4)), Ok(()));
        assert_eq!(planned.plan.stages.len(), 2, "two devices are enough, the third would only cost hops");
    }

    #[test]
    fn experts_go_elsewhere_when_no_block_fits_on_the_small_devices() {
        // A block is 450 with its experts; the small devices hold four experts of 100 at most.
        let devices = [device(0, 900, 1e6), device(1, 440, 1e6), device(2, 440, 1e6)];
        let planned = ask(&moe(3), &devices, Sharing::Fastest).expect("fits with experts elsewhere");
        assert_eq!(planned.plan.validate(&moe(3)), Ok(()));
        assert_eq!(planned.plan.stages.len(), 1);
        assert!(!planned.plan.stages[0].remote.is_empty(), "experts must be remote");
        for device in &devices[1..] {
            let bytes: Bytes =
                planned.plan.units_for(device.peer, &moe(3)).iter().map(|unit| moe(3).unit_bytes(*unit)).sum();
            assert!(bytes.saturating_add(Bytes(20)) <= device.budget, "{bytes} on {:?}", device.peer);
        }
    }

    #[test]
    fn what_a_device_holds_breaks_ties() {
        let mut devices = [device(0, 350, 1e6), device(1, 350, 1e6), device(2, 350, 1e6)];
        devices[2].holds = (2..4).map(potluck_plan::BlockIndex).collect();
        let planned = ask(&dense(4), &devices, Sharing::Fastest).expect("fits on two");
        assert!(planned.plan.peers().contains(&PeerId([2; 16])), "the holder must be kept: {:?}", planned.plan.stages);
    }
}
