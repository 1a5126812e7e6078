//! Which units an engine holds, which of them are uploaded, and which experts lie in slots.

use std::collections::{BTreeSet, HashMap};

use potluck_model::{TensorRole, UnitMap};
use potluck_plan::WeightUnit;

use crate::runtime::error::EngineError;
use crate::runtime::slots::{ExpertKey, Slots};

/// Units and what is known of their bytes: what is resident is held.
#[derive(Debug, Default)]
pub struct Weights {
    held: BTreeSet<WeightUnit>,
    resident: BTreeSet<WeightUnit>,
    /// The embedding table is resident, uploaded as `Embedding` or through a tied `LmHead`.
    table_resident: bool,
    /// The tensor of each role of the held units, as an index into `UnitMap::tensors`.
    roles: HashMap<(WeightUnit, TensorRole), usize>,
    /// The experts in the slots of the pool.
    slots: Slots,
}

impl Weights {
    /// Holds these units from now on. Those that were held stay resident, and so does the table where memory has one.
    pub fn hold(&mut self, units: &BTreeSet<WeightUnit>, map: &UnitMap, has_table: bool) {
        self.held = units.clone();
        self.resident.retain(|unit| units.contains(unit));
        self.table_resident &= has_table;
        self.roles = units
            .iter()
            .flat_map(|&unit| {
                map.tensors(unit).iter().enumerate().map(move |(index, tensor)| ((unit, tensor.role), index))
            })
            .collect();
    }

    /// Units that are held.
    pub fn held(&self) -> &BTreeSet<WeightUnit> {
        &self.held
    }

    /// Held units whose bytes are complete.
    pub fn resident(&self) -> &BTreeSet<WeightUnit> {
        &self.resident
    }

    /// Whether the unit is held.
    pub fn holds(&self, unit: WeightUnit) -> bool {
        self.held.contains(&unit)
    }

    /// Whether all bytes of a held unit are uploaded.
    pub fn is_resident(&self, unit: WeightUnit) -> bool {
        self.resident.contains(&unit)
    }

    /// Held units whose bytes are not complete.
    pub fn missing(&self) -> BTreeSet<WeightUnit> {
        self.held.difference(&self.resident).copied().collect()
    }

    /// The tensor of a role of a resident unit, as an index into `UnitMap::tensors`.
    pub fn tensor(&self, unit: WeightUnit, role: TensorRole) -> Option<usize> {
        if !self.resident.contains(&unit) {
            return None;
        }
        self.roles.get(&(unit, role)).copied()
    }

    /// False if a tensor with this role is resident although its unit is not finished, as with a shared embedding table.
    pub fn needs(&self, unit: WeightUnit, role: Option<TensorRole>) -> bool {
        let incomplete = self.held.contains(&unit) && !self.resident.contains(&unit);
        let is_table = role == Some(TensorRole::TokenEmbedding);
        self.is_loading(unit) || incomplete && !(is_table && self.table_resident)
    }

    /// Marks a held unit as completely uploaded.
    pub fn finish(&mut self, unit: WeightUnit) -> Result<(), EngineError> {
        if !self.held.contains(&unit) {
            return Err(EngineError::NotHeld(unit));
        }
        self.resident.insert(unit);
        self.table_resident |= self.roles.contains_key(&(unit, TensorRole::TokenEmbedding));
        Ok(())
    }

    /// Marks all held units as missing, and empties the slots.
    pub fn invalidate(&mut self) {
        self.resident.clear();
        self.table_resident = false;
        self.slots.clear();
    }

    /// Holds nothing any more.
    pub fn clear(&mut self) {
        self.held.clear();
        self.resident.clear();
        self.slots = Slots::default();
    }

    /// The experts in the slots of the pool.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The same, to be changed.
    pub fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Replaces the slots by empty ones.
    pub fn set_slots(&mut self, slots: Slots) {
        self.slots = slots;
    }

    /// Whether the unit is an expert in a slot whose bytes are not complete yet.
    pub fn is_loading(&self, unit: WeightUnit) -> bool {
        let WeightUnit::Expert(block, expert) = unit else { return false };
        self.slots.slot((block, expert)).is_some() && !self.slots.is_loaded((block, expert))
    }

    /// Whether all bytes of an expert are in a slot.
    pub fn is_in_slot(&self, expert: ExpertKey) -> bool {
        self.slots.is_loaded(expert)
    }
}
