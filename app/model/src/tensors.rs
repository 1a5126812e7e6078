//! Takes tensors from a file's directory and checks each against its architecture.

use std::collections::HashSet;

use potluck_gguf::{Model, TensorInfo, TensorType};

use crate::{FileRange, ModelError, TensorRole, UnitTensor};

/// The file's tensors, and which of them are already taken.
pub(crate) struct Tensors<'a> {
    file: &'a Model,
    taken: HashSet<&'a str>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(file: &'a Model) -> Self {
        Self { file, taken: HashSet::with_capacity(file.tensors.len()) }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file.tensor(name).is_some()
    }

    /// A matrix of `rows` rows of `cols` values.
    pub(crate) fn matrix(
        &mut self,
        role: TensorRole,
        name: &str,
        cols: u32,
        rows: u32,
    ) -> Result<UnitTensor, ModelError> {
        let tensor = self.take(name)?;
        check_weight_type(tensor)?;
        check(tensor, "columns", tensor.cols(), cols)?;
        check(tensor, "rows", tensor.rows(), rows)?;
        check(tensor, "experts", tensor.matrices(), 1)?;
        Ok(unit_tensor(role, tensor, cols, rows))
    }

    /// The embedding table; its row count is the vocabulary size.
    pub(crate) fn table(&mut self, role: TensorRole, name: &str, cols: u32) -> Result<UnitTensor, ModelError> {
        let rows = self.file.tensor(name).map_or(0, TensorInfo::rows);
        self.matrix(role, name, cols, u32::try_from(rows).unwrap_or(u32::MAX))
    }

    /// An `F32` vector.
    pub(crate) fn vector(&mut self, role: TensorRole, name: &str, len: u32) -> Result<UnitTensor, ModelError> {
        let tensor = self.take(name)?;
        if tensor.kind != TensorType::F32 {
            return Err(ModelError::NotF32 { name: name.to_string(), kind: tensor.kind });
        }
        check(tensor, "columns", tensor.cols(), len)?;
        check(tensor, "rows", tensor.rows() * tensor.matrices(), 1)?;
        Ok(unit_tensor(role, tensor, len, 1))
    }

    /// The matrices of all experts of a block: stacked in one tensor `blk.N.ffn_KIND_exps.weight`, or in old files one
    /// tensor `blk.N.ffn_KIND.E.weight` per expert.
    pub(crate) fn expert_matrices(
        &mut self,
        role: TensorRole,
        stem: &str,
        cols: u32,
        rows: u32,
        count: u16,
    ) -> Result<Vec<UnitTensor>, ModelError> {
        let stacked = format!("{stem}_exps.weight");
        if !self.has(&stacked) && self.has(&format!("{stem}.0.weight")) {
            return (0..count).map(|e| self.matrix(role, &format!("{stem}.{e}.weight"), cols, rows)).collect();
        }
        let tensor = self.take(&stacked)?;
        check_weight_type(tensor)?;
        check(tensor, "columns", tensor.cols(), cols)?;
        check(tensor, "rows", tensor.rows(), rows)?;
        check(tensor, "experts", tensor.matrices(), u32::from(count))?;
        let len = tensor.bytes / u64::from(count);
        Ok((0..u64::from(count))
            .map(|e| {
                let range = FileRange { file: tensor.file, offset: tensor.offset + e * len, len };
                UnitTensor { role, kind: tensor.kind, cols, rows, range }
            })
            .collect())
    }

    /// The first tensor that was not taken and is not known to be harmless.
    pub(crate) fn left_over(&self) -> Option<&'a str> {
        // Old converters wrote RoPE frequencies to the file; every engine recomputes them.
        let harmless = |name: &str| name.ends_with("attn_rot_embd.weight") || name.ends_with("rotary_emb.inv_freq");
        let names = self.file.tensors.iter().map(|tensor| tensor.name.as_str());
        names.into_iter().find(|name| !self.taken.contains(name) && !harmless(name))
    }

    fn take(&mut self, name: &str) -> Result<&'a TensorInfo, ModelError> {
        let tensor = self.file.tensor(name).ok_or_else(|| ModelError::MissingTensor(name.to_string()))?;
        self.taken.insert(&tensor.name);
        Ok(tensor)
    }
}

/// Kernels read matrices in every type that holds weights. Norms, biases and factors are always `F32`.
fn check_weight_type(tensor: &TensorInfo) -> Result<(), ModelError> {
    if tensor.kind.holds_weights() {
        Ok(())
    } else {
        Err(ModelError::UnsupportedType { name: tensor.name.clone(), kind: tensor.kind })
    }
}

fn check(tensor: &TensorInfo, what: &'static str, found: u64, expected: u32) -> Result<(), ModelError> {
    let expected = u64::from(expected);
    if found == expected {
        Ok(())
    } else {
        Err(ModelError::WrongShape { name: tensor.name.clone(), what, found, expected })
    }
}

fn unit_tensor(role: TensorRole, tensor: &TensorInfo, cols: u32, rows: u32) -> UnitTensor {
    let range = FileRange { file: tensor.file, offset: tensor.offset, len: tensor.bytes };
    UnitTensor { role, kind: tensor.kind, cols, rows, range }
}
