//! The same model with its matrices in another type: what a shadow model is made from (od-moe.txt 3.2).
//!
//! Matrices are dequantized and quantized again, row by row. Everything else keeps its bytes: vectors (norms, biases) and
//! routers, which decide more than they weigh.

use crate::{
    GgufError, GgufWriter, Model, SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_TENSORS_KEY, TensorInfo, TensorType, Value,
    dequantize, quantize,
};

/// Keys that only describe a split, which the written file is not.
const SPLIT_KEYS: [&str; 3] = [SPLIT_NO_KEY, SPLIT_COUNT_KEY, SPLIT_TENSORS_KEY];
const FILE_TYPE_KEY: &str = "general.file_type";

/// A model in another type.
#[derive(Clone, Debug, PartialEq)]
pub struct Requantized {
    /// Writes the new file; its tensors are in the order of the old ones.
    pub writer: GgufWriter,
    /// The type of each tensor, in this order.
    pub kinds: Vec<TensorType>,
}

impl Requantized {
    /// Plans the file.
    ///
    /// A matrix becomes what [`fitting`] says.
    ///
    /// # Errors
    /// [`GgufError::UnsupportedType`] if floats cannot be turned into `kind`, or a matrix into floats.
    pub fn new(model: &Model, kind: TensorType) -> Result<Self, GgufError> {
        quantize(kind, &[], &mut Vec::new())?;
        let mut writer = GgufWriter::new();
        for (key, value) in model.metadata.iter().filter(|(key, _)| !SPLIT_KEYS.contains(key)) {
            writer.set(key, value.clone());
        }
        writer.set(FILE_TYPE_KEY, Value::U32(file_type(kind)));
        let mut kinds = Vec::with_capacity(model.tensors.len());
        for tensor in &model.tensors {
            let kind = if is_matrix(tensor) { fitting(kind, tensor.cols()) } else { tensor.kind };
            if kind != tensor.kind {
                dequantize(tensor.kind, &[], &mut [])?;
            }
            writer.tensor(tensor.name.clone(), kind, &tensor.dims)?;
            kinds.push(kind);
        }
        Ok(Self { writer, kinds })
    }
}

