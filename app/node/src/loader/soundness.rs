//! Checks that all weights are finite. Kernels treat a scale that is not finite as zero, so one broken block would go unnoticed and
//! the answers would be nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use potluck_engine::StagingPart;
use potluck_gguf::first_not_finite;
use potluck_model::UnitMap;

use super::error::LoadError;
use super::jobs::Place;
use crate::open::TensorNames;

/// Checks bytes of weights on their way to the GPU.
#[derive(Clone, Copy)]
pub struct Soundness<'a> {
    /// The model's units.
    pub units: &'a UnitMap,
    /// The names of its tensors.
    pub names: &'a TensorNames,
}

/// What is found in bytes that another thread may be reading.
pub struct Watch(Arc<AtomicBool>);

impl Soundness<'_> {
    /// Checks the bytes of a place.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn check(self, place: Place, bytes: &[u8]) -> Result<(), LoadError> {
        let Some(tensor) = self.units.tensors(place.unit).get(place.tensor) else { return Ok(()) };
        match first_not_finite(tensor.kind, place.offset, bytes) {
            Some(_) => Err(LoadError::NotFinite(self.name(place))),
            None => Ok(()),
        }
    }

    /// Checks the bytes of a place as they are written to a part.
    pub fn watch(self, place: Place, part: &mut StagingPart) -> Watch {
        let found = Arc::new(AtomicBool::new(false));
        if let Some(tensor) = self.units.tensors(place.unit).get(place.tensor) {
            let (kind, found) = (tensor.kind, found.clone());
            part.inspect(move |at, bytes| {
                if first_not_finite(kind, place.offset + at, bytes).is_some() {
                    found.store(true, Ordering::Relaxed);
                }
            });
        }
        Watch(found)
    }

    /// The name of the tensor at a place.
    pub fn name(self, place: Place) -> String {
        let range = self.units.tensors(place.unit).get(place.tensor).map(|tensor| tensor.range);
        let name = range.and_then(|range| self.names.of(range.file, range.offset + place.offset));
        name.unwrap_or_default().to_owned()
    }
}

impl Watch {
    /// What was found, once the part is filled.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn check(&self, checks: Soundness<'_>, place: Place) -> Result<(), LoadError> {
        if self.0.load(Ordering::Relaxed) { Err(LoadError::NotFinite(checks.name(place))) } else { Ok(()) }
    }
}
