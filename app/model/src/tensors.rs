//! Takes tensors from a file's directory and checks each against its architecture.

use std::collections::HashSet;

use potluck_gguf::{Model, TensorInfo, TensorType};

use crate::{FileRange, ModelError, Part, TensorRole, UnitTensor};

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

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.file.tensors.iter().map(|tensor| tensor.name.as_str())
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

    /// The matrices of all heads, one after another: `rows` rows together.
    pub(crate) fn stacked(
        &mut self,
        role: TensorRole,
        name: &str,
        cols: u32,
        rows: u32,
    ) -> Result<UnitTensor, ModelError> {
        let tensor = self.take(name)?;
        check_weight_type(tensor)?;
        check(tensor, "columns", tensor.cols(), cols)?;
        check(tensor, "rows of all heads", tensor.rows().saturating_mul(tensor.matrices()), rows)?;
        Ok(unit_tensor(role, tensor, cols, rows))
    }

    /// Rows of a matrix, 0 if the file does not have it.
    pub(crate) fn rows(&self, name: &str) -> u32 {
        let rows = self.file.tensor(name).map_or(0, TensorInfo::rows);
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// Rows `first..first + part.rows` of a matrix of `rows` rows, which several parts share.
    pub(crate) fn shared_rows(
        &mut self,
        part: Part,
        name: &str,
        first: u32,
        rows: u32,
    ) -> Result<UnitTensor, ModelError> {
        let mut all = self.matrix(part.role, name, part.cols, rows)?;
        // A matrix is a whole number of equal rows.
        let row = all.range.len / u64::from(rows);
        all.range.offset += u64::from(first) * row;
        all.range.len = u64::from(part.rows) * row;
        Ok(UnitTensor { rows: part.rows, ..all })
    }

    /// Values `first..first + part.cols` of an `F32` vector of `len` values, which several parts share.
    pub(crate) fn shared_vector(
        &mut self,
        part: Part,
        name: &str,
        first: u32,
        len: u32,
    ) -> Result<UnitTensor, ModelError> {
        let mut all = self.vector(part.role, name, len)?;
        all.range.offset += u64::from(first) * 4;
        all.range.len = u64::from(part.cols) * 4;
        Ok(UnitTensor { cols: part.cols, ..all })
    }

    /// An `F32` vector.
    pub(crate) fn vector(&mut self, role: TensorRole, name: &str, len: u32) -> Result<UnitTensor, ModelError> {
        let tensor = self.take(name)?;
        if tensor.kind != TensorType::F32 {
            return Err(ModelError::NotF32 { name: name.to_string(), kind: tensor.kind });
        }
        if role.is_folded() {
            check(tensor, "values", tensor.elements(), len)?;
        } else {
            check(tensor, "columns", tensor.cols(), len)?;
            check(tensor, "rows", tensor.rows() * tensor.matrices(), 1)?;
        }
        Ok(unit_tensor(role, tensor, len, 1))
    }

    /// The biases of all experts of a block, rows of one `F32` tensor.
    pub(crate) fn expert_vectors(
        &mut self,
        role: TensorRole,
        name: &str,
        len: u32,
        count: u16,
    ) -> Result<Vec<UnitTensor>, ModelError> {
        let tensor = self.take(name)?;
        if tensor.kind != TensorType::F32 {
            return Err(ModelError::NotF32 { name: name.to_string(), kind: tensor.kind });
        }
        check(tensor, "columns", tensor.cols(), len)?;
        check(tensor, "rows", tensor.rows() * tensor.matrices(), u32::from(count))?;
        let bytes = u64::from(len) * 4;
        Ok((0..u64::from(count))
            .map(|e| {
                let range = FileRange { file: tensor.file, offset: tensor.offset + e * bytes, len: bytes };
                UnitTensor { role, kind: tensor.kind, cols: len, rows: 1, range }
            })
            .collect())
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

    /// The matrices of all experts of a block, one of the two halves of a tensor `blk.N.ffn_gate_up_exps.weight`.
    pub(crate) fn expert_halves(
        &mut self,
        role: TensorRole,
        name: &str,
        cols: u32,
        rows: u32,
        count: u16,
    ) -> Result<Vec<UnitTensor>, ModelError> {
        let tensor = self.take(name)?;
        check_weight_type(tensor)?;
        check(tensor, "columns", tensor.cols(), cols)?;
        check(tensor, "rows", tensor.rows(), 2 * rows)?;
        check(tensor, "experts", tensor.matrices(), u32::from(count))?;
        let len = tensor.bytes / u64::from(count) / 2;
        let half = u64::from(role == TensorRole::Up);
        Ok((0..u64::from(count))
            .map(|e| {
                let range = FileRange { file: tensor.file, offset: tensor.offset + (2 * e + half) * len, len };
                UnitTensor { role, kind: tensor.kind, cols, rows, range }
            })
            .collect())
    }

    /// The first tensor that was not taken and is not known to be harmless: of no use to any engine, or with a prefix
    /// that the architecture leaves out.
    pub(crate) fn left_over(&self, left_out: &[String]) -> Option<&'a str> {
        // Old converters wrote RoPE frequencies to the file; every engine recomputes them.
        let harmless = |name: &str| name.ends_with("attn_rot_embd.weight") || name.ends_with("rotary_emb.inv_freq");
        let prefixes: HashSet<&str> = left_out.iter().map(String::as_str).collect();
        let longest = left_out.iter().map(String::len).max().unwrap_or(0);
        // There may be as many prefixes as blocks, but a name has only so many beginnings.
        let left_out = |name: &str| {
            (0..=longest.min(name.len())).any(|end| name.get(..end).is_some_and(|part| prefixes.contains(part)))
        };
        self.names().find(|name| !self.taken.contains(name) && !harmless(name) && !left_out(name))
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