/// Turns whole rows of `from` into `to` and appends them to `out`.
///
/// # Errors
/// [`GgufError`] if the bytes are no whole rows or a type is not supported.
pub fn requantize_rows(
    (from, to): (TensorType, TensorType),
    cols: u64,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), GgufError> {
    if from == to {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let bad = || GgufError::LengthMismatch { kind: from, values: cols as usize, bytes: bytes.len() };
    let row = from.row_bytes(cols).and_then(|row| usize::try_from(row).ok()).filter(|row| *row > 0).ok_or_else(bad)?;
    if !bytes.len().is_multiple_of(row) {
        return Err(bad());
    }
    let mut values = vec![0.0; usize::try_from(cols).map_err(|_| bad())?];
    for row in bytes.chunks_exact(row) {
        dequantize(from, row, &mut values)?;
        quantize(to, &values, out)?;
    }
    Ok(())
}

/// Matrices, stacked or not, except routers. Biases of experts are vectors that lie together.
fn is_matrix(tensor: &TensorInfo) -> bool {
    let keeps = tensor.name.ends_with(".ffn_gate_inp.weight") || tensor.name.ends_with(".bias");
    tensor.rows() > 1 && !keeps
}

/// The type of a matrix of a model that becomes `kind`: where its rows of `cols` values are no whole blocks of that, it is
/// [`TensorType::Q8_0`] ([`TensorType::Q4_0`] for two-bit types), and if that does not fit either, [`TensorType::F16`].
#[must_use]
pub fn fitting(kind: TensorType, cols: u64) -> TensorType {
    let fits = |kind: &TensorType| cols.is_multiple_of(kind.block_elements());
    let instead = if kind == TensorType::Q2_K { TensorType::Q4_0 } else { TensorType::Q8_0 };
    [kind, instead].into_iter().find(fits).unwrap_or(TensorType::F16)
}

/// `general.file_type` in llama.cpp's numbering (`enum llama_ftype`).
fn file_type(kind: TensorType) -> u32 {
    match kind {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q8_0 => 7,
        TensorType::Q2_K => 10,
        TensorType::Q4_K => 14,
        TensorType::Q6_K => 18,
        // `LLAMA_FTYPE_GUESSED`: readers look at the tensors.
        _ => 1024,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::synthetic::{Architecture, Synthetic};
    use crate::{join, parse, quantization};

    /// Largest difference of a value after a change of type, relative to the largest magnitude of its row: half a step, or
    /// a whole one where the largest value has one sign and the steps end one earlier on the other side.
    const TOLERANCES: [(TensorType, f32); 6] = [
        (TensorType::F16, 0.0005),
        (TensorType::Q8_0, 0.0045),
        (TensorType::Q6_K, 0.035),
        (TensorType::Q4_K, 0.08),
        (TensorType::Q4_0, 0.13),
        (TensorType::Q2_K, 0.4),
    ];

    fn requantized(model: &Model, file: &[u8], kind: TensorType) -> Vec<u8> {
        let Requantized { writer, kinds } = Requantized::new(model, kind).unwrap();
        let mut tensors = model.tensors.iter().zip(&kinds);
        let mut next = |_: &TensorInfo| {
            let (tensor, kind) = tensors.next().unwrap();
            let mut out = Vec::new();
            let bytes = &file[tensor.offset as usize..tensor.end() as usize];
            requantize_rows((tensor.kind, *kind), tensor.cols(), bytes, &mut out).unwrap();
            out
        };
        writer.to_bytes(&mut next).unwrap()
    }

    fn floats(model: &Model, file: &[u8], name: &str) -> Vec<f32> {
        let tensor = model.tensor(name).unwrap();
        let mut values = vec![0.0; tensor.elements() as usize];
        dequantize(tensor.kind, &file[tensor.offset as usize..tensor.end() as usize], &mut values).unwrap();
        values
    }

    fn mixture(kind: TensorType) -> (Model, Vec<u8>) {
        let synthetic = Synthetic { architecture: Architecture::Qwen3Moe, blocks: 1, ..Synthetic::default() };
        let file = synthetic.with_type(kind).to_bytes().unwrap();
        (join([parse(&file).unwrap()]).unwrap(), file)
    }

    #[test]
    fn a_model_in_another_type_has_the_same_shapes_and_almost_the_same_values() {
        for from in [TensorType::F32, TensorType::F16, TensorType::Q8_0] {
            let (model, file) = mixture(from);
            for (kind, tolerance) in TOLERANCES {
                let written = requantized(&model, &file, kind);
                let again = join([parse(&written).unwrap()]).unwrap();
                assert_eq!(quantization(&again.metadata, &again.tensors).unwrap().get(..4), kind.to_string().get(..4));
                for (old, new) in model.tensors.iter().zip(&again.tensors) {
                    assert_eq!((&old.name, &old.dims), (&new.name, &new.dims));
                    let (before, after) = (floats(&model, &file, &old.name), floats(&again, &written, &new.name));
                    let cols = old.cols() as usize;
                    for (before, after) in before.chunks_exact(cols).zip(after.chunks_exact(cols)) {
                        let most = before.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                        let off = before.iter().zip(after).fold(0.0f32, |off, (a, b)| off.max((a - b).abs()));
                        assert!(off <= tolerance * most + 1e-7, "{}: {from} to {kind}: {off} of {most}", old.name);
                    }
                }
            }
        }
    }

    #[test]
    fn routers_and_norms_keep_their_bytes() {
        let (model, file) = mixture(TensorType::F32);
        let written = requantized(&model, &file, TensorType::Q4_0);
        let again = join([parse(&written).unwrap()]).unwrap();
        for name in ["blk.0.ffn_gate_inp.weight", "blk.0.attn_norm.weight", "output_norm.weight"] {
            assert_eq!(again.tensor(name).unwrap().kind, model.tensor(name).unwrap().kind, "{name}");
            assert_eq!(floats(&model, &file, name), floats(&again, &written, name), "{name}");
        }
        assert_eq!(again.tensor("blk.0.ffn_up_exps.weight").unwrap().kind, TensorType::Q4_0);
    }

    #[test]
    fn types_that_floats_cannot_become_are_refused() {
        let (model, _) = mixture(TensorType::F32);
        let refused = Requantized::new(&model, TensorType::IQ2_XXS).unwrap_err();
        assert_eq!(refused.to_string(), "Values of type IQ2_XXS cannot be made from floats here.");
        let short = requantize_rows((TensorType::F32, TensorType::Q8_0), 32, &[0; 100], &mut Vec::new());
        assert!(matches!(short, Err(GgufError::LengthMismatch { .. })), "{short:?}");
        assert_eq!(fitting(TensorType::Q4_K, 96), TensorType::Q8_0);
        assert_eq!(fitting(TensorType::Q4_K, 40), TensorType::F16);
        assert_eq!(fitting(TensorType::Q2_K, 192), TensorType::Q4_0);
    }
}
