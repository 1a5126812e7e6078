//! What each unit must contain: formats, shapes and sizes, checked against the model's description.

use potluck_model::{AttentionSpec, ExpertsSpec, ModelSpec, Part, QkNorm, RecurrentSpec, Rule, UnitTensor};
use potluck_plan::{KvCacheType, WeightUnit};
use potluck_shaders::{Format, Kernel, MAX_EXPERTS};

use crate::runtime::error::LayoutError;

/// A tensor the kernels can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Storage format.
    pub format: Format,
    /// Rows.
    pub rows: u32,
    /// Values per row.
    pub cols: u32,
    /// Bytes per row.
    pub row_bytes: u32,
}

impl Shape {
    /// Bytes of the whole tensor.
    pub fn bytes(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.row_bytes)
    }

    /// Number of 16-value chunks per row; the last one may be short.
    pub fn chunks(&self) -> u32 {
        self.cols.div_ceil(16)
    }
}

/// Tensors that a unit must contain.
pub fn parts(spec: &ModelSpec, unit: WeightUnit) -> Result<Vec<Part>, LayoutError> {
    spec.parts(unit).ok_or(LayoutError::UnknownUnit(unit))
}

/// Validates a tensor and returns how the kernels read it.
pub fn shape(spec: &ModelSpec, unit: WeightUnit, tensor: &UnitTensor) -> Result<Shape, LayoutError> {
    let role = tensor.role;
    let unsupported = LayoutError::UnsupportedType { unit, role, kind: tensor.kind };
    let format = Format::of(tensor.kind).ok_or(unsupported.clone())?;
    if role.is_vector() && format != Format::F32 {
        return Err(unsupported);
    }
    let (rows, cols) = (tensor.rows, tensor.cols);
    let bad = || LayoutError::BadTensor { unit, role, rows, cols, bytes: tensor.range.len };
    let expected = parts(spec, unit)?.into_iter().find(|part| part.role == role);
    if expected != Some(Part { role, rows, cols }) || rows == 0 {
        return Err(bad());
    }
    let row_bytes = if role.is_vector() { cols.checked_mul(4) } else { format.row_bytes(cols) }.ok_or_else(bad)?;
    let shape = Shape { format, rows, cols, row_bytes };
    if shape.bytes() != tensor.range.len {
        return Err(bad());
    }
    Ok(shape)
}

/// Validates the model's dimensions against the limits of the kernels for a KV cache type.
pub fn check_model(spec: &ModelSpec, kv_type: KvCacheType) -> Result<(), LayoutError> {
    let no = |text: String| Err(LayoutError::UnsupportedShape(text));
    if spec.hidden == 0 || !spec.hidden.is_multiple_of(4) {
        return no(format!("A hidden width of {} is not supported: it must be a multiple of 4.", spec.hidden));
    }
    check_block_inputs(spec)?;
    for index in 0..spec.blocks.len() {
        check_kv_owner(spec, index)?;
        if let Some(recurrent) = spec.recurrent(index) {
            check_recurrent(index, recurrent)?;
        }
        let a = spec.attention(index);
        let dims = a.rope.dims;
        let none = spec.recurrent(index).is_some();
        if !none && (a.kv_heads == 0 || a.heads == 0 || !a.heads.is_multiple_of(a.kv_heads)) {
            return no(format!("Block {index} has {} query heads for {} key heads.", a.heads, a.kv_heads));
        }
        let max = u32::from(Kernel::MAX_QUADS) * 4;
        if a.head_dim == 0 || !a.head_dim.is_multiple_of(4) || a.head_dim > max {
            return no(format!("Block {index} has heads of {} values; multiples of 4 up to {max} work.", a.head_dim));
        }
        if let Some(latent) = a.latent {
            let widths = [latent.query_rank.unwrap_or(4), latent.rank, latent.key, latent.value];
            if a.kv_heads != 1 || widths.iter().any(|width| *width == 0 || !width.is_multiple_of(4)) {
                return no(format!("Block {index} has latent attention of unsupported widths: {latent:?}."));
            }
            let is_unlike = |other: usize| {
                let other = spec.attention(other);
                other.latent.is_some() && other.heads != a.heads
            };
            if (0..index).any(is_unlike) {
                return no(format!("Block {index} has another number of heads than a block before it."));
            }
            if a.heads > Kernel::MAX_LATENT_HEADS {
                return no(format!("Block {index} has {} heads; {} work.", a.heads, Kernel::MAX_LATENT_HEADS));
            }
        }
        if spec.experts(index).is_some_and(|experts| experts.weigh_input && experts.used != 1) {
            return no(format!("Block {index} weighs the inputs of several experts per token; one works."));
        }
        if a.value_norm && a.qk_norm != QkNorm::Head {
            return no(format!("Block {index} normalizes values, but not each query and key head."));
        }
        if !kv_type.takes(a.head_dim) {
            return no(format!(
                "Block {index} has heads of {} values, and {kv_type} keys and values come in blocks of {}: take f16 or f32.",
                a.head_dim,
                KvCacheType::BLOCK
            ));
        }
        if !dims.is_multiple_of(4) || dims > a.head_dim {
            return no(format!("Block {index} rotates {dims} of {} values of a head.", a.head_dim));
        }
        if let Some(groups) = spec.experts(index).and_then(|experts| experts.router.groups)
            && (groups.count == 0 || groups.count > Kernel::MAX_GROUPS)
        {
            return no(format!("Block {index} has {} groups of experts; {} work.", groups.count, Kernel::MAX_GROUPS));
        }
        if let Some(&ExpertsSpec { count, used, .. }) = spec.experts(index)
            && (used == 0 || used > count || count > MAX_EXPERTS)
        {
            return no(format!("Block {index} uses {used} of {count} experts; up to {MAX_EXPERTS} work."));
        }
    }
    Ok(())
}

