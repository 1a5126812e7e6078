//! One sentence for people: why this plan, or what is missing. Its time is shown beside it, because that changes
//! with every token.

use potluck_plan::{Bytes, Ends, ExpertHolder, Plan};

use crate::ends::HostEnds;
use crate::experts::has_experts;
use crate::on_demand::pinned;
use crate::spares::unseen;
use crate::{Room, Sharing, ShortOf, Shortfall, Spare};

pub(crate) fn of_plan(room: &Room<'_>, plan: &Plan, spares: &[Spare]) -> String {
    let hops = match plan.network_hops(room.coordinator) {
        0 => "no message leaves the device".to_owned(),
        1 => "1 message per token".to_owned(),
        n => format!("{n} messages per token"),
    };
    let spare = match spares.len() {
        0 => String::new(),
        1 => "; 1 device is a spare".to_owned(),
        n => format!("; {n} devices are spares"),
    };
    let kept = match room.ends {
        _ if room.is_protected() => " The host protects its model: other devices get only experts.",
        Ends::OnHost => " The first and the last block stay on the host.",
        Ends::Anywhere => "",
    };
    format!("{}, {hops}{spare}.{kept}", work(room, plan))
}

fn devices(n: usize) -> String {
    if n == 1 { "1 device".to_owned() } else { format!("{n} devices") }
}

/// Who does what.
fn work(room: &Room<'_>, plan: &Plan) -> String {
    let pooled = || plan.stages.iter().flat_map(|stage| &stage.remote);
    if !plan.pools.is_empty() {
        let devices = devices(plan.peers().len());
        return format!(
            "The model does not fit: {devices} share its experts and load them from their storage on demand"
        );
    }
    if room.sharing == Sharing::Experts && plan.pooled().next().is_some() {
        let others =
            |holders: &Vec<ExpertHolder>| holders.iter().filter(|holder| **holder != ExpertHolder::Own).count();
        let copies = pooled().flat_map(|remote| &remote.holders).map(others).filter(|copies| *copies > 0).min();
        let devices = devices(plan.peers().len());
        let copies = if copies == Some(1) { "one copy" } else { "several copies" };
        return format!("The experts are spread over {devices}, with {copies} of each");
    }
    let away = pooled().flat_map(|remote| &remote.holders).filter(|holders| !holders.contains(&ExpertHolder::Own));
    match (room.sharing, plan.peers().len(), away.map(Vec::len).min()) {
        (_, _, Some(1)) => "Whole blocks do not fit on every device, so experts are on other devices".to_owned(),
        (_, _, Some(n)) => {
            format!("Whole blocks do not fit on every device, so experts are on other devices, each on {n}")
        }
        (_, 1, None) if plan.is_on_demand() => {
            "The model does not fit: one device answers and loads experts from its storage on demand".to_owned()
        }
        (_, 1, None) => "One device holds the whole model".to_owned(),
        (Sharing::Everyone, n, None) if plan.pooled().next().is_some() => {
            format!("Everyone takes part: {} share the blocks and their experts", devices(n))
        }
        (Sharing::Everyone, n, None) => format!("Everyone takes part: {} share the blocks", devices(n)),
        (Sharing::Fastest | Sharing::Experts, n, None) => {
            format!("The fastest way to fit the model: {} share the blocks", devices(n))
        }
    }
}

pub(crate) fn shortfall(room: &Room<'_>) -> Shortfall {
    let (one, needed) = (room.needed(1), room.needed(room.devices.len()));
    let lent: Bytes = room.devices.iter().map(|device| device.budget).sum();
    let missing = needed.saturating_sub(lent);
    let unseen = room.devices.iter().filter_map(|device| unseen(room, device.peer)).max_by_key(|(_, binding)| *binding);
    if let Some(shortfall) = too_small_for_host(room, needed).or_else(|| too_small_for_ends(room)) {
        return shortfall;
    }
    if room.shape.is_whole() && (unseen.is_none() || room.devices.iter().all(|device| device.budget < one)) {
        return too_small_for_all(room, one);
    }
    let sentence = if let Some((needed, binding)) = unseen.filter(|_| missing == Bytes::ZERO) {
        format!(
            "The devices lend {lent}, but not every GPU can address the KV cache of a block at once: that takes {needed}, and \
             one GPU can address only {binding}. Choose a shorter context."
        )
    } else if missing > Bytes::ZERO {
        format!("The model needs {needed}, and the devices lend {lent}. With {missing} more it fits.")
    } else {
        let block = room.shape.blocks.iter().map(potluck_plan::BlockShape::weights).max().unwrap_or_default();
        format!(
            "The devices lend {lent} in all, but no device has room for one of the parts: one block takes {block}. Lend more on one \
             device."
        )
    };
    Shortfall { needed, contributed: lent, missing, of: ShortOf::Room, sentence }
}

/// The sentence for a host that keeps more to itself than it lends.
fn host_lacks(what: &str, needed: Bytes, lent: Bytes, missing: Bytes) -> String {
    format!(
        "The host keeps {what} to itself. That takes {needed}, and it lends {lent}. Lend {missing} more on the host."
    )
}

/// What the host lacks for what it keeps for itself, if it keeps anything and lacks something.
fn too_small_for_host(room: &Room<'_>, needed: Bytes) -> Option<Shortfall> {
    let kept = pinned(room);
    let lent = room.device(room.coordinator).map_or(Bytes::ZERO, |device| device.budget);
    let missing = kept.saturating_sub(lent);
    if !room.is_protected() || missing == Bytes::ZERO {
        return None;
    }
    let what = if has_experts(room) { "everything but the experts of its model" } else { "its whole model" };
    let sentence = host_lacks(what, kept, lent, missing);
    Some(Shortfall { needed, contributed: lent, missing, of: ShortOf::Room, sentence })
}

/// What the host lacks for the ends of the model, if they stay on it and it lacks something.
fn too_small_for_ends(room: &Room<'_>) -> Option<Shortfall> {
    let ends = HostEnds::of(room);
    let needed = ends.memory(room).saturating_add(room.overhead);
    let lent = room.device(room.coordinator).map_or(Bytes::ZERO, |device| device.budget);
    let missing = needed.saturating_sub(lent);
    if room.ends == Ends::Anywhere || missing == Bytes::ZERO {
        return None;
    }
    let what = match () {
        () if room.shape.is_whole() => "the whole model, which cannot be divided,",
        () if ends.is_all() => "the whole model, which has nothing between its first and its last block,",
        () => "the first and the last block",
    };
    let sentence = host_lacks(what, needed, lent, missing);
    Some(Shortfall { needed, contributed: lent, missing, of: ShortOf::HostForEnds, sentence })
}

/// What is missing for a model that one device must hold.
fn too_small_for_all(room: &Room<'_>, needed: Bytes) -> Shortfall {
    let largest = room.devices.iter().map(|device| device.budget).max().unwrap_or_default();
    let missing = needed.saturating_sub(largest);
    let sentence = format!(
        "This model cannot be divided among devices: one device must lend {needed}, and the most that one lends is {largest}."
    );
    Shortfall { needed, contributed: largest, missing, of: ShortOf::Room, sentence }
}
