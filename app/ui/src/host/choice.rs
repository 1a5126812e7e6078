//! The model picker's choices while it is open.

use leptos::prelude::*;
use potluck_panel::{
    Arithmetic, Bytes, DeputyChoice, Ends, ExpertGuesser, HostChoice, KvCacheType, ModelLink, ModelSource, Pooling,
    Sharing,
};
use potluck_text::texts;

use super::{catalog::Entry, guesser, open::Check, verdict::Case};
use crate::{relay::Model, state::Store};

/// The model's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// The relay's models.
    Here,
    /// An address.
    Link,
    /// A file.
    Device,
}

impl Tab {
    /// All tabs, in order.
    pub const ALL: [Self; 3] = [Self::Here, Self::Link, Self::Device];

    /// The tab's label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Here => texts().host.tab_relay(),
            Self::Link => texts().host.tab_link(),
            Self::Device => texts().host.tab_device(),
        }
    }

    /// Its element id, which its panel refers to.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Here => "tab-here",
            Self::Link => "tab-link",
            Self::Device => "tab-device",
        }
    }
}

/// Default context of a room; less if the model has less.
pub const CONTEXT: u32 = 4096;

/// The choices in the picker. Copies are handles to the same choices.
#[derive(Clone, Copy)]
pub struct Choice {
    /// The selected tab.
    pub tab: RwSignal<Tab>,
    /// The chosen model of the relay.
    pub model: RwSignal<Option<Model>>,
    /// The address; change it with [`Choice::set_link`].
    pub link: RwSignal<String>,
    /// The catalogue, once it is fetched.
    pub listed: RwSignal<Vec<Entry>>,
    /// What is known of the listed file at the address.
    pub check: RwSignal<Check>,
    /// The file.
    pub file: RwSignal<Option<web_sys::File>, LocalStorage>,
    /// Positions of context.
    pub context: RwSignal<u32>,
    /// Type of the KV cache; `None` for the largest type that fits.
    pub cache: RwSignal<Option<KvCacheType>>,
    /// How products are computed; `None` for what suits this device's GPU.
    pub arithmetic: RwSignal<Option<Arithmetic>>,
    /// How the work is shared; `None` for what suits the model.
    pub share: RwSignal<Option<Sharing>>,
    /// Bytes that this device would lend, if it can.
    pub lend: RwSignal<u64>,
    /// This device has a GPU to lend.
    pub can_lend: Memo<bool>,
    /// List the room on every visitor's door.
    pub visible: RwSignal<bool>,
    /// Where the ends of the model may be; change it with [`Choice::set_ends`].
    pub ends: RwSignal<Ends>,
    /// Of a file on this device, keep everything but experts here.
    pub protect: RwSignal<bool>,
    /// Who guesses experts.
    pub guesser: RwSignal<ExpertGuesser>,
    /// How experts are spread over devices; change it with [`Choice::set_pooling`].
    pub pooling: RwSignal<Pooling>,
}

impl Choice {
    /// The defaults.
    pub fn new(store: Store) -> Self {
        Self {
            tab: RwSignal::new(Tab::Here),
            model: RwSignal::new(None),
            link: RwSignal::new(String::new()),
            listed: RwSignal::new(Vec::new()),
            check: RwSignal::new(Check::None),
            file: RwSignal::new_local(None),
            context: RwSignal::new(CONTEXT),
            cache: RwSignal::new(None),
            arithmetic: RwSignal::new(None),
            share: RwSignal::new(None),
            lend: RwSignal::new(untrack(|| store.lend_by_default())),
            can_lend: Memo::new(move |_| store.can_lend()),
            visible: RwSignal::new(true),
            ends: RwSignal::new(untrack(|| store.settings.with(|settings| settings.ends))),
            protect: RwSignal::new(false),
            guesser: RwSignal::new(ExpertGuesser::Usual),
            pooling: RwSignal::new(untrack(|| store.settings.with(|settings| settings.pooling))),
        }
    }

    /// Bytes this device lends.
    pub fn lent(self) -> u64 {
        if self.can_lend.get() { self.lend.get() } else { 0 }
    }

    /// The chosen model has experts, or it is not known whether it has. For a model without experts, the relay gives no number.
    pub fn may_have_experts(self) -> bool {
        match self.tab.get() {
            Tab::Here => self.model.with(|model| model.as_ref().is_none_or(|model| model.experts.unwrap_or(0) > 0)),
            Tab::Link => self.entry().is_none_or(|entry| entry.active < entry.parameters),
            Tab::Device => true,
        }
    }

