//! One definition for each kernel: its name, template, uniform, storage bindings, and the values that its variant puts into
//! the template. A file holds a family, a function in it one kernel.

use super::{Access, Kernel, Operand, Strategy};
use crate::preprocess::Definitions;

mod attention;
mod candidates;
mod experts;
mod fused;
mod products;
mod rates;
mod recurrent;
mod vectors;

/// All that makes one variant.
pub(super) struct Definition {
    /// A short name for reports.
    pub name: String,
    /// The template's name.
    pub template: &'static str,
    /// The WGSL of the uniform.
    pub params: &'static str,
    /// The storage bindings in order, without the codebooks.
    pub bindings: Vec<Access>,
    /// What the template's `$NAME` and `#if NAME` refer to.
    pub values: Values,
}

/// The values of a variant.
#[derive(Default)]
pub(super) struct Values(Definitions);

impl Values {
    /// No values.
    fn none() -> Self {
        Self::default()
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Sets several numbers.
    fn numbers(mut self, numbers: impl IntoIterator<Item = (&'static str, u32)>) -> Self {
        numbers.into_iter().for_each(|(name, value)| self.set(name, value));
        self
    }

    /// Sets a value, and goes on.
    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }

    /// Sets those names that are on.
    fn flags(mut self, flags: impl IntoIterator<Item = (&'static str, bool)>) -> Self {
        flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| self.set(name, ""));
        self
    }

    /// The values by name.
    pub fn into_definitions(self) -> Definitions {
        self.0
    }
}

impl Kernel {
    /// The definition of the kernel. A joined kernel has the template and the values of its first part.
    pub(super) fn definition(self) -> Definition {
        match self {
            Self::Embed(format) => vectors::embed(format),
            Self::Norm(strategy) => vectors::norm(strategy),
            Self::NormPart(strategy) => vectors::norm_part(strategy),
            Self::Residual { strategy, addition } => vectors::residual(strategy, addition),
            Self::Glu(glu) => vectors::glu(glu),
            Self::QueryGates => vectors::query_gates(),
            Self::GateInput => vectors::gate_input(),
            Self::ScaleLogits => vectors::scale_logits(),
            Self::ScaleBy { expert } => vectors::scale_by(expert),
            Self::MatVec { format, strategy, rows, operand } => {
                products::matvec(self.threads(), format, strategy, rows, operand)
            }
            Self::MatMul { format, operand, tile } => products::matmul(format, operand, tile),
            Self::Quantize => products::quantize(),
            Self::Halve => products::halve(),
            Self::Packed { format, operand, tile, dots } => {
                products::packed(format, operand, tile, dots, self.is_wide())
            }
            Self::Matrix { format, operand, tile } => products::matrix(format, operand, tile, self.is_wide()),
            Self::Fused { format, rows, job, variant, dots } => {
                fused::fused(self, fused::Fused { format, rows, job, variant, dots })
            }
            Self::Joined { first, second, variant, dots } => fused::joined(first, second, variant, dots),
            Self::Split { kv_type, quads, heads, extras } => attention::split(kv_type, quads, heads, extras),
            Self::Merge { quads } => attention::merge(quads),
            Self::Attention { kv_type, strategy, quads, extras } => {
                attention::attention(kv_type, strategy, quads, extras)
            }
            Self::FlashAttention { kv_type, quads, extras } => attention::flash(kv_type, quads, extras),
            Self::Rope { kv_type, pairs, qk_norm, factors } => attention::rope(kv_type, pairs, qk_norm, factors),
            Self::Conv { kind, taps } => recurrent::conv(kind, taps),
            Self::Scan { strategy, rule, width, state } => recurrent::scan(strategy, rule, width, state),
            Self::Groups(strategy) => experts::groups(strategy, self.threads()),
            Self::Router(strategy) => experts::router(strategy),
            Self::Route => experts::route(),
            Self::Choose { strategy, sigmoid, biased } => experts::choose(strategy, sigmoid, biased),
            Self::ExpertBias => experts::expert_bias(),
            Self::Combine => experts::combine(),
            Self::Beside => experts::beside(),
            Self::Segments(strategy) => candidates::segments(strategy),
            Self::Top(strategy) => candidates::top(strategy),
            Self::BiasLogits => candidates::bias_logits(),
            Self::MaskLogits => candidates::mask_logits(),
            Self::LogSumExp(strategy) => candidates::log_sum_exp(strategy),
            Self::Sample => candidates::sample(),
            Self::Stream => rates::stream(),
            Self::Peak { dots } => rates::peak(dots),
        }
    }

    /// A short name for reports, like `matvec Q4_K workgroup ×4`.
    pub fn name(self) -> String {
        self.definition().name
    }

    /// The storage bindings in order, numbered from 1 (0 is the uniform).
    pub fn bindings(self) -> Vec<Access> {
        let mut all = self.definition().bindings;
        if self.has_codebook() {
            all.push(Access::Read);
        }
        all
    }
}

/// How the work is divided, in a name.
fn by(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Workgroup => "workgroup",
        Strategy::PerThread => "per-thread",
    }
}

/// An operand of a product, in a name.
fn and(operand: Operand) -> &'static str {
    match operand {
        Operand::Plain => "",
        Operand::Bias => " bias",
        Operand::Expert => " expert",
    }
}
