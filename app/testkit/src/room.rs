//! Rooms to plan.

use potluck_plan::{Arithmetic, Bytes, ModelShape, PlanEpoch, WireType};
use potluck_planner::{AccessLink, Device, Effort, Hedging, Layers, Links, Planned, Room, Sharing, Shortfall, plan};

use crate::peer;

/// A device with 1 ms a readback; bandwidth in bytes a second.
#[must_use]
pub fn device(id: u8, budget: u64, bandwidth: f64) -> Device {
    Device::declared(peer(id), Bytes(budget), bandwidth, 1.0)
}

/// Everyone but peer 0 is this many milliseconds from the relay, one way; peer 0 is at the relay.
#[must_use]
pub fn star(devices: &[Device], latency_millis: f64) -> Links {
    let mut links = Links::default();
    for device in devices.iter().filter(|device| device.peer != peer(0)) {
        links.set_access(device.peer, AccessLink::latency(latency_millis));
    }
    links
}

/// Everything that a [`Room`] borrows. Peer 0 is the coordinator.
#[derive(Clone, Debug)]
pub struct RoomFixture {
    /// The model's sizes.
    pub shape: ModelShape,
    /// Its layers.
    pub layers: Layers,
    /// Devices that contribute.
    pub devices: Vec<Device>,
    /// The network between them.
    pub links: Links,
    /// Positions that each stage reserves in its KV cache.
    pub context: u32,
    /// Bytes that every working device needs besides weights and KV cache.
    pub overhead: Bytes,
}

impl RoomFixture {
    /// A context of 10 positions, 20 bytes of overhead; all but the coordinator are 5 ms away.
    #[must_use]
    pub fn new(shape: ModelShape, devices: Vec<Device>) -> Self {
        let context = 10;
        let layers = Layers::from_shape(&shape, context, WireType::F32);
        let links = star(&devices, 5.0);
        Self { shape, layers, devices, links, context, overhead: Bytes(20) }
    }

    /// The same with these links.
    #[must_use]
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// The same with another context, which also sets the size of the KV cache.
    #[must_use]
    pub fn with_context(self, context: u32) -> Self {
        let layers = Layers::from_shape(&self.shape, context, WireType::F32);
        Self { layers, context, ..self }
    }

    /// The question to the planner.
    #[must_use]
    pub fn room(&self, sharing: Sharing) -> Room<'_> {
        Room {
            shape: &self.shape,
            layers: &self.layers,
            devices: &self.devices,
            links: &self.links,
            coordinator: peer(0),
            sharing,
            ends: Default::default(),
            replicas: potluck_plan::Pooling::REPLICAS,
            context: self.context,
            overhead: self.overhead,
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            hedging: Hedging::default(),
            effort: Effort::default(),
        }
    }

    /// The best plan.
    ///
    /// # Errors
    /// [`Shortfall`] if the model does not fit.
    pub fn plan(&self, sharing: Sharing) -> Result<Planned, Shortfall> {
        plan(&self.room(sharing))
    }
}
