//! The page's only connection to the node: messages in both directions, and services that need a page.

use std::rc::Rc;

use potluck_panel::{ToNode, ToPage};

/// Receives a message from the node.
pub type OnMessage = Box<dyn Fn(ToPage)>;

/// The services that the node's page half provides.
pub struct PageServices {
    /// Sends a message, with a file for [`potluck_panel::ModelSource::File`].
    pub send: Box<dyn Fn(ToNode, Option<web_sys::File>)>,
    /// Registers the only receiver of the node's messages.
    pub listen: Box<dyn Fn(OnMessage)>,
    /// Keeps the screen awake, or lets it sleep again.
    pub keep_awake: Box<dyn Fn(bool)>,
    /// Asks the browser never to evict this site's storage; resolves to a boolean.
    pub persist: Box<dyn Fn() -> js_sys::Promise>,
}

/// The page's connection to the node. Cheap to clone.
#[derive(Clone)]
pub struct NodeLink(Rc<PageServices>);

impl NodeLink {
    /// Wraps the services of the page half.
    #[must_use]
    pub fn new(services: PageServices) -> Self {
        Self(Rc::new(services))
    }

    /// Sends a message.
    pub fn send(&self, message: ToNode) {
        (self.0.send)(message, None);
    }

    /// Sends a message with a file attached.
    pub fn send_with_file(&self, message: ToNode, file: Option<web_sys::File>) {
        (self.0.send)(message, file);
    }

    /// Registers the receiver of the node's messages.
    pub fn listen(&self, receiver: impl Fn(ToPage) + 'static) {
        (self.0.listen)(Box::new(receiver));
    }

    /// Keeps the screen awake, or lets it sleep again.
    pub fn keep_awake(&self, awake: bool) {
        (self.0.keep_awake)(awake);
    }

    /// Asks the browser never to evict this site's storage.
    ///
    /// # Errors
    /// The browser rejects the request.
    pub async fn persist(&self) -> Result<bool, wasm_bindgen::JsValue> {
        let answer = wasm_bindgen_futures::JsFuture::from((self.0.persist)()).await?;
        Ok(answer.is_truthy())
    }
}
