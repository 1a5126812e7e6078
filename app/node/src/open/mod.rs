//! Opens a model: from a source to its header, id, architecture and weight units.

mod error;
mod header;
mod memory;
mod names;
mod shared;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use potluck_engine::{Settings, fixed_overhead};
use potluck_gguf::Metadata;
use potluck_model::{LocalTime, ModelSpec, Profile, UnitMap, title};
use potluck_plan::{Arithmetic, Bytes, KvCacheType, ModelId};
use potluck_protocol::{ModelCard, ModelSource, PieceRequest};
use potluck_swarm::{FileParts, OpenedModel};

use self::header::{HeaderReader, Headers};
use self::names::file_stem;
use self::shared::group_hashes;
use crate::events::channel;
use crate::hashes::{GROUP_BYTES, model_id};
use crate::language::ModelLanguage;
use crate::platform::{LocalFile, Platform, host_of};
use crate::relay::Relay;
use crate::source::{HttpFile, HttpSource, LocalSource, PendingRequests, PieceSource, Source, SourceError, Traffic};

pub use self::error::OpenError;
pub use self::memory::MemoryNeed;
pub use self::names::{TensorNames, split_names};

/// Largest file that a host sends to others: its list of hashes, which everyone holds in memory, has 128 MiB.
const MAX_SHARED_BYTES: u64 = 256 << 30;

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
    /// The names of its tensors.
    pub names: Rc<TensorNames>,
    /// Its bytes.
    pub source: Rc<dyn Source>,
    /// Length of its first file's header, in bytes.
    pub header_bytes: u64,
}

impl Opener {
    /// Opens links and files where there is no room.
    pub fn without_room(platform: Platform) -> Self {
        let requests = PendingRequests::new(channel::<PieceRequest>().0.sink());
        Self { relay: Relay::new(platform.clone(), ""), platform, traffic: Traffic::default(), requests }
    }

    fn headers(&self) -> HeaderReader<'_> {
        HeaderReader { store: self.platform.store.as_ref() }
    }

    /// Opens a model for this device alone. `local` are its files if they are on this device. `on_hashing` receives how many
    /// bytes of how many the relay has hashed while it prepares the file.
    ///
    /// The model's id is
    /// - for the relay's models: the BLAKE3 root of the files, as `GET /models` says; every byte is verified against it;
    /// - for a file on the host's disk that [`Opener::open_shared`] opened: likewise;
    /// - for a link: a hash of URL, size, header and a few samples of the weights. The header names every tensor and its offset,
    ///   and the samples tell files with other weights apart: who opens the link after its file was replaced has another id, and
    ///   finds nothing of the old one in a cache. There is no root to verify every byte against, but the URL is covered, so only
    ///   its server can send wrong ones. The server's ETag is not hashed, because browsers may not be allowed to read it and all
    ///   devices must find the same id ([0052](../../../../docs/decisions/0052-one-version-of-a-links-file.md));
    /// - for files on this device that nobody else reads: a hash of their headers and sizes. Nothing is stored under it but
    ///   measurements.
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
            ModelSource::File { name, bytes } => {
                check_local(name, *bytes, local)?;
                let files = LocalSource::new(local.to_vec());
                let headers = self.headers().read(&files, None).await?;
                let id = identify("potluck file", "", &headers, &[]);
                finish(source, file_stem(name), id, headers, Rc::new(files))
            }
        }
    }

    /// Opens a model that others in the room read too. A file on this device is read once to hash it, unless its hashes are
    /// known; `on_hashing` counts that as well.
    ///
    /// # Errors
    /// As [`Opener::open`].
    pub async fn open_shared(
        &self,
        source: &ModelSource,
        local: &[Rc<dyn LocalFile>],
        on_hashing: impl Fn(u64, u64),
    ) -> Result<(Model, Metadata), OpenError> {
        // Only single files can be sent to others.
        let (ModelSource::File { name, bytes }, [file]) = (source, local) else {
            return self.open(source, local, on_hashing).await;
        };
        check_local(name, *bytes, local)?;
        check_size(name, *bytes)?;
        let groups = group_hashes(self.platform.store.as_ref(), file, &on_hashing).await?;
        let files = LocalSource::shared(file.clone(), &groups);
        let headers = self.headers().read(&files, None).await?;
        finish(source, file_stem(name), ModelId(groups.root()), headers, Rc::new(files))
    }

    /// Opens the model of a card, and verifies that it is the one the host opened.
    ///
    /// # Errors
    /// As [`Opener::open`], or the file changed since.
    pub async fn open_card(&self, card: &ModelCard, local: &[Rc<dyn LocalFile>]) -> Result<Model, OpenError> {
        let (model, _) = match (&card.source, local) {
            (ModelSource::File { name, bytes }, []) => self.open_hosts(card, name, *bytes).await?,
            (source, local) => {
                let (model, metadata) = self.open(source, local, |_, _| {}).await?;
                if model.card.id == card.id {
                    (model, metadata)
                } else {
                    self.open_shared(source, local, |_, _| {}).await?
                }
            }
        };
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
        let mut roots = Vec::new();
        let mut files = Vec::new();
        for file in &model.files {
            let url = self.relay.url(&file.url);
            let root = file.root.as_deref().and_then(ModelId::from_hex);
            let root = root.ok_or_else(|| SourceError::Hash(host_of(&url).to_owned()))?.0;
            roots.push(root);
            files.push(HttpFile { bytes: file.bytes, hashes: Some((root, self.relay.url(&file.groups))), url });
        }
        // What is stored under the model's id must be the model's, whatever a relay says.
        if model_id(&roots) != Some(id) {
            return Err(SourceError::Hash(host_of(&self.relay.url("")).to_owned()).into());
        }
        let http = HttpSource::new(self.platform.clone(), files, self.traffic.clone());
        let headers = self.headers().read(&http, Some(id)).await?;
        finish(source, name, id, headers, Rc::new(http))
    }

    async fn open_link(&self, source: &ModelSource, url: &str) -> Result<(Model, Metadata), OpenError> {
        let links = split_names(url);
        let http = HttpSource::of_links(self.platform.clone(), links, self.traffic.clone()).await?;
        let headers = self.headers().read(&http, None).await?;
        let samples = http.sample(&headers.raw).await?;
        let samples: Vec<&[u8]> = samples.iter().flatten().map(|sample| &sample.bytes[..]).collect();
        let id = identify("potluck link", url, &headers, &samples);
        let name = file_stem(url).to_owned();
        finish(source, &name, id, headers, Rc::new(http))
    }

    /// Opens the file on the host's disk: every group of it belongs to the card's id, which is its BLAKE3 root.
    async fn open_hosts(&self, card: &ModelCard, name: &str, bytes: Bytes) -> Result<(Model, Metadata), OpenError> {
        check_size(name, bytes)?;
        let (platform, requests) = (self.platform.clone(), self.requests.clone());
        let files = PieceSource::new(platform, requests, bytes.0, card.id.0, self.traffic.clone());
        let headers = self.headers().read(&files, Some(card.id)).await?;
        finish(&card.source, file_stem(name), card.id, headers, Rc::new(files))
    }
}

