//! How a model is computed.

use potluck_plan::KvCacheType;

use crate::values::parse_cache_type;

/// Positions of context, unless told otherwise.
pub const DEFAULT_CONTEXT: u32 = 4096;

/// The context of a model that this device opens.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelOptions {
    /// Number type of the KV cache, which holds what a conversation needs for its next token: f32 (exact), f16, q8_0 or q4_0
    /// (smallest) [default: the largest that fits, but not q4_0]
    #[arg(long = "kv", value_name = "TYPE", value_parser = parse_cache_type)]
    pub cache_type: Option<KvCacheType>,
    /// Length of the context in tokens, from 64 to what the model supports
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONTEXT, value_parser = clap::value_parser!(u32).range(64..))]
    pub context: u32,
}
