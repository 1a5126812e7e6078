//! Opens a model: from a source to its header, id, architecture and weight units.

mod header;
mod names;

use std::rc::Rc;
use std::sync::Arc;

use potluck_engine::{Settings, fixed_overhead};
use potluck_gguf::{GgufError, Metadata};
use potluck_model::{ModelError, ModelSpec, Profile, UnitMap};
use potluck_plan::{Bytes, KvCacheType, ModelId};
use potluck_protocol::{ModelCard, ModelSource};
use potluck_swarm::OpenedModel;
use thiserror::Error;

use self::header::Headers;
use self::names::file_stem;
use crate::language::{LanguageError, ModelLanguage};
use crate::platform::{HttpRequest, LocalFile, NetError, Platform, host_of};
use crate::relay::{Relay, RelayError};
use crate::source::{HttpFile, HttpSource, LocalSource, PendingRequests, PieceSource, Source, SourceError, Traffic};

pub use self::names::split_names;

/// Why a model cannot be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The relay failed.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its header is not valid.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Its architecture is not supported.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its vocabulary or chat template is not valid.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// The server does not say how long a file is.
    #[error("{0} does not say how long the file is. Use a direct link to a .gguf file.")]
    NoLength(String),
    /// The file on this device must be selected again.
    #[error("\"{0}\" is a file on this device. Choose it again.")]
    FileGone(String),
    /// The source has other bytes than the host opened.
    #[error("\"{0}\" changed after the host opened it. The host must open it again.")]
    Changed(String),
}

impl From<NetError> for OpenError {
    fn from(error: NetError) -> Self {
        Self::Source(error.into())
    }
}

/// Opens models.
#[derive(Clone)]
pub struct Opener {
    /// The platform adapters.
    pub platform: Platform,
    /// The relay.
    pub relay: Relay,
    /// Counts the bytes from the network.
    pub traffic: Traffic,
    /// Requests for pieces of the host's file.
    pub requests: PendingRequests,
}

/// An open model: its header was read.
pub struct Model {
    /// What everyone in the room sees.
    pub card: ModelCard,
    /// Its architecture.
    pub spec: ModelSpec,
    /// Its weight units.
    pub units: UnitMap,
    /// Its bytes.
    pub source: Rc<dyn Source>,
}

impl Opener {
    /// Opens a model. `local` are its files if they are on this device. `on_hashing` receives how many bytes of how many the
    /// relay has hashed while it prepares the file.
    ///
    /// The model's id is
    /// - for the relay's models: the BLAKE3 root of the files, as `GET /models` says; every byte is verified against it;
    /// - for a link: a hash of URL, size and header. The header names every tensor and its offset, so other files have other
    ///   ids, but the bytes of tensors are not covered: there is no root to verify them against. The server's ETag is not
    ///   hashed, because browsers may not be allowed to read it and all devices must find the same id;
    /// - for a file on the host's disk: a hash of its header and size, likewise.
    ///
    /// # Errors
    /// The source fails, or the file is not a model that can run here.
    pub async fn open(
        &self,
        source: &ModelSource,
        local: &[Rc<dyn LocalFile>],
        on_hashing: impl Fn(u64, u64),
    ) -> Result<(Model, Metadata), OpenError> {
        match source {
            ModelSource::Relay { name } => self.open_relay(source, name, on_hashing).await,
            ModelSource::Link { url } => self.open_link(source, url).await,
            ModelSource::File { name, bytes } => self.open_host(source, name, *bytes, local).await,
        }
    }

    /// Opens the model of a card, and verifies that it is the one the host opened.
    ///
    /// # Errors
    /// As [`Opener::open`], or the file changed since.
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
        on_hashing: impl Fn(u64, u64),
    ) -> Result<(Model, Metadata), OpenError> {
        let (id, model) = self.relay.model(name, on_hashing).await?;
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
                let (platform, requests) = (self.platform.clone(), self.requests.clone());
                Rc::new(PieceSource::new(platform, requests, bytes.0, self.traffic.clone()))
            }
        };
        let headers = self.read_headers(files.as_ref(), None).await?;
        let id = identify("potluck file", "", &headers);
        finish(source, file_stem(name), id, headers, files)
    }
}

impl Model {
    /// Everything the coordinator needs, with a shape for every KV cache type that the kernels support for this model. The
    /// planner checks which of them fit a device's bindings.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn for_coordinator(&self, metadata: &Metadata, context: u32) -> Result<(OpenedModel, Vec<String>), OpenError> {
        let (language, remarks) = ModelLanguage::read(metadata, context)?;
        // The fixed overhead does not depend on the KV cache type.
        let settings = settings(Bytes(u64::MAX), context, KvCacheType::F32);
        let types: Vec<KvCacheType> =
            KvCacheType::ALL.into_iter().filter(|&kv_cache| self.spec.takes(kv_cache)).collect();
        let shape = |kv_cache| self.spec.shape(&self.units, self.card.id, kv_cache);
        let opened = OpenedModel {
            card: self.card.clone(),
            shape: shape(types.first().copied().unwrap_or_default()),
            shapes: types.into_iter().map(shape).collect(),
            overhead: fixed_overhead(&self.spec, &settings),
            language: Arc::new(language),
        };
        Ok((opened, remarks))
    }
}

/// The engine's settings for a budget, a context in positions and a KV cache type.
pub fn settings(budget: Bytes, context: u32, kv_cache: KvCacheType) -> Settings {
    Settings { budget, context, kv_cache, ..Settings::default() }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_engine::largest_kv_cache_buffer;
    use potluck_gguf::join;
    use potluck_gguf::synthetic::Synthetic;
    use potluck_plan::WireType;
    use potluck_planner::Layers;

    /// The planner respects a device's binding limit without asking the engine.
    #[test]
    fn planner_and_engine_agree_on_the_size_of_kv_cache_buffers() {
        let header = join([Synthetic::default().header().unwrap()]).unwrap();
        let (spec, units) = ModelSpec::from_gguf(&header).unwrap();
        for kv_cache in KvCacheType::ALL.into_iter().filter(|kv_cache| spec.takes(*kv_cache)) {
            for context in [64, 100, 4096] {
                let layers =
                    Layers::from_shape(&spec.shape(&units, ModelId([0; 32]), kv_cache), context, WireType::F32);
                let largest = layers.iter().map(|layer| layer.buffer).max().unwrap();
                assert_eq!(
                    largest,
                    largest_kv_cache_buffer(&spec, context, kv_cache),
                    "{kv_cache:?}, {context} positions"
                );
            }
        }
    }
}
