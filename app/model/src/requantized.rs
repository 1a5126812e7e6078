//! The units of the same model in another type: a shadow's, made from its base's (od-moe.txt 3.2).

use potluck_gguf::{GgufError, TensorType, dequantize, fitting, quantize};

use crate::{FileRange, TensorRole, UnitMap, UnitTensor};

/// A base whose experts take more bits a weight than this is more than a four-bit model. Four-bit types take up to five.
const FOUR_BITS: f64 = 5.2;

impl UnitMap {
    /// The same units with their matrices as `kind`, as [`potluck_gguf::Requantized`] writes them: routers and vectors keep
    /// their bytes. A range begins where the base's does, and is as long as the new bytes.
    ///
    /// # Errors
    /// [`GgufError::UnsupportedType`] if floats cannot be turned into `kind`, or a matrix into floats.
    pub fn requantized(&self, kind: TensorType) -> Result<Self, GgufError> {
        quantize(kind, &[], &mut Vec::new())?;
        let mut units = Self::default();
        for unit in self.units() {
            let tensors = self.tensors(unit).iter().map(|tensor| requantized(tensor, kind));
            units.insert(unit, tensors.collect::<Result<_, _>>()?);
        }
        Ok(units)
    }

    /// The type that a shadow of these units gets: of about four bits, or of fewer than three if the experts have about four.
    /// `None` without experts.
    #[must_use]
    pub fn shadow_type(&self) -> Option<TensorType> {
        let is_expert =
            |tensor: &&UnitTensor| matches!(tensor.role, TensorRole::Gate | TensorRole::Up | TensorRole::Down);
        let experts = self.units().filter(|unit| matches!(unit, potluck_plan::WeightUnit::Expert(..)));
        let matrices = experts.flat_map(|unit| self.tensors(unit).iter().filter(is_expert));
        let (weights, bytes) = matrices.fold((0.0, 0.0), |(weights, bytes), tensor| {
            (weights + f64::from(tensor.rows) * f64::from(tensor.cols), bytes + tensor.range.len as f64)
        });
        let is_small = 8.0 * bytes <= FOUR_BITS * weights;
        (weights > 0.0).then_some(if is_small { TensorType::Q2_K } else { TensorType::Q4_0 })
    }
}

fn requantized(tensor: &UnitTensor, kind: TensorType) -> Result<UnitTensor, GgufError> {
    let keeps = tensor.rows == 1 || tensor.role.is_vector() || tensor.role == TensorRole::Router;
    let kind = if keeps { tensor.kind } else { fitting(kind, u64::from(tensor.cols)) };
    if kind == tensor.kind {
        return Ok(tensor.clone());
    }
    dequantize(tensor.kind, &[], &mut [])?;
    // A fitting type's rows are whole blocks.
    let row = kind.row_bytes(u64::from(tensor.cols)).unwrap_or_default();
    let range = FileRange { len: row * u64::from(tensor.rows), ..tensor.range };
    Ok(UnitTensor { kind, range, ..tensor.clone() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_gguf::synthetic::{Architecture, Synthetic};
    use potluck_gguf::{Requantized, join, parse};
    use potluck_plan::WeightUnit;

    use super::*;
    use crate::ModelSpec;

    /// Types, rows and sizes of a unit's tensors.
    fn sizes(units: &UnitMap, unit: WeightUnit) -> Vec<(TensorRole, TensorType, u32, u64)> {
        units.tensors(unit).iter().map(|tensor| (tensor.role, tensor.kind, tensor.rows, tensor.range.len)).collect()
    }

    #[test]
    fn units_become_what_a_requantized_file_has() {
        for architecture in Architecture::ALL {
            for from in [TensorType::F32, TensorType::Q8_0] {
                let file = Synthetic { architecture, ..Synthetic::default() }.with_type(from).to_bytes().unwrap();
                let model = join([parse(&file).unwrap()]).unwrap();
                let base = ModelSpec::from_gguf(&model).unwrap().1;
                for kind in [TensorType::Q4_0, TensorType::Q2_K] {
                    let plan = Requantized::new(&model, kind).unwrap();
                    let mut zeros = |tensor: &potluck_gguf::TensorInfo| vec![0; tensor.bytes as usize];
                    let written = plan.writer.to_bytes(&mut zeros).unwrap();
                    let of_file = ModelSpec::from_gguf(&join([parse(&written).unwrap()]).unwrap()).unwrap().1;
                    let units = base.requantized(kind).unwrap();
                    for unit in of_file.units() {
                        assert_eq!(sizes(&units, unit), sizes(&of_file, unit), "{architecture:?} {kind} {unit:?}");
                    }
                    assert_eq!(units.units().count(), of_file.units().count());
                }
            }
        }
    }

    #[test]
    fn a_shadow_has_four_bits_or_of_four_bits_fewer_than_three() {
        let of = |kind| {
            let model = Synthetic { architecture: Architecture::Qwen3Moe, hidden: 256, ..Synthetic::default() };
            let header = model.with_type(kind).header().unwrap();
            ModelSpec::from_gguf(&join([header]).unwrap()).unwrap().1.shadow_type()
        };
        for kind in [TensorType::F32, TensorType::F16, TensorType::Q8_0] {
            assert_eq!(of(kind), Some(TensorType::Q4_0), "{kind}");
        }
        assert_eq!(of(TensorType::Q4_0), Some(TensorType::Q2_K));
        let dense = Synthetic { architecture: Architecture::Llama, ..Synthetic::default() };
        let units = ModelSpec::from_gguf(&join([dense.header().unwrap()]).unwrap()).unwrap().1;
        assert_eq!(units.shadow_type(), None, "nobody guesses experts of a model without any");
    }
}