    /// The source of the chosen model; `None` while none is chosen.
    pub fn source(self) -> Option<ModelSource> {
        match self.tab.get() {
            Tab::Here => {
                self.model.with(|model| model.as_ref().map(|model| ModelSource::Relay { name: model.name.clone() }))
            }
            Tab::Link => self.address().map(|url| ModelSource::Link { url }),
            Tab::Device => self.file.with(|file| {
                file.as_ref().map(|file| ModelSource::File { name: file.name(), bytes: Bytes(file.size() as u64) })
            }),
        }
    }

    /// The address of the file that the link in the field means; `None` if it means none.
    pub fn address(self) -> Option<String> {
        match self.link.with(|link| link.parse::<ModelLink>()) {
            Ok(ModelLink::File(address)) => Some(address),
            Ok(ModelLink::Repository(_)) | Err(_) => None,
        }
    }

    /// Changes the address. What was known of the former one no longer matters.
    pub fn set_link(self, link: String) {
        self.check.set(Check::None);
        self.link.set(link);
    }

    /// Changes where the ends of the model may be, also for the next room.
    pub fn set_ends(self, store: Store, ends: Ends) {
        self.ends.set(ends);
        store.set(|settings| settings.ends = ends);
    }

    /// Changes how experts are spread over devices, also for the next room.
    pub fn set_pooling(self, store: Store, pooling: Pooling) {
        self.pooling.set(pooling);
        store.set(|settings| (settings.pooling, settings.bad_pooling) = (pooling, None));
    }

    /// The catalogue's entry of the chosen address.
    pub fn entry(self) -> Option<Entry> {
        if self.tab.get() != Tab::Link {
            return None;
        }
        let address = self.address()?;
        self.listed.with(|entries| entries.iter().find(|entry| entry.address == address).cloned())
    }

    /// All devices take part in the embedded model, so that users see a second device working; otherwise the fastest
    /// plan wins.
    pub fn shared(self) -> Sharing {
        let embedded =
            self.tab.get() == Tab::Here && self.model.with(|model| model.as_ref().is_some_and(Model::is_bundled));
        self.share.get().unwrap_or(if embedded { Sharing::Everyone } else { Sharing::Fastest })
    }

    /// The room's context: the chosen one, or less if the model has less.
    pub fn context(self) -> u32 {
        let most = match self.tab.get() {
            Tab::Here => self.model.with(|model| model.as_ref().and_then(|model| model.context)),
            Tab::Link => self.entry().map(|entry| entry.context),
            Tab::Device => None,
        };
        self.context.get().min(most.unwrap_or(u32::MAX)).max(64)
    }

    /// The input of the verdict for `weights` bytes.
    pub fn case(self, weights: u64, model: Option<&Model>, bandwidth: f64) -> Case {
        Case {
            weights,
            state: 0,
            context: self.context(),
            cache: self.cache.get(),
            kv_cache_per_position: model.and_then(|model| model.kv_cache_bytes_per_position),
            lent: self.lent(),
            devices: u32::from(self.can_lend.get()),
            active: weights,
            bandwidth,
        }
    }

    /// The message to the node; `None` while no model is chosen.
    pub fn finish(self) -> Option<HostChoice> {
        Some(HostChoice {
            model: self.source()?,
            budget: self.lent(),
            context: self.context(),
            cache: self.cache.get(),
            arithmetic: self.arithmetic.get(),
            sharing: self.shared(),
            ends: self.ends.get(),
            visible: self.visible.get(),
            resume: None,
            doors: Default::default(),
            protect: self.protect.get() && self.tab.get() == Tab::Device,
            guesser: guesser::chosen(self),
            pooling: self.pooling.get(),
            deputy: DeputyChoice::Nobody,
            term: Default::default(),
        })
    }
}

/// True if an address can name a GGUF file.
pub fn is_gguf_address(url: &str) -> bool {
    let web = url.starts_with("https://") || url.starts_with("http://");
    let path = url.split(['?', '#']).next().unwrap_or_default();
    web && path.to_ascii_lowercase().ends_with(".gguf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_gguf_files_pass() {
        assert!(is_gguf_address("https://example.org/a/model-00001-of-00003.gguf?download=true"));
        assert!(is_gguf_address("http://localhost:9/M.GGUF"));
        assert!(!is_gguf_address("https://example.org/model.safetensors"));
        assert!(!is_gguf_address("model.gguf"));
    }
}
