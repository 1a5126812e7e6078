//! Files that hold private keys.

use std::fs;
use std::io;
use std::path::Path;

#[cfg(unix)]
use tracing::warn;

use crate::error::StartError;

/// Writes a file that only its owner may read. A reader finds the old text or the new one.
pub fn write_private(folder: &Path, name: &str, text: &str) -> Result<(), StartError> {
    let path = folder.join(name);
    let draft = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| write_draft(&draft, text))
        .and_then(|()| fs::rename(&draft, &path))
        .and_then(|()| sync_folder(folder));
    written.map_err(|source| {
        let _ = fs::remove_file(&draft);
        StartError::Write { path, source }
    })
}

#[cfg(unix)]
fn write_draft(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// So that the new name outlives a power failure.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Takes from others the right to read a key, which they get if the file is copied carelessly.
#[cfg(unix)]
pub fn keep_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.permissions().mode() & 0o077 != 0 {
        warn!("others could read the key in {}", path.display());
        if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
            warn!("they still can: {error}");
        }
    }
}

#[cfg(not(unix))]
pub fn keep_private(_: &Path) {}

#[cfg(not(unix))]
fn write_draft(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}
