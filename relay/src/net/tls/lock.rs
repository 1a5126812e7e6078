//! One relay at a time has a folder with keys: two would renew the authority and the certificate against each other.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use tracing::warn;

use crate::error::StartError;

/// The file that is locked; it names the process that has the folder.
const LOCK_FILE: &str = "relay.lock";

/// This process has the folder until this is dropped, or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder. `None` where files cannot be made or locked: then nobody can tell.
    ///
    /// # Errors
    /// Another relay has it.
    pub fn take(folder: &Path) -> Result<Option<Self>, StartError> {
        let path = folder.join(LOCK_FILE);
        let opened = fs::create_dir_all(folder)
            .and_then(|()| File::options().read(true).write(true).create(true).truncate(false).open(&path));
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                warn!("cannot open {}, so another relay may use the same folder: {error}", path.display());
                return Ok(None);
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                // Some systems let nobody read a locked file.
                let _ = file.read_to_string(&mut process);
                return Err(StartError::FolderInUse {
                    folder: folder.to_owned(),
                    process: process.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => {
                warn!("cannot lock {}, so another relay may use the same folder: {error}", path.display());
                return Ok(None);
            }
        }
        // Only for the other's sentence.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Some(Self { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_folder_is_had_by_one_relay_at_a_time() {
        let folder = std::env::temp_dir().join(format!("potluck-lock-{}", std::process::id()));
        let has = FolderLock::take(&folder).unwrap();
        assert!(has.is_some());
        let told = FolderLock::take(&folder).unwrap_err().to_string();
        let process = std::process::id();
        assert!(told.contains(&format!("process {process}")) && told.contains("--data"), "{told}");
        drop(has);
        assert!(FolderLock::take(&folder).unwrap().is_some(), "it is free again");
        // What cannot be a folder stops nobody.
        assert!(FolderLock::take(&folder.join(LOCK_FILE).join("inside")).unwrap().is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
