//! The planner's input, with everything that its [`Room`] borrows.

use potluck_plan::{Arithmetic, Bytes, Ends, ModelShape, PeerId, PlanEpoch, WireType};
use potluck_planner::{Device, Effort, Hedging, Layers, Links, Room, Sharing};

use super::Planning;
use crate::event::{HostCommand, OpenedModel};
use crate::members::Members;
use crate::mutation::{Mutation, has_mutation};

pub(super) struct PlannerInput {
    shape: ModelShape,
    overhead: Bytes,
    layers: Layers,
    devices: Vec<Device>,
    links: Links,
    coordinator: PeerId,
    sharing: Sharing,
    ends: Ends,
    replicas: u8,
    hedging: Hedging,
    expert_wire: WireType,
    context: u32,
    arithmetic: Arithmetic,
}

/// Number format between stages.
const WIRE: WireType = WireType::F32;

/// The host's choice, if vectors of this width do not share blocks: what else is in a batch must not change a token.
fn expert_wire(width: u32, wanted: WireType) -> WireType {
    match wanted {
        WireType::Int8 if !(width as usize).is_multiple_of(WireType::BLOCK) => WireType::F32,
        wanted => wanted,
    }
}

impl PlannerInput {
    pub fn new(planning: &Planning, model: &OpenedModel, command: &HostCommand, members: &Members) -> Self {
        let layers = Layers::from_shape(&model.shape, command.context, WIRE);
        let layers = planning.with_lm_head(layers, members);
        let (mut devices, mut links) =
            (planning.devices(members, &model.shape, &layers), planning.observed.measures.links(members));
        for device in devices.iter_mut().filter(|device| device.peer != members.me) {
            device.experts_only = command.protect;
        }
        (planning.view)(&mut devices, &mut links);
        Self {
            devices,
            layers,
            shape: model.shape.clone(),
            overhead: model.overhead,
            links,
            coordinator: members.me,
            sharing: command.sharing,
            ends: if has_mutation(Mutation::EndsAnywhere) { Ends::Anywhere } else { command.ends },
            replicas: command.pooling.replicas,
            hedging: command.pooling.hedging,
            expert_wire: expert_wire(model.shape.hidden, command.pooling.wire),
            context: command.context,
            arithmetic: command.arithmetic,
        }
    }

    /// The devices, for limiting what they may hold.
    pub fn devices(&mut self) -> &mut [Device] {
        &mut self.devices
    }

    /// The room as it is now. A plan for it gets this epoch.
    pub fn room(&self, epoch: PlanEpoch) -> Room<'_> {
        Room {
            shape: &self.shape,
            layers: &self.layers,
            devices: &self.devices,
            links: &self.links,
            coordinator: self.coordinator,
            sharing: self.sharing,
            ends: self.ends,
            replicas: self.replicas,
            hedging: self.hedging,
            context: self.context,
            overhead: self.overhead,
            wire: WIRE,
            expert_wire: self.expert_wire,
            arithmetic: self.arithmetic,
            epoch,
            effort: Effort::default(),
        }
    }
}
