//! What only a host has: the files of its model, and the context.

use std::rc::Rc;

use potluck_plan::{Bytes, KvCacheType};
use potluck_protocol::{LoadPhase, LoadReport, ModelSource};

use super::doors::RoomOwner;
use crate::open::Model;
use crate::platform::LocalFile;
use crate::source::GROUP_HASHES;

/// One of the times that this node hosted a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostingId(u64);

/// What this node hosts, if anything.
#[derive(Default)]
pub(super) struct Hosting {
    model: Option<HostedModel>,
    /// How often it hosted.
    times: u64,
}

struct HostedModel {
    files: Vec<Rc<dyn LocalFile>>,
    context: u32,
    /// KV cache type, if one was chosen.
    kv_cache: Option<KvCacheType>,
    /// The model, once it is open.
    opened: Option<Rc<Model>>,
    /// The key of the room in which others read the files too; none without a room.
    owner: Option<RoomOwner>,
    /// How far its file is checked, before it is open.
    checking: Option<LoadReport>,
    /// The list of the file's group hashes, once it is hashed.
    group_list: Option<Rc<dyn LocalFile>>,
}

impl Hosting {
    /// Others read the files if the room has an owner's key.
    pub fn start(
        &mut self,
        files: Vec<Rc<dyn LocalFile>>,
        context: u32,
        kv_cache: Option<KvCacheType>,
        owner: Option<RoomOwner>,
    ) {
        self.times += 1;
        self.model =
            Some(HostedModel { files, context, kv_cache, opened: None, owner, checking: None, group_list: None });
    }

    /// What is hosted now.
    pub fn id(&self) -> Option<HostingId> {
        self.model.as_ref().map(|_| HostingId(self.times))
    }

    /// The hosted model is open.
    pub fn opened(&mut self, opened: Rc<Model>) {
        if let Some(model) = &mut self.model {
            model.opened = Some(opened);
        }
    }

    /// So many bytes of the hosted file are checked.
    pub fn checked(&mut self, done: Bytes, total: Bytes) {
        if let Some(model) = &mut self.model {
            model.checking = Some(LoadReport { done, total, ..LoadReport::begin(LoadPhase::Check) });
        }
    }

    /// How far the hosted file is checked, before it is open.
    pub fn checking(&self) -> Option<LoadReport> {
        self.model.as_ref().filter(|model| model.opened.is_none())?.checking
    }

    /// The hosted model and its KV cache type, if that was chosen. None while it is not open.
    pub fn open_model(&self) -> Option<(Rc<Model>, Option<KvCacheType>)> {
        let model = self.model.as_ref()?;
        Some((model.opened.clone()?, model.kv_cache))
    }

    /// Others read the model's files too.
    pub fn is_shared(&self) -> bool {
        self.owner().is_some()
    }

    /// The key of the room that this node hosts.
    pub fn owner(&self) -> Option<&RoomOwner> {
        self.model.as_ref()?.owner.as_ref()
    }

    /// The hosted file was hashed.
    pub fn hashed(&mut self, group_list: Option<Rc<dyn LocalFile>>) {
        if let Some(model) = &mut self.model {
            model.group_list = group_list;
        }
    }

    /// The file, or the list of hashes, that a peer means.
    pub fn file(&self, index: u16) -> Option<Rc<dyn LocalFile>> {
        match index {
            GROUP_HASHES => self.model.as_ref()?.group_list.clone(),
            _ => self.files().get(usize::from(index)).cloned(),
        }
    }

    pub fn end(&mut self) {
        self.model = None;
    }

    /// Positions of context, if this node hosts.
    pub fn context(&self) -> Option<u32> {
        self.model.as_ref().map(|model| model.context)
    }

    /// The files on this device; none if the model is elsewhere.
    pub fn files(&self) -> &[Rc<dyn LocalFile>] {
        self.model.as_ref().map(|model| model.files.as_slice()).unwrap_or_default()
    }

    /// The files on this device that a source means.
    pub fn files_of(&self, source: &ModelSource) -> Vec<Rc<dyn LocalFile>> {
        match source {
            ModelSource::File { .. } => self.files().to_vec(),
            _ => Vec::new(),
        }
    }
}
