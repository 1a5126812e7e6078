//! Opening a model: from a source to its header, id, architecture and weight units.

use std::rc::Rc;
use std::sync::Arc;

use potluck_engine::{Settings, fixed_overhead};
use potluck_gguf::{GgufError, HeaderParser, Metadata, Progress, join, split_count};
use potluck_model::{FileRange, ModelError, ModelSpec, Profile, UnitMap};
use potluck_plan::{Bytes, KvCacheType, ModelId};
use potluck_protocol::{ModelCard, ModelSource};
use potluck_swarm::OpenedModel;
use thiserror::Error;

use crate::blob::{BlobKey, BlobName};
use crate::language::{LanguageError, ModelLanguage};
use crate::platform::{HttpRequest, LocalFile, NetError, Platform, host_of};
use crate::relay::{Relay, RelayError};
use crate::source::{HttpFile, HttpSource, LocalSource, PieceDesk, PieceSource, Source, SourceError, Traffic};

/// First read of a header. Vocabularies make headers of real models a few megabytes long, so reads grow from here on;
/// what is read too much of a small file is fetched twice.
const FIRST_READ: u64 = 64 << 10;
/// Largest read of a header, unless the parser asks for more.
const LONGEST_READ: u64 = 2 << 20;

/// Why a model cannot be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The relay.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// Its bytes.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its header.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Its architecture.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its vocabulary or template.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// The server does not say how long a file is.
    #[error("{0} does not say how long the file is; use a direct link to a .gguf file.")]
    NoLength(String),
    /// The file of this device is not here any more.
    #[error("\"{0}\" was on this device and has to be chosen again.")]
    FileGone(String),
    /// The bytes behind the source are not those the host opened.
    #[error("\"{0}\" is not the file the host opened; it was changed, so the host should open it again.")]
    Changed(String),
}

impl From<NetError> for OpenError {
    fn from(error: NetError) -> Self {
        Self::Source(error.into())
    }
}

/// What opening needs.
#[derive(Clone)]
pub struct Opener {
    /// The adapters.
    pub platform: Platform,
    /// The relay.
    pub relay: Relay,
    /// Bytes from the network are counted here.
    pub traffic: Traffic,
    /// Asks the host.
    pub desk: PieceDesk,
}

/// A model whose header is read.
pub struct Model {
    /// What everyone sees.
    pub card: ModelCard,
    /// Its architecture.
    pub spec: ModelSpec,
    /// Its weight units.
    pub units: UnitMap,
    /// Where its bytes are.
    pub source: Rc<dyn Source>,
}

/// What a header and the place it came from give.
struct Headers {
    model: potluck_gguf::Model,
    /// The headers' bytes, file by file.
    raw: Vec<Vec<u8>>,
    bytes: u64,
}

impl Opener {
    /// Opens a model. `local` are the files, if they lie on this device. `waiting` hears how far the relay's hashing is.
    ///
    /// The model's id is
    /// - of the relay's models: the BLAKE3 root of the file(s), as `GET /models` says; every byte is checked against it;
    /// - of a link: a hash of address, size and header. The header names every tensor and its place, so other files have
    ///   other ids, but bytes of tensors are not covered: there is no root to check them against. The server's ETag is
    ///   left out because browsers may not read it and all devices must find the same id;
    /// - of a file on the host's disk: a hash of its header and size, likewise.
    ///
    /// # Errors
    /// The source does not answer, or the file is no model that can run here.
    pub async fn open(
        &self,
        source: &ModelSource,
        local: &[Rc<dyn LocalFile>],
        waiting: impl Fn(u64, u64),
    ) -> Result<(Model, Metadata), OpenError> {
        match source {
            ModelSource::Relay { name } => self.open_relay(source, name, waiting).await,
            ModelSource::Link { url } => self.open_link(source, url).await,
            ModelSource::File { name, bytes } => self.open_host(source, name, *bytes, local).await,
        }
    }

    /// Opens the model of a card, and checks that it is the one the host opened.
    ///
    /// # Errors
    /// As [`Opener::open`], or the file has changed since.
    pub async fn open_card(&self, card: &ModelCard, local: &[Rc<dyn LocalFile>]) -> Result<Model, OpenError> {
        let (model, _) = self.open(&card.source, local, |_, _| {}).await?;
        if model.card.id != card.id {
            return Err(OpenError::Changed(card.name.clone()));
        }
        Ok(model)
    }

    async fn open_relay(
        &self,
        source: &ModelSource,
        name: &str,
        waiting: impl Fn(u64, u64),
    ) -> Result<(Model, Metadata), OpenError> {
        let (id, model) = self.relay.model(name, waiting).await?;
        let files = model.files.iter().map(|file| HttpFile {
            url: self.relay.url(&file.url),
            bytes: file.bytes,
            hashes: file.root.as_deref().and_then(ModelId::from_hex).map(|root| (root.0, self.relay.url(&file.groups))),
        });
        let http = HttpSource::new(self.platform.clone(), files.collect(), self.traffic.clone());
        let headers = self.read_headers(&http, Some(id)).await?;
        finish(source, name, id, headers, Rc::new(http))
    }

