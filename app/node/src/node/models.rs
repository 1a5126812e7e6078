//! What models are opened and read with.

use std::cell::RefCell;
use std::rc::Rc;

use potluck_protocol::ModelCard;

use crate::events::Inputs;
use crate::loader::LoadError;
use crate::open::{Model, Opener};
use crate::platform::{LocalFile, Platform};
use crate::relay::Relay;
use crate::source::{PendingRequests, Traffic};

/// The sources of models, and the model that was opened last.
pub(super) struct Models {
    platform: Platform,
    pub traffic: Traffic,
    /// Requests for pieces of the host's file.
    pub requests: PendingRequests,
    last_opened: Rc<RefCell<Option<Rc<Model>>>>,
}

impl Models {
    pub fn new(platform: Platform, inputs: Inputs) -> Self {
        Self {
            platform,
            traffic: Traffic::default(),
            requests: PendingRequests::new(inputs),
            last_opened: Rc::default(),
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
    pub fn opening(&self, relay: Relay, files: Vec<Rc<dyn LocalFile>>) -> Opening {
        Opening { last_opened: self.last_opened.clone(), opener: self.opener(relay), files }
    }
}

/// Opens the model of a card, in a task of its own.
pub(super) struct Opening {
    last_opened: Rc<RefCell<Option<Rc<Model>>>>,
    opener: Opener,
    files: Vec<Rc<dyn LocalFile>>,
}

impl Opening {
    /// The model of the card: the one opened last, or opened now.
    ///
    /// # Errors
    /// The model cannot be opened.
    pub async fn model(&self, card: &ModelCard) -> Result<Rc<Model>, LoadError> {
        let known = self.last_opened.borrow().clone();
        if let Some(model) = known.filter(|model| model.card.id == card.id) {
            return Ok(model);
        }
        let model = Rc::new(self.opener.open_card(card, &self.files).await?);
        *self.last_opened.borrow_mut() = Some(model.clone());
        Ok(model)
    }
}