/// Validates the inputs of blocks: their norm has a workgroup for each block and prompt token, at most 65,535.
fn check_block_inputs(spec: &ModelSpec) -> Result<(), LayoutError> {
    const MAX_BLOCKS: usize = 65_535 / potluck_plan::Work::PREFILL_TOKENS;
    let Some(width) = spec.block_inputs else { return Ok(()) };
    if width > 0 && width.is_multiple_of(4) && spec.blocks.len() <= MAX_BLOCKS {
        return Ok(());
    }
    let blocks = spec.blocks.len();
    Err(LayoutError::UnsupportedShape(format!(
        "Inputs of {width} values for each of {blocks} blocks are not supported: multiples of 4 for {MAX_BLOCKS} work."
    )))
}

/// Validates the block whose keys and values another one attends to.
fn check_kv_owner(spec: &ModelSpec, block: usize) -> Result<(), LayoutError> {
    let a = spec.attention(block);
    let Some(owner) = a.kv_of.map(usize::from) else { return Ok(()) };
    let keys = |a: &AttentionSpec| (a.kv_heads, a.head_dim);
    let owns = |owner: &AttentionSpec| owner.kv_of.is_none() && owner.latent.is_none() && keys(owner) == keys(a);
    let known = a.latent.is_none() && matches!(a.qk_norm, QkNorm::None | QkNorm::Head) && !a.qkv_bias;
    if owner < block && owns(spec.attention(owner)) && known {
        return Ok(());
    }
    Err(LayoutError::UnsupportedShape(format!("Block {block} cannot attend to the keys and values of block {owner}.")))
}

/// Validates a recurrence: a workgroup has a thread for each value of a head.
fn check_recurrent(block: usize, r: &RecurrentSpec) -> Result<(), LayoutError> {
    const MAX: u32 = 256;
    const MAX_TAPS: u32 = 16;
    // Workgroups in one dimension: a head each, or a group of each token of a chunk.
    const MAX_HEADS: u32 = 65_535;
    const MAX_GROUPS: u32 = MAX_HEADS / potluck_plan::Work::PREFILL_TOKENS as u32;
    let fits = |width: u32| (1..=MAX).contains(&width);
    let known = match &r.rule {
        Rule::ShortConv { width } => width.is_multiple_of(4),
        Rule::DeltaNet(net) => {
            let whole = net.key_heads > 0 && net.heads.is_multiple_of(net.key_heads);
            fits(net.head_dim) && whole && net.heads <= MAX_HEADS
        }
        Rule::StateSpace(space) => {
            let whole = space.groups > 0 && space.heads.is_multiple_of(space.groups);
            let few = space.groups <= MAX_GROUPS && space.heads <= MAX_HEADS;
            fits(space.head_dim) && fits(space.state) && whole && few
        }
    };
    if known && (2..=MAX_TAPS).contains(&r.taps) && r.mixed().is_multiple_of(4) {
        return Ok(());
    }
    let text = format!("Block {block} has a recurrent state of a shape that no kernel computes: {:?}.", r.rule);
    Err(LayoutError::UnsupportedShape(text))
}
