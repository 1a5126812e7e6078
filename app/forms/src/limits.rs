//! How long rules may be.

/// Bytes of rules, at most.
pub const MAX_RULES: usize = 128 * 1024;

/// Values of a schema, at most: the time that it takes grows faster than its properties.
pub const MAX_VALUES: usize = 2_000;
/// Values of the schemas of all functions together, at most.
pub const MAX_VALUES_IN_ALL: usize = 6_000;