    async fn open_link(&self, source: &ModelSource, url: &str) -> Result<(Model, Metadata), OpenError> {
        let mut files = Vec::new();
        for url in split_names(url) {
            let reply = self.platform.transport.request(HttpRequest::head(&url)).await?;
            if reply.status != 200 {
                let (host, reason) = (host_of(&url).to_owned(), format!("status {} for {url}", reply.status));
                return Err(SourceError::Status { host, reason }.into());
            }
            let bytes = reply.length.ok_or_else(|| OpenError::NoLength(host_of(&url).to_owned()))?;
            files.push(HttpFile { url, bytes, hashes: None });
        }
        let http = HttpSource::new(self.platform.clone(), files, self.traffic.clone());
        let headers = self.read_headers(&http, None).await?;
        let id = identify("potluck link", url, &headers);
        let name = file_stem(url).to_owned();
        finish(source, &name, id, headers, Rc::new(http))
    }

    async fn open_host(
        &self,
        source: &ModelSource,
        name: &str,
        bytes: Bytes,
        local: &[Rc<dyn LocalFile>],
    ) -> Result<(Model, Metadata), OpenError> {
        let files: Rc<dyn Source> = match local.first() {
            Some(file) if file.len() != bytes.0 => return Err(OpenError::FileGone(name.to_owned())),
            Some(_) => Rc::new(LocalSource::new(local.to_vec())),
            None => {
                let (platform, desk) = (self.platform.clone(), self.desk.clone());
                Rc::new(PieceSource::new(platform, desk, bytes.0, self.traffic.clone()))
            }
        };
        let headers = self.read_headers(files.as_ref(), None).await?;
        let id = identify("potluck file", "", &headers);
        finish(source, file_stem(name), id, headers, files)
    }

