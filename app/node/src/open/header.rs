//! Reads the headers of a model's files, through the cache.

use potluck_gguf::{GgufError, HeaderParser, Progress, first_split_count, join};
use potluck_model::FileRange;
use potluck_plan::ModelId;

use super::error::OpenError;
use crate::blob::{BlobKey, BlobName};
use crate::hashes::GROUP_BYTES;
use crate::platform::BlobStore;
use crate::source::{Source, SourceError};

/// Bytes of the first read of a header. The vocabulary makes headers of real models a few megabytes long, so reads grow from
/// here. What the first read takes too much of a small file is fetched twice.
const FIRST_READ: u64 = GROUP_BYTES;
/// Bytes of the largest read of a header, unless the parser needs more.
const MAX_READ: u64 = 2 << 20;

/// The headers of a model's files.
pub struct Headers {
    /// The headers, joined.
    pub model: potluck_gguf::Model,
    /// The bytes of each header.
    pub raw: Vec<Vec<u8>>,
    /// The length of all files.
    pub bytes: u64,
}

/// Reads headers, from the cache where they are stored.
pub(super) struct HeaderReader<'a> {
    pub store: &'a dyn BlobStore,
}

impl HeaderReader<'_> {
    /// Reads the header of every file; from the cache if `cached`, the model's id, is known before and they are stored.
    ///
    /// # Errors
    /// The source fails, or a header is not valid.
    pub async fn read(&self, source: &dyn Source, cached: Option<ModelId>) -> Result<Headers, OpenError> {
        let mut headers = Vec::new();
        let mut raw = Vec::new();
        let mut bytes = 0;
        let mut count = 1;
        let mut file = 0;
        while u32::from(file) < count {
            if file > 0 && source.file_len(file).is_none() {
                let (expected, found) = (u32::from(file) + 1, "it was not given".to_owned());
                return Err(GgufError::BadSplit { count, expected, found }.into());
            }
            let key = cached.map(|model| BlobKey { model, name: BlobName::Header(file) });
            let (header, text) = self.read_header(source, file, key).await?;
            if file == 0 {
                count = first_split_count(&header)?.min(u32::from(u16::MAX));
            }
            bytes += source.file_len(file).unwrap_or_else(|| header.required_length());
            headers.push(header);
            raw.push(text);
            file += 1;
        }
        Ok(Headers { model: join(headers)?, raw, bytes })
    }

    async fn read_header(
        &self,
        source: &dyn Source,
        file: u16,
        key: Option<BlobKey>,
    ) -> Result<(potluck_gguf::Header, Vec<u8>), OpenError> {
        let len = source.file_len(file);
        if len == Some(0) {
            return Err(GgufError::Empty.into());
        }
        let mut parser = len.map_or_else(HeaderParser::new, HeaderParser::with_length);
        let mut raw = Vec::new();
        let mut progress = Progress::NeedMore { at_least: FIRST_READ };
        let mut most = MAX_READ;
        if let Some(key) = key {
            let stored = self.stored(key).await;
            if !stored.is_empty() {
                match parser.push(&stored) {
                    Ok(after) => (progress, raw) = (after, stored),
                    Err(error) => {
                        log::warn!("the stored header is not valid: {error}");
                        parser = len.map_or_else(HeaderParser::new, HeaderParser::with_length);
                        self.delete_stored(key).await;
                    }
                }
            }
        }
        let stored_len = raw.len();
        loop {
            let missing = match &progress {
                // The padding before the data belongs to the header, so that everyone hashes the same bytes.
                Progress::Done(header) => header.data_offset.saturating_sub(raw.len() as u64),
                Progress::NeedMore { at_least } => (*at_least).max((3 * raw.len() as u64).clamp(FIRST_READ, most)),
            };
            let offset = raw.len() as u64;
            // Reads end with a group: what follows the header's last one may not be for this device.
            let missing = match &progress {
                Progress::Done(_) => missing,
                Progress::NeedMore { .. } => offset.saturating_add(missing).next_multiple_of(GROUP_BYTES) - offset,
            };
            let wanted = len.map_or(missing, |len| missing.min(len.saturating_sub(offset)));
            match progress {
                Progress::Done(header) if wanted == 0 => {
                    raw.truncate(usize::try_from(header.data_offset).unwrap_or(usize::MAX));
                    if let Some(key) = key.filter(|_| raw.len() > stored_len) {
                        self.keep(key, stored_len as u64, raw[stored_len..].to_vec()).await;
                    }
                    return Ok((*header, raw));
                }
                Progress::NeedMore { at_least } if wanted == 0 => {
                    let (needed, length) = (offset + at_least, offset);
                    return Err(GgufError::Truncated { what: "the header".to_owned(), needed, length }.into());
                }
                _ => {}
            }
            let bytes = match source.read(FileRange { file, offset, len: wanted }).await {
                // What follows the header is not for this device. A shorter read ends before it.
                Err(SourceError::Kept) if most > FIRST_READ => {
                    most = (most / 4).max(FIRST_READ);
                    continue;
                }
                read => read?,
            };
            if let Progress::NeedMore { .. } = progress {
                progress = parser.push(&bytes)?;
            }
            raw.extend(bytes);
        }
    }

    async fn delete_stored(&self, key: BlobKey) {
        if let Err(error) = self.store.delete(key).await {
            log::info!("a blob cannot be deleted: {error}");
        }
    }

    /// A cached header; empty if there is none.
    async fn stored(&self, key: BlobKey) -> Vec<u8> {
        match self.store.len(key).await {
            Ok(len) if len > 0 => self.store.read(key, 0, len).await.unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    async fn keep(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) {
        if let Err(error) = self.store.append(key, offset, bytes).await {
            log::info!("the header cannot be stored: {error}");
        }
    }
}
