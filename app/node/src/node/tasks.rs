//! Tasks that can be aborted: at most one load and one benchmark at a time.

use futures::future::{AbortHandle, AbortRegistration};

/// The running load and the running benchmark.
#[derive(Default)]
pub(super) struct Tasks {
    opening: Option<AbortHandle>,
    load: Option<AbortHandle>,
    bench: Option<AbortHandle>,
}

impl Tasks {
    /// Aborts the running opening of a model and registers a new one.
    pub fn new_opening(&mut self) -> AbortRegistration {
        replace(&mut self.opening)
    }

    pub fn abort_opening(&mut self) {
        abort(&mut self.opening);
    }

    /// Aborts the running load and registers a new one.
    pub fn new_load(&mut self) -> AbortRegistration {
        replace(&mut self.load)
    }

    pub fn abort_load(&mut self) {
        abort(&mut self.load);
    }

    /// Aborts the running benchmark and registers a new one.
    pub fn new_bench(&mut self) -> AbortRegistration {
        replace(&mut self.bench)
    }

    pub fn abort_bench(&mut self) {
        abort(&mut self.bench);
    }
}

fn replace(task: &mut Option<AbortHandle>) -> AbortRegistration {
    abort(task);
    let (handle, registration) = AbortHandle::new_pair();
    *task = Some(handle);
    registration
}

fn abort(task: &mut Option<AbortHandle>) {
    if let Some(handle) = task.take() {
        handle.abort();
    }
}