    /// Reads the header of every file; from the cache, if the id is known before and they are there.
    async fn read_headers(&self, source: &dyn Source, cached: Option<ModelId>) -> Result<Headers, OpenError> {
        let mut headers = Vec::new();
        let mut raw = Vec::new();
        let mut bytes = 0;
        let mut count = 1;
        let mut file = 0;
        while u32::from(file) < count {
            let key = cached.map(|model| BlobKey { model, name: BlobName::Header(file) });
            let (header, text) = self.read_header(source, file, key).await?;
            if file == 0 {
                count = split_count(&header)?.min(u32::from(u16::MAX));
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
        let mut parser = len.map_or_else(HeaderParser::new, HeaderParser::with_length);
        let mut raw = Vec::new();
        let mut progress = Progress::NeedMore { at_least: FIRST_READ };
        if let Some(key) = key {
            let stored = self.stored(key).await;
            if !stored.is_empty() {
                match parser.push(&stored) {
                    Ok(after) => (progress, raw) = (after, stored),
                    Err(error) => {
                        log::warn!("the stored header is of no use: {error}");
                        parser = len.map_or_else(HeaderParser::new, HeaderParser::with_length);
                        self.forget(key).await;
                    }
                }
            }
        }
        let kept = raw.len();
        loop {
            let missing = match &progress {
                // The padding before the data counts as header, so that everyone hashes the same bytes.
                Progress::Done(header) => header.data_offset.saturating_sub(raw.len() as u64),
                Progress::NeedMore { at_least } => {
                    (*at_least).max((3 * raw.len() as u64).clamp(FIRST_READ, LONGEST_READ))
                }
            };
            let offset = raw.len() as u64;
            let wanted = len.map_or(missing, |len| missing.min(len.saturating_sub(offset)));
            match progress {
                Progress::Done(header) if wanted == 0 => {
                    raw.truncate(usize::try_from(header.data_offset).unwrap_or(usize::MAX));
                    if let Some(key) = key.filter(|_| raw.len() > kept) {
                        self.keep(key, kept as u64, raw[kept..].to_vec()).await;
                    }
                    return Ok((*header, raw));
                }
                Progress::NeedMore { at_least } if wanted == 0 => {
                    let (needed, length) = (offset + at_least, offset);
                    return Err(GgufError::Truncated { what: "the header".to_owned(), needed, length }.into());
                }
                _ => {}
            }
            let bytes = source.read(FileRange { file, offset, len: wanted }).await?;
            if let Progress::NeedMore { .. } = progress {
                progress = parser.push(&bytes)?;
            }
            raw.extend(bytes);
        }
    }

    async fn forget(&self, key: BlobKey) {
        if let Err(error) = self.platform.store.delete(key).await {
            log::info!("a blob stays: {error}");
        }
    }

    /// A header in the cache, or nothing: then it is fetched.
    async fn stored(&self, key: BlobKey) -> Vec<u8> {
        match self.platform.store.len(key).await {
            Ok(len) if len > 0 => self.platform.store.read(key, 0, len).await.unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    async fn keep(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) {
        if let Err(error) = self.platform.store.append(key, offset, bytes).await {
            log::info!("the header is not kept: {error}");
        }
    }
}

impl Model {
    /// Everything the coordinator needs, with every type of keys and values that the kernels have for this model: which of
    /// them a device's bindings show is the planner's to respect.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn for_coordinator(&self, metadata: &Metadata, context: u32) -> Result<(OpenedModel, Vec<String>), OpenError> {
        let (language, remarks) = ModelLanguage::read(metadata)?;
        // What is set aside besides weights and state does not depend on how keys and values are stored.
        let settings = settings(Bytes(u64::MAX), context, KvCacheType::F32);
        let states: Vec<KvCacheType> = KvCacheType::ALL.into_iter().filter(|&state| self.spec.takes(state)).collect();
        let shape = |state| self.spec.shape(&self.units, self.card.id, state);
        let opened = OpenedModel {
            card: self.card.clone(),
            shape: shape(states.first().copied().unwrap_or_default()),
            shapes: states.into_iter().map(shape).collect(),
            overhead: fixed_overhead(&self.spec, &settings),
            language: Arc::new(language),
        };
        Ok((opened, remarks))
    }
}

/// The engine's settings for a budget, a context and a type of keys and values.
pub fn settings(budget: Bytes, context: u32, state: KvCacheType) -> Settings {
    Settings { budget, context, kv_cache: state, ..Settings::default() }
}

fn finish(
    source: &ModelSource,
    name: &str,
    id: ModelId,
    headers: Headers,
    files: Rc<dyn Source>,
) -> Result<(Model, Metadata), OpenError> {
    let profile = Profile::from_gguf(&headers.model);
    let (spec, units) = ModelSpec::from_gguf(&headers.model)?;
    let experts = u16::try_from(profile.experts).unwrap_or(u16::MAX);
    let card = ModelCard {
        id,
        source: source.clone(),
        name: profile.name.unwrap_or_else(|| name.to_owned()),
        architecture: profile.architecture,
        quantization: profile.quantization,
        bytes: Bytes(headers.bytes),
        parameters: profile.parameters,
        active_parameters: profile.active_parameters,
        blocks: u16::try_from(spec.blocks.len()).unwrap_or(u16::MAX),
        experts,
        context: spec.context,
        licence: profile.licence.unwrap_or_default(),
    };
    Ok((Model { card, spec, units, source: files }, headers.model.metadata))
}

fn identify(kind: &str, address: &str, headers: &Headers) -> ModelId {
    let mut hasher = blake3::Hasher::new_derive_key(kind);
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(address.as_bytes());
    field(&headers.bytes.to_le_bytes());
    headers.raw.iter().for_each(|raw| field(raw));
    ModelId(*hasher.finalize().as_bytes())
}

/// The names of all files of a split, from that of its first; any other name stands for itself.
pub fn split_names(first: &str) -> Vec<String> {
    let (path, query) = first.split_at(first.find(['?', '#']).unwrap_or(first.len()));
    let split = || {
        let stem = path.strip_suffix(".gguf")?;
        let (stem, count) = stem.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let five = |text: &str| (text.len() == 5).then(|| text.parse::<u16>().ok()).flatten();
        let (number, count) = (five(number)?, five(count)?);
        let names = (1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}.gguf{query}"));
        (number == 1 && count > 0).then(|| names.collect())
    };
    split().unwrap_or_else(|| vec![first.to_owned()])
}

/// `model` of `https://host/path/model.gguf?download=true`.
fn file_stem(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".gguf").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use potluck_engine::largest_kv_cache_buffer;
    use potluck_gguf::synthetic::Synthetic;
    use potluck_plan::WireType;
    use potluck_planner::Layers;

    /// The planner keeps to what a device's bindings show without asking the engine.
    #[test]
    fn the_planner_and_the_engine_have_the_same_buffers_of_keys() {
        let header = join([Synthetic::default().header().unwrap()]).unwrap();
        let (spec, units) = ModelSpec::from_gguf(&header).unwrap();
        for state in KvCacheType::ALL.into_iter().filter(|state| spec.takes(*state)) {
            for context in [64, 100, 4096] {
                let layers = Layers::from_shape(&spec.shape(&units, ModelId([0; 32]), state), context, WireType::F32);
                let largest = layers.iter().map(|layer| layer.buffer).max().unwrap();
                assert_eq!(largest, largest_kv_cache_buffer(&spec, context, state), "{state:?}, {context} positions");
            }
        }
    }

    #[test]
    fn a_split_is_found_by_its_first_name() {
        let names = split_names("https://host/a/Model-Q4_K_M-00001-of-00003.gguf?download=true");
        assert_eq!(names.len(), 3);
        assert_eq!(names[2], "https://host/a/Model-Q4_K_M-00003-of-00003.gguf?download=true");
        for single in ["model.gguf", "model-00002-of-00003.gguf", "model-1-of-3.gguf", "a-of-b.gguf", "x"] {
            assert_eq!(split_names(single), [single]);
        }
    }

    #[test]
    fn a_name_is_the_files_without_path_and_ending() {
        assert_eq!(file_stem("https://host/path/model.gguf?download=true"), "model");
        assert_eq!(file_stem("C:\\models\\tiny.gguf"), "tiny");
    }
}
