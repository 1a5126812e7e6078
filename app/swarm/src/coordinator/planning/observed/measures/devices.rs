//! The devices that the planner may use, as they were timed and as they are in use.

use potluck_plan::{Bytes, ModelShape};
use potluck_planner::measures::PeerMeasure;
use potluck_planner::{Device, Layers, Speed};

use super::middle;
use crate::coordinator::planning::Planning;
use crate::coordinator::planning::observed::calibrating::Profile;
use crate::members::Members;

/// Bytes of weights a millisecond that a device may claim: from a byte a second to a petabyte a second.
const MIN_SPEED: f64 = 1e-3;
const MAX_SPEED: f64 = 1e12;
/// Milliseconds of overhead that a device may claim for a piece of work.
const MAX_SESSION_MILLIS: f64 = 1e5;
/// Milliseconds of a node for each further device that it asks for experts. In Chromium on an H200 machine a block's work on the host
/// took 0.11 to 0.15 ms longer for each (docs/lab/experts.md).
const ASK_MILLIS: f64 = 0.12;
/// Cost of an LM head that a device may claim, as bytes of weights.
const MAX_COST: f64 = 1e13;

impl Planning {
    /// All available devices.
    pub(in crate::coordinator::planning) fn devices(
        &self,
        members: &Members,
        shape: &ModelShape,
        layers: &Layers,
    ) -> Vec<Device> {
        let declared = members.known.iter().filter(|(_, member)| member.is_available()).filter_map(|(peer, member)| {
            let contribution = member.hello.contribution.as_ref()?;
            let budget = Bytes((contribution.budget.0 as f64 * member.trust) as u64);
            let mut device = Device::declared(*peer, budget, contribution.bandwidth, contribution.sync_millis);
            device.ask_millis = ASK_MILLIS;
            device.binding = contribution.binding;
            self.observed.downloads.apply(&mut device);
            if let Some(rate) = self.observed.measures.storage(*peer, self.observed.downloads.of(*peer)) {
                device.storage = rate;
            }
            device.holds = self.held_blocks(*peer, members, shape);
            device.active = self.active_blocks(*peer);
            device.presence.hidden = member.hello.hidden;
            device.presence.departures = self.observed.churn_history.departures(*peer);
            Some((device, self.observed.calibrating.profile(*peer, layers)))
        });
        let mut devices: Vec<(Device, Option<Profile>)> = declared.collect();
        // The host alone never waits for others.
        if let [(device, Some(profile))] = &mut devices[..]
            && device.peer == members.me
        {
            (profile.session_millis, profile.speed.decode) = profile.alone;
            profile.pauses.clear();
        }
        let share =
            |(device, profile): &(Device, Option<Profile>)| Some(profile.as_ref()?.speed.decode / device.speed.decode);
        let shares: Vec<f64> = devices.iter().filter_map(share).collect();
        let share = middle(shares).unwrap_or(1.0);
        let in_use = self.observed.measures.in_use(&devices);
        for (device, profile) in &mut devices {
            match profile {
                Some(profile) => {
                    device.speed = profile.speed;
                    device.session_millis = profile.session_millis;
                    device.pauses.clone_from(&profile.pauses);
                }
                // Kernels reach the promised bandwidth; a token gets a share of it, probably the same as elsewhere.
                None => {
                    let Speed { decode, prefill } = device.speed;
                    device.speed = Speed { decode: decode * share, prefill: prefill * share };
                }
            }
            match self.observed.measures.peers.get(&device.peer).filter(|measure| measure.is_measured()) {
                Some(measure) => measure.apply(device),
                // A device without work yet would probably slow down in use as much as those with work.
                None => {
                    let Speed { decode, prefill } = device.speed;
                    device.speed = Speed { decode: decode * in_use, prefill: prefill * in_use };
                }
            }
            if let Some(prefill) = self.observed.measures.peers.get(&device.peer).and_then(PeerMeasure::prefill) {
                device.speed.prefill = prefill;
            }
        }
        devices.into_iter().map(|(device, _)| plausible(device)).collect()
    }

    /// The model's layers, with the LM head's cost as the devices timed it.
    pub(in crate::coordinator::planning) fn with_lm_head(&self, layers: Layers, members: &Members) -> Layers {
        let heads = members
            .known
            .keys()
            .filter_map(|peer| self.observed.calibrating.profile(*peer, &layers)?.lm_head)
            .filter(|cost| *cost <= MAX_COST)
            .collect();
        match middle(heads) {
            Some(cost) => layers.with_lm_head(cost),
            None => layers,
        }
    }
}

/// A device within what any has: a made-up speed would leave no meaning to sums with others.
fn plausible(mut device: Device) -> Device {
    let speed = &mut device.speed;
    for speed in [&mut speed.decode, &mut speed.prefill, &mut device.storage] {
        *speed = speed.clamp(MIN_SPEED, MAX_SPEED);
    }
    for millis in [&mut device.session_millis, &mut device.sync_millis] {
        *millis = millis.clamp(0.0, MAX_SESSION_MILLIS);
    }
    device
}
