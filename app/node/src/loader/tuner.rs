//! What a load needs of whoever tunes its engine.

use futures::future::LocalBoxFuture;
use potluck_engine::Engine;

/// Finds the fastest variants of an engine's kernels, as far as a load may wait for that.
pub trait Tuner {
    /// Compiles and tests what [`Tuner::tune`] will measure, while weights are loading.
    fn prepare_tuning<'a>(&'a self, engine: &'a Engine) -> LocalBoxFuture<'a, ()>;

    /// Measures the shapes of a model that was just loaded, unless it answers already. Nothing depends on it: without it the
    /// portable kernels stay in use.
    fn tune<'a>(&'a self, engine: &'a Engine) -> LocalBoxFuture<'a, ()>;
}
