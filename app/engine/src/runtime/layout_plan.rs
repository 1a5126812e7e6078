//! Plans the memory of an engine: what it holds, within a budget and a device's limits.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{BlockIndex, Bytes, ExpertId, PooledExperts, WeightUnit};

use crate::runtime::error::LayoutError;
use crate::runtime::layout::{ExpertPlaces, Layout, PARAMS_COUNT, PARAMS_STRIDE};
use crate::runtime::placement::Planner;
use crate::runtime::settings::Settings;
use crate::runtime::sizes::{readback_sizes, scratch_sizes};
use crate::runtime::tensors;

impl Layout {
    /// Plans memory for `held` within the budget and the device limits. Prefill chunks are as large as the remaining
    /// memory allows.
    ///
    /// # Errors
    /// The units exceed the budget or a device limit, or a tensor is missing or has a shape that no kernel supports.
    pub fn plan(
        spec: &ModelSpec,
        units: &UnitMap,
        held: &BTreeSet<WeightUnit>,
        settings: &Settings,
        limits: &wgpu::Limits,
    ) -> Result<Layout, LayoutError> {
        Self::plan_pooled(spec, units, (held, &PooledExperts::default()), settings, limits)
    }

    /// As [`Layout::plan`], with slots for the experts of some blocks.
    ///
    /// # Errors
    /// As [`Layout::plan`]; also if `held` names experts of the pool, a block has none, or the slots are too few.
    pub fn plan_pooled(
        spec: &ModelSpec,
        units: &UnitMap,
        held: (&BTreeSet<WeightUnit>, &PooledExperts),
        settings: &Settings,
        limits: &wgpu::Limits,
    ) -> Result<Layout, LayoutError> {
        Self::plan_after(&BTreeMap::new(), spec, units, held, settings, limits)
    }

    /// As [`Layout::plan_pooled`]. Where a block gets more experts, those of `before` stay where they are: moving them
    /// takes twice the memory, and time on a busy GPU.
    ///
    /// # Errors
    /// As [`Layout::plan_pooled`].
    pub(crate) fn plan_after(
        before: &BTreeMap<BlockIndex, ExpertPlaces>,
        spec: &ModelSpec,
        units: &UnitMap,
        held: (&BTreeSet<WeightUnit>, &PooledExperts),
        settings: &Settings,
        limits: &wgpu::Limits,
    ) -> Result<Layout, LayoutError> {
        let mut settings = settings.clone();
        loop {
            let fewer = settings.prefill_tokens / 2;
            match Self::plan_rows(before, spec, units, held.0, held.1, &settings, limits) {
                Err(LayoutError::TooLarge { .. } | LayoutError::BufferLimit { .. })
                    if fewer >= Settings::MIN_PREFILL_TOKENS =>
                {
                    settings.prefill_tokens = fewer;
                }
                planned => return planned,
            }
        }
    }

    fn plan_rows(
        before: &BTreeMap<BlockIndex, ExpertPlaces>,
        spec: &ModelSpec,
        units: &UnitMap,
        held: &BTreeSet<WeightUnit>,
        pool: &PooledExperts,
        settings: &Settings,
        limits: &wgpu::Limits,
    ) -> Result<Layout, LayoutError> {
        tensors::check_model(spec, settings.kv_cache)?;
        let mut planner = Planner::new(spec, units, limits);
        for &unit in held {
            match unit {
                WeightUnit::Expert(..) => {}
                _ => planner.unit(unit)?,
            }
        }
        planner.all_experts(held, before)?;
        planner.pool(held, pool)?;
        planner.kv_cache(held, settings)?;
        // Buffers for intermediate vectors and results do not depend on which experts are loaded.
        let mut sized = held.clone();
        sized.extend(pool.blocks.iter().map(|&block| WeightUnit::Expert(block, ExpertId(0))));
        planner.scratch(&sized, settings)?;
        let layout = planner.finish(settings, &sized);
        if layout.total > settings.budget {
            return Err(LayoutError::TooLarge { needed: layout.total, budget: settings.budget });
        }
        Ok(layout)
    }
}

/// Scratch, parameter, staging and readback bytes of a device that holds every unit: what a planner reserves. A device
/// with memory to spare uses larger prefill chunks.
pub fn fixed_overhead(spec: &ModelSpec, settings: &Settings) -> Bytes {
    let prefill_tokens = settings.prefill_tokens.min(Settings::MIN_PREFILL_TOKENS);
    let settings = &Settings { prefill_tokens, ..settings.clone() };
    let every: BTreeSet<WeightUnit> = [WeightUnit::Embedding, WeightUnit::LmHead]
        .into_iter()
        .chain((0..spec.blocks.len() as u16).flat_map(|b| {
            let block = BlockIndex(b);
            [
                WeightUnit::TokenMixer(block),
                WeightUnit::Dense(block),
                WeightUnit::Router(block),
                WeightUnit::SharedExpert(block),
                WeightUnit::Expert(block, ExpertId(0)),
            ]
        }))
        .collect();
    let scratch: u64 = scratch_sizes(spec, &every, settings).into_values().sum();
    let readback = readback_sizes(spec, &every, settings);
    let pools = u64::from(settings.in_flight) * readback.most
        + readback.logits
        + u64::from(settings.staging_bytes) * u64::from(settings.staging_count);
    Bytes(scratch + pools + PARAMS_STRIDE * PARAMS_COUNT + potluck_shaders::CODEBOOK_BYTES)
}
