//! Shadow models that lie in files on this machine.

use std::path::Path;

use potluck_engine::Engine;
use potluck_gguf::Metadata;
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::WeightUnit;

use super::{ModelFile, ModelFileError};

/// Whether a file is a shadow of another one.
///
/// # Errors
/// A file cannot be read, or [`ModelFileError::NoShadow`] says what differs.
pub fn check_shadow_of(base: &Path, shadow: &Path) -> Result<(), ModelFileError> {
    ModelFile::open(shadow)?.check_shadow_of(&ModelFile::open(base)?)
}

impl ModelFile {
    /// Whether this is a shadow of another file.
    ///
    /// # Errors
    /// [`ModelFileError::NoShadow`] says what differs; or a model cannot run here.
    pub fn check_shadow_of(&self, base: &Self) -> Result<(), ModelFileError> {
        check_shadow((&base.name, &base.model.metadata, &base.spec()?.0), self)
    }
}

/// A shadow has the base's tokenizer and the shape of its blocks.
///
/// # Errors
/// [`ModelFileError::NoShadow`] says what differs; or the shadow cannot run here.
pub fn check_shadow(
    (base, metadata, spec): (&str, &Metadata, &ModelSpec),
    shadow: &ModelFile,
) -> Result<(), ModelFileError> {
    let no_shadow = |why| ModelFileError::NoShadow { shadow: shadow.name.clone(), base: base.to_owned(), why };
    for (key, why) in [
        ("tokenizer.ggml.tokens", "it has another vocabulary"),
        ("tokenizer.ggml.merges", "it has another tokenizer"),
        ("tokenizer.ggml.pre", "it has another tokenizer"),
    ] {
        if metadata.get(key) != shadow.model.metadata.get(key) {
            return Err(no_shadow(why));
        }
    }
    let of_shadow = shadow.spec()?.0;
    if spec.blocks != of_shadow.blocks || spec.hidden != of_shadow.hidden {
        return Err(no_shadow("its blocks have other sizes"));
    }
    Ok(())
}

/// Loads a unit of a file that lies on this machine, and waits for it.
///
/// # Errors
/// It cannot be read, or the device is lost.
pub fn load_unit(engine: &Engine, file: &ModelFile, units: &UnitMap, unit: WeightUnit) -> Result<(), ModelFileError> {
    for tensor in (0..units.tensors(unit).len()).filter(|tensor| engine.needs(unit, *tensor)) {
        futures::executor::block_on(engine.upload_tensor(unit, tensor, &file.tensor(units, unit, tensor)?))?;
    }
    Ok(engine.finish(unit)?)
}
