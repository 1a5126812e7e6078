//! Standing by: units held in advance for the loss of another device (dynamic-partitioning.txt 5.2.5). Plans have
//! priority: their loading interrupts this one and takes its memory.

use potluck_plan::{Arithmetic, Bytes, KvCacheType, ModelId, PeerId, Plan, PlanEpoch, WeightUnit};
use potluck_protocol::{Frame, LoadFault, Prepare, StandbyOrder};

use super::Worker;
use super::loading::joined;
use crate::Action;
use crate::event::LoadRequest;
use crate::event_context::EventContext;
use crate::limits;
use crate::memory::resident_bytes;

pub(super) struct Standby {
    coordinator: PeerId,
    order: StandbyOrder,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Waits until no plan is being loaded.
    Waiting,
    Loading,
    Loaded,
}

/// What the size of units depends on.
pub(super) type Sizes = (ModelId, u32, KvCacheType, Arithmetic);

pub(super) fn plan_sizes(plan: &Plan) -> Sizes {
    (plan.model, plan.context, plan.kv_cache, plan.arithmetic)
}

impl Standby {
    fn sizes(&self) -> Sizes {
        (self.order.model.id, self.order.context, self.order.kv_cache, self.order.arithmetic)
    }

    /// These units, which include the order's, fit the budget.
    fn fits(&self, both: &[WeightUnit], overhead: Bytes, budget: Bytes) -> bool {
        let order = &self.order;
        let needed = resident_bytes(&order.shape, both, order.context);
        needed.saturating_add(overhead.max(order.overhead)) <= budget
    }
}

impl Worker {
    pub fn stand_by(&mut self, coordinator: PeerId, order: StandbyOrder, cx: &mut EventContext) {
        let epoch = order.epoch;
        if let Some(known) = self.standby.as_ref().filter(|known| known.order.epoch == epoch) {
            if known.progress == Progress::Loaded {
                cx.out.send(coordinator, Frame::Prepared(epoch));
            }
            return;
        }
        self.newest_epoch = self.newest_epoch.max(epoch);
        // Nothing is ordered while a plan is prepared.
        self.drop_obsolete(epoch, cx);
        if order.in_advance {
            // The coordinator has no plan any more.
            self.drop_active(cx);
        }
        if !limits::is_order(&order) {
            let fault = LoadFault::Failed("the standby copy is larger than any model".to_owned());
            cx.out.send(coordinator, Frame::PrepareFailed(epoch, fault));
            return;
        }
        if !order.units.is_empty() {
            self.standby = Some(Standby { coordinator, order, progress: Progress::Waiting });
            self.load_standby(cx);
            return;
        }
        self.end_advance(epoch, cx);
        self.standby = None;
        cx.out.send(coordinator, Frame::Prepared(epoch));
        if self.inactive.is_none() {
            self.loading = None;
            self.load(epoch, cx);
        }
    }

    /// A plan has come: what was loaded in advance is freed where no plan needs it.
    pub(super) fn end_advance(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        let is_over = |standby: &mut Standby| standby.order.in_advance && standby.order.epoch < epoch;
        if self.standby.take_if(is_over).is_some() && self.active.is_none() && self.inactive.is_none() {
            self.loading = None;
            self.used = Bytes::ZERO;
            cx.out.act(Action::Unload);
        }
    }

    /// A plan's part takes over what was loaded in advance.
    pub(super) fn take_advance(&mut self, epoch: PlanEpoch) {
        self.standby.take_if(|standby| standby.order.in_advance && standby.order.epoch <= epoch);
    }

