//! A model on the CPU, in single precision.

use potluck_engine::reference::{EARLIEST, Reference};
use potluck_node::native::ModelFile;

use super::StudyError;
use super::runner::{Appended, Runner};

/// The CPU reference of the engine.
pub struct OnCpu(Reference);

impl OnCpu {
    /// Reads a whole model into memory, four bytes a weight.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn load(file: &ModelFile) -> Result<Self, StudyError> {
        let (spec, units) = file.spec()?;
        let mut bytes = std::collections::BTreeMap::new();
        for unit in units.units() {
            for index in 0..units.tensors(unit).len() {
                bytes.insert((unit, index), file.tensor(&units, unit, index)?);
            }
        }
        let source = |unit, index| bytes.get(&(unit, index)).cloned().unwrap_or_default();
        Ok(Self(Reference::new(&spec, &units, &source)))
    }

    /// Another conversation with the same weights.
    pub fn fork(&self) -> Self {
        Self(self.0.fork())
    }
}

impl Runner for OnCpu {
    fn restart(&mut self) {
        self.0.restart();
    }

    fn append(&mut self, tokens: &[u32]) -> Result<Appended, StudyError> {
        let mut appended = Appended { early: vec![Vec::new(); EARLIEST], ..Appended::default() };
        for (index, &token) in tokens.iter().enumerate() {
            if index + 1 < tokens.len() {
                self.0.route(token);
            } else {
                appended.next = best(&self.0.next(token));
            }
            let routing = self.0.routing();
            appended.experts.extend(routing.chosen.iter().flatten());
            let early = appended.early.iter_mut().zip(&routing.early);
            early.for_each(|(all, ahead)| all.extend(ahead.iter().flatten()));
        }
        Ok(appended)
    }

    fn align_kv(&mut self, base: &Self) -> Result<(), StudyError> {
        self.0.copy_kv_cache(&base.0);
        Ok(())
    }

    fn foresight(&self) -> usize {
        EARLIEST
    }
}

/// The token with the largest logit, ties to the lowest id.
fn best(logits: &[f32]) -> u32 {
    let best = (0..).zip(logits).max_by(|(a, left), (b, right)| left.total_cmp(right).then(b.cmp(a)));
    best.map_or(0, |(token, _): (u32, _)| token)
}
