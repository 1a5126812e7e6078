//! What models are opened and read with.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use potluck_protocol::{ModelCard, ModelSource, PieceRequest, server_of};
use potluck_text::strangers_title;

use crate::events::EventSink;
use crate::loader::LoadError;
use crate::open::{Model, OpenError, Opener};
use crate::platform::{LocalFile, Platform};
use crate::relay::Relay;
use crate::source::{PendingRequests, Traffic};

/// Most servers that the page is told of, so that a host that keeps changing its link cannot fill memory.
const MAX_TOLD: usize = 64;
/// Letters of a server's name.
const MAX_SERVER: usize = 100;

/// The sources of models, and the model that was opened last.
pub(super) struct Models {
    platform: Platform,
    pub traffic: Traffic,
    /// Requests for pieces of the host's file.
    pub requests: PendingRequests,
    last_opened: Rc<RefCell<Option<Rc<Model>>>>,
    /// The servers of links that the page was told of.
    told: BTreeSet<String>,
}

/// Who chose what is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chooser {
    /// The person at this device.
    Here,
    /// The host of the room, somewhere else.
    Elsewhere,
}

impl Models {
    pub fn new(platform: Platform, requests: EventSink<PieceRequest>) -> Self {
        Self {
            platform,
            traffic: Traffic::default(),
            requests: PendingRequests::new(requests),
            last_opened: Rc::default(),
            told: BTreeSet::new(),
        }
    }

    pub fn opener(&self, relay: Relay) -> Opener {
        Opener {
            platform: self.platform.clone(),
            relay,
            traffic: self.traffic.clone(),
            requests: self.requests.clone(),
        }
    }

    pub fn remember(&self, model: Rc<Model>) {
        *self.last_opened.borrow_mut() = Some(model);
    }

    /// Prepares to open the model of a card; `files` are its files if they are on this device.
    pub fn opening(&self, relay: Relay, files: Vec<Rc<dyn LocalFile>>, chooser: Chooser) -> Opening {
        Opening { last_opened: self.last_opened.clone(), opener: self.opener(relay), files, chooser }
    }

    /// The server that this device is about to fetch from for the first time, if somebody else chose it.
    pub fn new_server(&mut self, card: &ModelCard, chooser: Chooser) -> Option<String> {
        let ModelSource::Link { url } = &card.source else { return None };
        let server = strangers_title(server_of(url), MAX_SERVER);
        let is_news = chooser == Chooser::Elsewhere && self.told.len() < MAX_TOLD && self.told.insert(server.clone());
        is_news.then_some(server)
    }
}

/// Opens the model of a card, in a task of its own.
pub(super) struct Opening {
    last_opened: Rc<RefCell<Option<Rc<Model>>>>,
    opener: Opener,
    files: Vec<Rc<dyn LocalFile>>,
    chooser: Chooser,
}

impl Opening {
    /// False if somebody else chose the model's link, and it leads where this device does not follow.
    pub fn may_follow(&self, card: &ModelCard) -> bool {
        let (ModelSource::Link { url }, Chooser::Elsewhere) = (&card.source, self.chooser) else { return true };
        self.opener.relay.is_its(url) || self.opener.platform.transport.may_follow(url)
    }

    /// The model of the card: the one opened last, or opened now.
    ///
    /// # Errors
    /// The model cannot be opened.
    pub async fn model(&self, card: &ModelCard) -> Result<Rc<Model>, LoadError> {
        let known = self.last_opened.borrow().clone();
        // A source never recovers once its file counts as replaced, even if a server said so only for a moment.
        if let Some(model) = known.filter(|model| model.card.id == card.id)
            && model.source.is_unchanged(0).await.is_ok()
        {
            return Ok(model);
        }
        if let ModelSource::Link { url } = &card.source
            && !self.may_follow(card)
        {
            return Err(OpenError::PrivateLink(server_of(url).to_owned()).into());
        }
        let model = Rc::new(self.opener.open_card(card, &self.files).await?);
        *self.last_opened.borrow_mut() = Some(model.clone());
        Ok(model)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::cell::Cell;

    use futures::future::LocalBoxFuture;
    use potluck_plan::{Bytes, ModelId};

    use super::*;
    use crate::events::channel;
    use crate::native::{Network, platform};
    use crate::platform::{HttpReply, HttpRequest, NetError, Socket, Transport};

    /// A network that counts requests and answers none.
    #[derive(Default)]
    struct Nothing(Cell<usize>);

    impl Transport for Nothing {
        fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
            Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
        }

        fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
            self.0.set(self.0.get() + 1);
            Box::pin(async move { Err(NetError::unreachable(&request.url, "nothing is here")) })
        }
    }

    fn card(url: &str) -> ModelCard {
        ModelCard {
            id: ModelId([0; 32]),
            source: ModelSource::Link { url: url.to_owned() },
            name: String::new(),
            architecture: String::new(),
            quantization: String::new(),
            bytes: Bytes::ZERO,
            parameters: 0,
            active_parameters: 0,
            blocks: 2,
            experts: 0,
            context: 64,
            licence: String::new(),
        }
    }

    /// How often the network is asked to open a model by this link, and what comes of it.
    async fn opened(url: &str, chooser: Chooser) -> (usize, String) {
        let network = Rc::new(Nothing::default());
        let platform = Platform { transport: network.clone(), ..platform(std::env::temp_dir(), &Network::default()) };
        let models = Models::new(platform.clone(), channel::<PieceRequest>().0.sink());
        let opening = models.opening(Relay::new(platform, "http://localhost"), Vec::new(), chooser);
        let error = opening.model(&card(url)).await.err().map(|error| error.to_string());
        (network.0.get(), error.unwrap_or_default())
    }

    #[tokio::test]
    async fn a_link_that_a_host_chose_leads_to_nothing_that_only_this_device_reaches() {
        for private in ["https://192.168.1.1/admin.gguf", "http://models.example/a.gguf"] {
            let (requests, sentence) = opened(private, Chooser::Elsewhere).await;
            assert!(requests == 0 && sentence.contains("does not follow it"), "{private}: {requests} {sentence}");
            assert_eq!(opened(private, Chooser::Here).await.0, 1, "one's own choice: {private}");
        }
        assert_eq!(opened("https://models.example/a.gguf", Chooser::Elsewhere).await.0, 1);
    }

    #[tokio::test]
    async fn a_server_that_somebody_else_chose_is_named_once_before_it_is_asked() {
        let platform = platform(std::env::temp_dir(), &Network::default());
        let mut models = Models::new(platform, channel::<PieceRequest>().0.sink());
        let link = card("https://me:word@models.example/a.gguf?token=1");
        assert_eq!(models.new_server(&link, Chooser::Here), None);
        assert_eq!(models.new_server(&link, Chooser::Elsewhere).as_deref(), Some("models.example"));
        assert_eq!(models.new_server(&link, Chooser::Elsewhere), None, "it was told");
    }
}
