//! What each unit must contain: formats, shapes and sizes, checked against the model's description.

use potluck_model::{FeedForwardSpec, ModelSpec, TensorRole, UnitTensor};
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

/// True for tensors that are added or multiplied elementwise, which the kernels read as 32-bit floats.
fn is_vector(role: TensorRole) -> bool {
    use TensorRole::*;
    matches!(
        role,
        OutputNorm
            | AttentionNorm
            | QueryBias
            | KeyBias
            | ValueBias
            | QueryNorm
            | KeyNorm
            | RopeFactors
            | FeedForwardNorm
    )
}

/// Tensor roles that a unit must contain.
pub fn roles(spec: &ModelSpec, unit: WeightUnit) -> Result<Vec<TensorRole>, LayoutError> {
    use TensorRole::*;
    let block = match unit.block() {
        None => None,
        Some(block) => Some(spec.blocks.get(usize::from(block.0)).ok_or(LayoutError::UnknownUnit(unit))?),
    };
    Ok(match (unit, block) {
        (WeightUnit::Embedding, _) => vec![TokenEmbedding],
        (WeightUnit::LmHead, _) => vec![OutputNorm, if spec.tied_lm_head { TokenEmbedding } else { Output }],
        (WeightUnit::TokenMixer(index), Some(_)) => {
            let attention = spec.attention(usize::from(index.0));
            let mut roles = vec![AttentionNorm, Query, Key, Value, AttentionOutput];
            if attention.qkv_bias {
                roles.extend([QueryBias, KeyBias, ValueBias]);
            }
            if attention.qk_norm {
                roles.extend([QueryNorm, KeyNorm]);
            }
            if attention.rope.factors {
                roles.push(RopeFactors);
            }
            roles
        }
        (WeightUnit::Dense(_), Some(block)) if matches!(block.feed_forward, FeedForwardSpec::Dense { .. }) => {
            vec![FeedForwardNorm, Gate, Up, Down]
        }
        (WeightUnit::Router(_), Some(block)) if matches!(block.feed_forward, FeedForwardSpec::Experts { .. }) => {
            vec![FeedForwardNorm, Router]
        }
        (WeightUnit::Expert(_, expert), Some(block)) => match block.feed_forward {
            FeedForwardSpec::Experts { count, .. } if u32::from(expert.0) < count => vec![Gate, Up, Down],
            _ => return Err(LayoutError::UnknownUnit(unit)),
        },
        _ => return Err(LayoutError::UnknownUnit(unit)),
    })
}

/// Rows and values per row that a tensor must have.
fn expected(spec: &ModelSpec, unit: WeightUnit, role: TensorRole) -> (u32, u32) {
    use TensorRole::*;
    let block = unit.block().map(|block| usize::from(block.0));
    let attention = block.map(|block| spec.attention(block));
    let (heads, kv, dim, rope) = attention.map_or((0, 0, 0, 0), |a| (a.heads, a.kv_heads, a.head_dim, a.rope.dims));
    let (intermediate, experts) = match block.map(|block| &spec.blocks[block].feed_forward) {
        Some(FeedForwardSpec::Dense { intermediate }) => (*intermediate, 0),
        Some(FeedForwardSpec::Experts { intermediate, count, .. }) => (*intermediate, *count),
        None => (0, 0),
    };
    let hidden = spec.hidden;
    match role {
        TokenEmbedding | Output => (spec.vocabulary, hidden),
        OutputNorm | AttentionNorm | FeedForwardNorm => (1, hidden),
        Query => (heads * dim, hidden),
        Key | Value => (kv * dim, hidden),
        AttentionOutput => (hidden, heads * dim),
        QueryBias => (1, heads * dim),
        KeyBias | ValueBias => (1, kv * dim),
        QueryNorm | KeyNorm => (1, dim),
        RopeFactors => (1, rope / 2),
        Router => (experts, hidden),
        Gate | Up => (intermediate, hidden),
        Down => (hidden, intermediate),
    }
}

/// Validates a tensor and returns how the kernels read it.
pub fn shape(spec: &ModelSpec, unit: WeightUnit, tensor: &UnitTensor) -> Result<Shape, LayoutError> {
    let role = tensor.role;
    let unsupported = LayoutError::UnsupportedType { unit, role, kind: tensor.kind };
    let format = Format::of(tensor.kind).ok_or(unsupported.clone())?;
    if is_vector(role) && format != Format::F32 {
        return Err(unsupported);
    }
    let (rows, cols) = (tensor.rows, tensor.cols);
    let bad = || LayoutError::BadTensor { unit, role, rows, cols, bytes: tensor.range.len };
    if (rows, cols) != expected(spec, unit, role) || rows == 0 {
        return Err(bad());
    }
    let row_bytes = if is_vector(role) { cols.checked_mul(4) } else { format.row_bytes(cols) }.ok_or_else(bad)?;
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
    for index in 0..spec.blocks.len() {
        let a = spec.attention(index);
        let dims = a.rope.dims;
        if a.kv_heads == 0 || a.heads == 0 || !a.heads.is_multiple_of(a.kv_heads) {
            return no(format!("Block {index} has {} query heads for {} key heads.", a.heads, a.kv_heads));
        }
        let max = u32::from(Kernel::MAX_QUADS) * 4;
        if a.head_dim == 0 || !a.head_dim.is_multiple_of(4) || a.head_dim > max {
            return no(format!("Block {index} has heads of {} values; multiples of 4 up to {max} work.", a.head_dim));
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
        if a.qk_norm && a.rope.factors {
            return no(format!("Block {index} has both norms of its heads and rotary factors, which no kernel takes."));
        }
        if let FeedForwardSpec::Experts { count, used, .. } = spec.blocks[index].feed_forward
            && (used == 0 || used > count || count > MAX_EXPERTS)
        {
            return no(format!("Block {index} uses {used} of {count} experts; up to {MAX_EXPERTS} work."));
        }
    }
    Ok(())
}
