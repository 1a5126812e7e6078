//! Hiding a measure from the planner, to see what it is worth (dynamic-partitioning.txt 7.5). The devices stay what they are.

use std::fmt;
use std::str::FromStr;

use potluck_plan::Bytes;

use crate::{Device, Link, Links, Speed};

/// Something that is measured of devices and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Speed and overhead: all devices are taken to be like the middle one.
    Compute,
    /// Memory: all devices are taken to lend what the least one lends, so that what is planned can be loaded.
    Memory,
    /// Latency: messages are taken to need no time but for their bytes.
    Latency,
    /// Bandwidth: bytes are taken to need no time.
    Bandwidth,
    /// What pauses cost: devices are taken to be always busy.
    Pauses,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Latency, Self::Bandwidth, Self::Pauses];

    /// The planner knows nothing of it any more.
    pub fn hide(self, devices: &mut [Device], links: &mut Links) {
        match self {
            Self::Compute => {
                let middle = |of: fn(&Device) -> f64| {
                    let mut values: Vec<f64> = devices.iter().map(of).collect();
                    values.sort_by(f64::total_cmp);
                    values.get(values.len() / 2).copied().unwrap_or(0.0)
                };
                let speed = Speed {
                    decode: middle(|device| device.speed.decode),
                    prefill: middle(|device| device.speed.prefill),
                };
                let (session, sync) = (middle(|device| device.session_millis), middle(|device| device.sync_millis));
                for device in devices {
                    (device.speed, device.session_millis, device.sync_millis) = (speed, session, sync);
                }
            }
            Self::Memory => {
                let least = devices.iter().map(|device| device.budget).min().unwrap_or(Bytes::ZERO);
                devices.iter_mut().for_each(|device| device.budget = least);
            }
            Self::Latency => links.change(|link| Link { latency_millis: 0.0, ..link }),
            Self::Bandwidth => links.change(|link| Link { bandwidth: f64::INFINITY, ..link }),
            Self::Pauses => devices.iter_mut().for_each(|device| device.pauses.clear()),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Pauses => "pauses",
        })
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|measure| measure.to_string() == text);
        known.ok_or_else(|| {
            format!("\"{text}\" is no measure; there are {}.", Self::ALL.map(|known| known.to_string()).join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{BlockShape, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, PlanEpoch, WireType};

    use super::*;
    use crate::{AccessLink, Effort, Layers, Room, Sharing, plan};

    fn peer(index: u8) -> PeerId {
        PeerId([index; 16])
    }

    /// A host that has room for half of the model, and three who could take the rest: one is slow, one is far away, one has a
    /// thin line. Without a measure the trap that it would have shown is taken.
    #[test]
    fn each_measure_keeps_the_plan_out_of_its_trap() {
        let feed_forward = FeedForwardShape::Dense { bytes: Bytes(500) };
        let block = BlockShape { token_mixer: Bytes(500), kv_cache_per_position: Bytes(0), feed_forward };
        let shape = ModelShape {
            model: ModelId([0; 32]),
            hidden: 1_000,
            vocabulary: 10,
            embedding: Bytes(10),
            lm_head: Bytes(0),
            tied_lm_head: false,
            kv_cache: KvCacheType::F32,
            blocks: vec![block; 4],
        };
        let layers = Layers::from_shape(&shape, 64, WireType::F32);
        let device = |index, lends, speed| Device::declared(peer(index), Bytes(lends), speed * 1e6, 0.1);
        let line = |latency_millis, bandwidth| {
            let link = Link { latency_millis, bandwidth };
            AccessLink { up: link, down: link }
        };
        let (slow, far, thin) = (peer(2), peer(3), peer(4));
        let second = |hidden: Option<Measure>, speed_of_slow: f64| {
            let mut devices =
                [device(1, 2_100, 1.0), device(2, 2_500, speed_of_slow), device(3, 2_500, 1.0), device(4, 2_500, 1.0)];
            let mut links = Links::default();
            links.set_access(peer(1), line(0.1, 1e6));
            links.set_access(slow, line(0.1, 1e6));
            links.set_access(far, line(30.0, 1e6));
            links.set_access(thin, line(0.05, 200.0));
            if let Some(measure) = hidden {
                measure.hide(&mut devices, &mut links);
            }
            let room = Room {
                shape: &shape,
                layers: &layers,
                devices: &devices,
                links: &links,
                coordinator: peer(1),
                sharing: Sharing::Fastest,
                context: 64,
                overhead: Bytes(0),
                wire: WireType::F32,
                epoch: PlanEpoch(1),
                effort: Effort::default(),
            };
            let mut peers = plan(&room).expect("two devices have room").plan.peers();
            peers.remove(&peer(1));
            peers.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(second(None, 0.25), [slow], "8 ms for its half, against 60 ms of latency or 40 ms for bytes");
        assert_eq!(second(Some(Measure::Latency), 0.25), [far]);
        assert_eq!(second(Some(Measure::Bandwidth), 0.25), [thin]);
        assert_eq!(second(None, 0.02), [thin], "100 ms for its half is too slow");
        assert_eq!(second(Some(Measure::Compute), 0.02), [slow], "nothing else is against it");
        assert_eq!(second(Some(Measure::Memory), 0.25), [slow]);
        assert_eq!("bandwidth".parse(), Ok(Measure::Bandwidth));
        assert!("tea".parse::<Measure>().is_err_and(|sentence| sentence.contains("compute, memory")));
    }
}
