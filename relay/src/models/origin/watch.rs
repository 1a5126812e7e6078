//! Looks for new versions of files at origins.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};

use tracing::{info, warn};

use super::{OriginConfig, Origins, RemoteFile};
use crate::error::in_one_line;
use crate::models::Library;
use crate::models::file::{HashProgress, ModelFile};

/// Looks again and again, and sooner when told, until the library is dropped.
pub fn watch(config: &OriginConfig, origins: &Arc<Origins>, to_look: &Receiver<()>, library: &Weak<Library>) {
    loop {
        for url in &config.weights {
            let Some(library) = library.upgrade() else { return };
            let known = library.remote(url.name());
            match RemoteFile::look(url, origins) {
                Ok(file) if known.as_ref().is_some_and(|known| is_same(known, &file)) => {}
                Ok(file) => {
                    info!("{url:?} has {} bytes", file.bytes);
                    let is_wrong = known.and_then(|known| Some(known.origin.as_ref()?.is_wrong())).unwrap_or_default();
                    library.set_remote(ModelFile::at_origin(Arc::new(file)), !is_wrong);
                }
                // What is kept of it can still be sent.
                Err(error)
                    if known.as_ref().is_some_and(|known| known.facts.is_ok()) && !error.is_of_another_version() =>
                {
                    warn!("{}: {error}", in_one_line(url.name()));
                }
                Err(error) => {
                    if known.is_none_or(|known| known.facts.is_ok()) {
                        warn!("{}: {error}", in_one_line(url.name()));
                    }
                    library.set_remote(ModelFile::absent(url, &error), false);
                }
            }
        }
        match to_look.recv_timeout(config.look_every) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Whether it is the version that is known, and all went well with that.
fn is_same(known: &ModelFile, file: &RemoteFile) -> bool {
    let is_well = known.facts.is_ok() && !matches!(known.progress(), HashProgress::Failed(_));
    known.version == file.version() && is_well && known.origin.as_ref().is_some_and(|origin| !origin.is_wrong())
}