    /// True if an order waits until no plan is being loaded.
    pub(super) fn waits_to_stand_by(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.progress == Progress::Waiting)
    }

    pub(super) fn loads_standby(&self, epoch: PlanEpoch) -> bool {
        let loads = |standby: &Standby| standby.order.epoch == epoch && standby.progress == Progress::Loading;
        self.standby.as_ref().is_some_and(loads)
    }

    pub(super) fn holds_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.progress == Progress::Loaded)
    }

    /// Units of an order that are on the GPU, if it is of these sizes.
    pub(super) fn standby_units(&self, wanted: Sizes) -> impl Iterator<Item = WeightUnit> {
        let standby = self.standby.as_ref().filter(|standby| standby.progress == Progress::Loaded);
        let units = standby.filter(|standby| standby.sizes() == wanted).map(|standby| &standby.order.units);
        units.into_iter().flatten().copied()
    }

    /// Loads the order beside the active plan's units, unless a plan is being prepared.
    pub(super) fn load_standby(&mut self, cx: &mut EventContext) {
        if self.inactive.is_some() || !self.waits_to_stand_by() {
            return;
        }
        let Some(contribution) = self.contribution else {
            return self.stop_standing_by(LoadFault::Failed("this device does not lend its GPU any more".into()), cx);
        };
        let me = cx.members.me;
        let (units, pool, of_plan) = match self.of_plans(me) {
            Some((prepare, units)) => {
                (units, prepare.plan.pool_for(me, &prepare.shape), Some((plan_sizes(&prepare.plan), prepare.overhead)))
            }
            None => Default::default(),
        };
        let hints = self.sends_hints(cx.members.me);
        let Some(standby) = &mut self.standby else { return };
        let order = &standby.order;
        let both = joined(units, &order.units);
        let is_of = of_plan.is_none_or(|(sizes, _)| sizes == standby.sizes()) && pool.blocks.is_empty();
        let overhead = of_plan.map_or(Bytes::ZERO, |(_, overhead)| overhead);
        if !is_of || !standby.fits(&both, overhead, contribution.budget) {
            let sentence = "the standby copy does not fit the memory it lends now".to_owned();
            return self.stop_standing_by(LoadFault::NoRoom(sentence), cx);
        }
        let (epoch, model, context, kv_cache) = (order.epoch, order.model.clone(), order.context, order.kv_cache);
        let arithmetic = order.arithmetic;
        standby.progress = Progress::Loading;
        let budget = contribution.budget;
        cx.out.act(Action::Load(LoadRequest {
            epoch,
            model,
            units: both,
            // Nothing stands by beside slots.
            pool,
            pool_experts: 0,
            hints,
            context,
            kv_cache,
            arithmetic,
            budget,
        }));
    }

    pub(super) fn standby_loaded(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        if !self.loads_standby(epoch) {
            return;
        }
        if let Some(standby) = &mut self.standby {
            standby.progress = Progress::Loaded;
            cx.out.send(standby.coordinator, Frame::Prepared(epoch));
        }
        if self.inactive.is_none() {
            self.loading = None;
        }
        cx.out.act(Action::ViewChanged);
    }

    /// A plan's loading interrupts this one.
    pub(super) fn interrupt_standby(&mut self) {
        if let Some(standby) = self.standby.as_mut().filter(|standby| standby.progress == Progress::Loading) {
            standby.progress = Progress::Waiting;
        }
    }

    /// A plan's units with the standby units; `None` if they do not fit together.
    pub(super) fn with_standby(
        &self,
        prepare: &Prepare,
        units: &[WeightUnit],
        budget: Bytes,
    ) -> Option<Vec<WeightUnit>> {
        let Some(standby) = self.standby.as_ref().filter(|standby| standby.progress == Progress::Loaded) else {
            return Some(units.to_vec());
        };
        let order = &standby.order;
        // Slots take all the memory that is left.
        let is_of = plan_sizes(&prepare.plan) == standby.sizes() && !prepare.plan.is_on_demand();
        let both = joined(units.to_vec(), &order.units);
        (is_of && standby.fits(&both, prepare.overhead, budget)).then_some(both)
    }

    /// Drops the standby order and reports it to the coordinator.
    pub(super) fn stop_standing_by(&mut self, fault: LoadFault, cx: &mut EventContext) {
        if let Some(standby) = self.standby.take() {
            if self.inactive.is_none() {
                self.loading = None;
            }
            cx.out.send(standby.coordinator, Frame::PrepareFailed(standby.order.epoch, fault));
            cx.out.act(Action::ViewChanged);
        }
    }
}
