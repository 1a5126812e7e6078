//! The next block's router, asked with this block's output. It runs on the CPU: router and output are small, and both are
//! here before the next block begins.

use potluck_engine::reference::Routers;
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{BlockIndex, ExpertId, ExpertOutputs, Position, WeightUnit};
use potluck_predict::{Guess, Predictor, Published};

use crate::source::{Source, SourceError};

/// Asks the next router.
pub(super) struct NextRouters {
    routers: std::rc::Rc<Routers>,
    asked: Published,
}

impl NextRouters {
    pub fn new(routers: std::rc::Rc<Routers>) -> Self {
        Self { routers, asked: Published::default() }
    }
}

impl Predictor for NextRouters {
    fn name(&self) -> String {
        "router".to_owned()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        self.asked.predict(position, block)
    }

    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        self.asked.observe(position, block, chosen);
    }

    fn wants_outputs(&self) -> bool {
        true
    }

    fn output(&mut self, position: Position, block: BlockIndex, hidden: &[f32]) {
        let next = BlockIndex(block.0 + 1);
        let experts = self.routers.choose(next, hidden);
        if !experts.is_empty() {
            self.asked.publish(position, next, experts);
        }
    }

    fn restart(&mut self) {
        self.asked.restart();
    }
}

/// Reads the routers of a model.
///
/// # Errors
/// They cannot be read.
pub(super) async fn read(spec: &ModelSpec, units: &UnitMap, source: &dyn Source) -> Result<Routers, SourceError> {
    let mut bytes = std::collections::BTreeMap::new();
    for unit in units.units().filter(|unit| matches!(unit, WeightUnit::Router(_))) {
        for (index, tensor) in units.tensors(unit).iter().enumerate() {
            bytes.insert((unit, index), source.read(tensor.range).await?);
        }
    }
    Ok(Routers::new(spec, units, &|unit, index| bytes.get(&(unit, index)).cloned().unwrap_or_default()))
}

/// The outputs of a block for each token of a batch.
pub(super) fn block_outputs(routers: &Routers, of: &ExpertOutputs) -> Vec<Vec<f32>> {
    let width = of.residual.len() / of.routes.len().max(1);
    let mut rest = of.outputs.as_slice();
    let residuals = of.residual.chunks_exact(width.max(1));
    let each = of.routes.iter().zip(residuals).map(|(route, residual)| {
        let (own, others) = rest.split_at((route.experts.len() * width).min(rest.len()));
        rest = others;
        routers.output(of.block, residual, route, own)
    });
    each.collect()
}
