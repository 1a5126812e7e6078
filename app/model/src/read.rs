//! Takes the tensors of each weight unit from a file, as the description of its architecture lists them.

use potluck_gguf::Model;
use potluck_plan::{BlockIndex, ExpertId, WeightUnit};

use crate::architecture::{Description, Source};
use crate::keys::Keys;
use crate::tensors::Tensors;
use crate::{
    Architecture, FeedForwardSpec, ModelError, ModelSpec, Part, TensorRole, UnitMap, UnitTensor, kind, unknown,
};

impl ModelSpec {
    /// Reads the architecture and the location of each weight unit from a file's header, or from all headers of a
    /// split.
    ///
    /// # Errors
    /// The first reason why the model cannot run here: a file of another kind, metadata that nothing here reads, an
    /// architecture, operation, RoPE scaling or weight type without kernels, a missing key, or a tensor that is missing,
    /// unexpected, or of a shape that contradicts the metadata.
    pub fn from_gguf(file: &Model) -> Result<(ModelSpec, UnitMap), ModelError> {
        let metadata = &file.metadata;
        kind::check(file)?;
        let architecture = Architecture::of(metadata.str("general.architecture")?)?;
        unknown::check_sections(metadata)?;
        let mut tensors = Tensors::new(file);
        let source = Source { keys: Keys::new(metadata, architecture), tensors: &tensors };
        let description = architecture.describe(&source)?;
        unknown::check_own(&source)?;
        let units = UnitReader { description: &description, tensors: &mut tensors }.units()?;
        match tensors.left_over(&description.left_out) {
            None => Ok((description.spec, units)),
            Some(name) => {
                Err(ModelError::UnexpectedTensor { name: name.to_string(), architecture: architecture.name() })
            }
        }
    }
}

struct UnitReader<'d, 't, 'f> {
    description: &'d Description,
    tensors: &'t mut Tensors<'f>,
}

impl UnitReader<'_, '_, '_> {
    fn units(&mut self) -> Result<UnitMap, ModelError> {
        let spec = &self.description.spec;
        let mut units = UnitMap::default();
        for unit in [WeightUnit::Embedding, WeightUnit::LmHead] {
            units.insert(unit, self.unit(unit)?);
        }
        for (index, block) in (0..).map(BlockIndex).zip(&spec.blocks) {
            let mixer = WeightUnit::TokenMixer(index);
            units.insert(mixer, self.unit(mixer)?);
            let FeedForwardSpec::Experts(experts) = &block.feed_forward else {
                let dense = WeightUnit::Dense(index);
                units.insert(dense, self.unit(dense)?);
                continue;
            };
            let router = WeightUnit::Router(index);
            units.insert(router, self.unit(router)?);
            if experts.shared.is_some() {
                let shared = WeightUnit::SharedExpert(index);
                units.insert(shared, self.unit(shared)?);
            }
            self.experts(index, experts.count as u16, &mut units)?;
        }
        Ok(units)
    }

    /// The tensors of a unit. Its parts exist, because the unit comes from the description.
    fn unit(&mut self, unit: WeightUnit) -> Result<Vec<UnitTensor>, ModelError> {
        let parts = self.description.spec.parts(unit).unwrap_or_default();
        parts.iter().map(|&part| self.part(unit, part, &parts)).collect()
    }

    fn part(&mut self, unit: WeightUnit, part: Part, siblings: &[Part]) -> Result<UnitTensor, ModelError> {
        let name = self.description.tensor_name(unit, part.role);
        let shares = matches!(part.role, TensorRole::Latent | TensorRole::LatentRotated);
        if (shares || !self.tensors.has(&name))
            && let Some(found) = self.inside_another(unit, part, siblings)?
        {
            return Ok(found);
        }
        if part.role == TensorRole::Up && self.is_doubled(unit, part) {
            return self.tensors.shared_rows(part, &name, part.rows, 2 * part.rows);
        }
        match part.role {
            TensorRole::KeyUp | TensorRole::ValueUp => self.tensors.stacked(part.role, &name, part.cols, part.rows),
            role if role.is_vector() => self.tensors.vector(role, &name, part.cols),
            role => self.tensors.matrix(role, &name, part.cols, part.rows),
        }
    }

    /// Whether `ffn_up` holds gate and up, one after another.
    fn is_doubled(&self, unit: WeightUnit, up: Part) -> bool {
        let name = |role| self.description.tensor_name(unit, role);
        !self.tensors.has(&name(TensorRole::Gate)) && self.tensors.rows(&name(TensorRole::Up)) == 2 * up.rows
    }

    /// A part that the file stores as rows of another tensor: query, key and value in `attn_qkv`, gate in `ffn_up`.
    fn inside_another(
        &mut self,
        unit: WeightUnit,
        part: Part,
        siblings: &[Part],
    ) -> Result<Option<UnitTensor>, ModelError> {
        use TensorRole::*;
        let (roles, stem) = match part.role {
            Query | Key | Value => (&[Query, Key, Value][..], "attn_qkv.weight"),
            QueryBias | KeyBias | ValueBias => (&[QueryBias, KeyBias, ValueBias][..], "attn_qkv.bias"),
            Latent | LatentRotated => (&[Latent, LatentRotated][..], "attn_kv_a_mqa.weight"),
            Gate if self.is_doubled(unit, part) => {
                let name = self.description.tensor_name(unit, Up);
                return self.tensors.shared_rows(part, &name, 0, 2 * part.rows).map(Some);
            }
            _ => return Ok(None),
        };
        let name = unit.block().map(|block| format!("blk.{}.{stem}", block.0)).unwrap_or_default();
        if !self.tensors.has(&name) {
            return Ok(None);
        }
        let size = |part: &Part| if part.role.is_vector() { part.cols } else { part.rows };
        let all: Vec<&Part> = siblings.iter().filter(|sibling| roles.contains(&sibling.role)).collect();
        let first = all.iter().take_while(|sibling| sibling.role != part.role).map(|part| size(part)).sum();
        let total = all.iter().map(|part| size(part)).sum();
        let found = if part.role.is_vector() {
            self.tensors.shared_vector(part, &name, first, total)?
        } else {
            self.tensors.shared_rows(part, &name, first, total)?
        };
        Ok(Some(found))
    }

    /// The experts of a block, whose tensors are stacked.
    fn experts(&mut self, block: BlockIndex, count: u16, units: &mut UnitMap) -> Result<(), ModelError> {
        let unit = |expert| WeightUnit::Expert(block, ExpertId(expert));
        let mut experts: Vec<Vec<UnitTensor>> = vec![Vec::new(); usize::from(count)];
        for Part { role, rows, cols } in self.description.spec.parts(unit(0)).unwrap_or_default() {
            // `blk.N.ffn_gate_exps.weight` without its suffix; old files have one tensor per expert.
            let name = self.description.tensor_name(unit(0), role);
            let both = format!("blk.{}.ffn_gate_up_exps.weight", block.0);
            let stacked = match role {
                _ if role.is_vector() => self.tensors.expert_vectors(role, &name, cols, count)?,
                TensorRole::Gate | TensorRole::Up if self.tensors.has(&both) => {
                    self.tensors.expert_halves(role, &both, cols, rows, count)?
                }
                _ => {
                    let stem = name.trim_end_matches("_exps.weight");
                    self.tensors.expert_matrices(role, stem, cols, rows, count)?
                }
            };
            experts.iter_mut().zip(stacked).for_each(|(expert, tensor)| expert.push(tensor));
        }
        for (expert, tensors) in (0..).zip(experts) {
            units.insert(unit(expert), tensors);
        }
        Ok(())
    }
}
