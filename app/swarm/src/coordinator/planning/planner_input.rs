//! The planner's input, with everything that its [`Room`] borrows.

use potluck_plan::{Arithmetic, PeerId, PlanEpoch, WireType};
use potluck_planner::{Device, Effort, Hedging, Layers, Links, Room, Sharing};

use super::Planning;
use crate::event::{HostCommand, OpenedModel};
use crate::members::Members;

pub(super) struct PlannerInput<'a> {
    model: &'a OpenedModel,
    layers: Layers,
    devices: Vec<Device>,
    links: Links,
    coordinator: PeerId,
    sharing: Sharing,
    replicas: u8,
    hedging: Hedging,
    context: u32,
    arithmetic: Arithmetic,
}

/// Number format between stages.
const WIRE: WireType = WireType::F32;

impl<'a> PlannerInput<'a> {
    pub fn new(planning: &Planning, model: &'a OpenedModel, command: &HostCommand, members: &Members) -> Self {
        let layers = Layers::from_shape(&model.shape, command.context, WIRE);
        let layers = planning.with_lm_head(layers, members);
        let (mut devices, mut links) =
            (planning.devices(members, &model.shape, &layers), planning.observed.measures.links(members));
        command.hidden.iter().for_each(|measure| measure.hide(&mut devices, &mut links));
        Self {
            devices,
            layers,
            model,
            links,
            coordinator: members.me,
            sharing: command.sharing,
            replicas: command.pooling.replicas,
            hedging: command.pooling.hedging,
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
            shape: &self.model.shape,
            layers: &self.layers,
            devices: &self.devices,
            links: &self.links,
            coordinator: self.coordinator,
            sharing: self.sharing,
            replicas: self.replicas,
            hedging: self.hedging,
            context: self.context,
            overhead: self.model.overhead,
            wire: WIRE,
            arithmetic: self.arithmetic,
            epoch,
            effort: Effort::default(),
        }
    }
}
