//! How much GPU memory a model needs if one device computes all of it.

use std::collections::BTreeMap;

use potluck_model::FileRange;
use potluck_plan::{Bytes, KvCacheType, WeightUnit};

use super::{Model, overhead};

/// GPU memory for a whole model on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Its weights.
    pub weights: Bytes,
    /// The KV cache of its context, and recurrent states.
    pub kv_cache: Bytes,
    /// Vectors under way, buffers for loading, and the like.
    pub besides: Bytes,
}

impl MemoryNeed {
    /// All of it.
    #[must_use]
    pub fn total(self) -> Bytes {
        [self.weights, self.kv_cache, self.besides].into_iter().sum()
    }
}

impl Model {
    /// The types that its KV cache can have.
    pub fn kv_cache_types(&self) -> Vec<KvCacheType> {
        KvCacheType::ALL.into_iter().filter(|&kv_cache| self.spec.takes(kv_cache)).collect()
    }

    /// What one device needs for all of it, with this type of the KV cache and so many positions of context.
    pub fn memory(&self, kv_cache: KvCacheType, context: u32) -> MemoryNeed {
        let shape = self.spec.shape(&self.units, self.card.id, kv_cache);
        MemoryNeed {
            weights: self.bytes_by_type().values().copied().sum(),
            kv_cache: shape.kv_cache_bytes(shape.all_blocks(), context),
            besides: overhead(&self.spec, context),
        }
    }

    /// The bytes of its weights by their types, as they are called. What units share counts once.
    pub fn bytes_by_type(&self) -> BTreeMap<&'static str, Bytes> {
        let of_unit =
            |unit: WeightUnit| self.units.tensors(unit).iter().map(|tensor| (tensor.range, tensor.kind.name()));
        let place = |(FileRange { file, offset, len }, kind)| ((file, offset), (kind, len));
        let tensors: BTreeMap<_, _> = self.units.units().flat_map(of_unit).map(place).collect();
        tensors.into_values().fold(BTreeMap::new(), |mut types, (kind, len)| {
            let bytes: &mut Bytes = types.entry(kind).or_default();
            *bytes = bytes.saturating_add(Bytes(len));
            types
        })
    }
}