/// The selected files are those of the choice.
fn check_local(name: &str, bytes: Bytes, local: &[Rc<dyn LocalFile>]) -> Result<(), OpenError> {
    let found = local.first().is_some_and(|file| file.len() == bytes.0);
    if found { Ok(()) } else { Err(OpenError::FileGone(name.to_owned())) }
}

fn check_size(name: &str, bytes: Bytes) -> Result<(), OpenError> {
    if bytes.0 <= MAX_SHARED_BYTES { Ok(()) } else { Err(OpenError::TooLarge(name.to_owned())) }
}

impl Model {
    /// Everything the coordinator needs, with a shape for every KV cache type that the kernels support for this model. The
    /// planner checks which of them fit a device's bindings. Prompts are dated `now`.
    ///
    /// # Errors
    /// The vocabulary cannot be read.
    pub fn for_coordinator(
        &self,
        metadata: &Metadata,
        context: u32,
        now: LocalTime,
    ) -> Result<(OpenedModel, Vec<String>), OpenError> {
        let (language, remarks) = ModelLanguage::read(metadata, context, now)?;
        let types: Vec<KvCacheType> =
            KvCacheType::ALL.into_iter().filter(|&kv_cache| self.spec.takes(kv_cache)).collect();
        let shape = |kv_cache| self.spec.shape(&self.units, self.card.id, kv_cache);
        let opened = OpenedModel {
            card: self.card.clone(),
            shape: shape(types.first().copied().unwrap_or_default()),
            shapes: types.into_iter().map(shape).collect(),
            overhead: overhead(&self.spec, context),
            language: Arc::new(language),
            parts: self.source.group_list().map(|_| Arc::new(self.parts())),
        };
        Ok((opened, remarks))
    }
}

impl Model {
    /// Where the units lie in its first file.
    fn parts(&self) -> FileParts {
        let of_unit = |unit| self.units.tensors(unit).iter().map(move |tensor| (tensor.range, unit));
        let all = self.units.units().flat_map(of_unit).filter(|(range, _)| range.file == 0);
        let units = all.map(|(range, unit)| (range.offset..range.offset + range.len, unit)).collect();
        FileParts::new(self.header_bytes, GROUP_BYTES, units)
    }
}

/// Bytes that a device with a stage needs besides weights and KV cache, whatever the KV cache type and the arithmetic.
pub fn overhead(spec: &ModelSpec, context: u32) -> Bytes {
    let settings = |arithmetic| Settings { arithmetic, ..settings(Bytes(u64::MAX), context, KvCacheType::F32) };
    Arithmetic::ALL.into_iter().map(|arithmetic| fixed_overhead(spec, &settings(arithmetic))).max().unwrap_or_default()
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
        name: title(profile.name.as_deref(), name),
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
    let header_bytes = headers.raw.first().map_or(0, Vec::len) as u64;
    let names = Rc::new(TensorNames::new(&headers.model.tensors));
    Ok((Model { card, spec, units, names, source: files, header_bytes }, headers.model.metadata))
}

fn identify(kind: &str, address: &str, headers: &Headers, samples: &[&[u8]]) -> ModelId {
    let mut hasher = blake3::Hasher::new_derive_key(kind);
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(address.as_bytes());
    field(&headers.bytes.to_le_bytes());
    headers.raw.iter().for_each(|raw| field(raw));
    samples.iter().for_each(|sample| field(sample));
    ModelId(*hasher.finalize().as_bytes())
}
