//! The bytes of a file, on disk or at an origin.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;

use super::file::{FileVersion, ModelFile};
use super::origin::{PART_BYTES, RemoteFile};

/// A file that is open. All bytes that it gives are of the version that was scanned.
pub enum Content {
    /// On disk.
    Disk(File),
    /// At an origin; the part that was read last.
    Origin(Arc<RemoteFile>, Option<(u64, Bytes)>),
}

impl Content {
    /// Opens a file, and says which version it has. An origin is not asked yet.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(file: &ModelFile) -> io::Result<(Self, FileVersion)> {
        if let Some(origin) = &file.origin {
            return Ok((Self::Origin(origin.clone(), None), file.version));
        }
        let opened = File::open(&file.path)?;
        let version = FileVersion::of(&opened.metadata()?);
        Ok((Self::Disk(opened), version))
    }

    /// Whether the file is another version by now. What an origin sends says so itself.
    pub fn has_changed(&self, version: &FileVersion) -> bool {
        matches!(self, Self::Disk(opened) if version.check(opened).is_err())
    }

    /// Reads bytes. Waits for disks and origins: not for an async thread.
    ///
    /// # Errors
    /// They cannot be read, or are of another version.
    pub fn read(&mut self, file: &ModelFile, range: Range<u64>) -> io::Result<Bytes> {
        let length = (range.end - range.start) as usize;
        match self {
            Self::Disk(opened) => {
                let mut buffer = vec![0; length];
                opened.seek(SeekFrom::Start(range.start))?;
                opened.read_exact(&mut buffer)?;
                // A write updates the file's times before its bytes.
                file.version.check(opened)?;
                Ok(buffer.into())
            }
            Self::Origin(origin, last) => {
                let hashes = file.hashes();
                let mut read = Vec::with_capacity(length);
                let mut at = range.start;
                while at < range.end {
                    let index = at / PART_BYTES;
                    let part = match last {
                        Some((known, part)) if *known == index => part.clone(),
                        _ => origin.part(index, hashes.as_deref())?,
                    };
                    *last = Some((index, part.clone()));
                    let start = index * PART_BYTES;
                    let end = range.end.min(start + PART_BYTES);
                    read.extend_from_slice(&part[(at - start) as usize..(end - start) as usize]);
                    at = end;
                }
                Ok(read.into())
            }
        }
    }
}
