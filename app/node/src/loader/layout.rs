//! In which blob of the cache the tensors of a weight unit are.

use std::collections::BTreeSet;

use potluck_model::{UnitMap, UnitTensor};
use potluck_plan::WeightUnit;

/// Where a tensor of a unit is cached.
pub struct TensorLocation {
    /// Index in `UnitMap::tensors`.
    pub tensor: usize,
    /// The unit that has the blob.
    pub blob: WeightUnit,
    /// Offset in the blob.
    pub offset: u64,
}

/// Where the tensors of a unit are cached. The matrix of a tied LM head is the embedding table: it is in the embedding's blob
/// and comes first, so that everyone locks blobs in the same order.
pub fn tensor_locations(units: &UnitMap, unit: WeightUnit) -> Vec<TensorLocation> {
    let (mut shared, mut own, mut end) = (Vec::new(), Vec::new(), 0);
    for (tensor, info) in units.tensors(unit).iter().enumerate() {
        let table =
            (unit == WeightUnit::LmHead).then(|| offset_in(units.tensors(WeightUnit::Embedding), info)).flatten();
        match table {
            Some(offset) => shared.push(TensorLocation { tensor, blob: WeightUnit::Embedding, offset }),
            None => {
                own.push(TensorLocation { tensor, blob: unit, offset: end });
                end += info.range.len;
            }
        }
    }
    shared.append(&mut own);
    shared
}

/// The offset of a tensor in the blob of some others, if it is one of them.
fn offset_in(others: &[UnitTensor], tensor: &UnitTensor) -> Option<u64> {
    let index = others.iter().position(|other| other.range == tensor.range)?;
    Some(others[..index].iter().map(|other| other.range.len).sum())
}

/// Length of a unit's blob once it is complete.
pub fn blob_bytes(units: &UnitMap, unit: WeightUnit) -> u64 {
    let own = tensor_locations(units, unit).into_iter().filter(|location| location.blob == unit);
    own.map(|location| units.tensors(unit)[location.tensor].range.len).sum()
}

/// Bytes of all blobs of a model once they are complete.
pub fn weight_bytes(units: &UnitMap) -> u64 {
    units.units().map(|unit| blob_bytes(units, unit)).sum()
}

/// The blobs that hold the bytes of some units.
pub fn blobs(units: &UnitMap, wanted: impl IntoIterator<Item = WeightUnit>) -> BTreeSet<WeightUnit> {
    wanted.into_iter().flat_map(|unit| tensor_locations(units, unit)).map(|location| location.blob).collect()
}

/// Sorts units by their position in the file. All tabs lock units in this order, so they cannot deadlock.
pub fn sort_units(units: &mut [WeightUnit], map: &UnitMap) {
    units.sort_by_key(|unit| {
        // An LM head that shares the embedding table comes after the embedding.
        let first = tensor_locations(map, *unit).into_iter().map(|location| {
            let range = map.tensors(*unit)[location.tensor].range;
            (location.blob == *unit, range.file, range.offset)
        });
        let first = first.min().map(|(_, file, offset)| (file, offset));
        (first, *unit)
    });
}
