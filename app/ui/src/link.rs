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
    /// Takes the lock of a room to host; resolves to a boolean: false while another tab of the browser hosts it.
    pub hold_room: Box<dyn Fn(String) -> js_sys::Promise>,
    /// Releases it.
    pub release_room: Box<dyn Fn()>,
    /// Resolves to an array with the ids of the rooms that tabs of this browser host.
    pub held_rooms: Box<dyn Fn() -> js_sys::Promise>,
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
    /// Takes the lock of a room to host. False while another tab of the browser hosts it.
    pub async fn hold_room(&self, room: &str) -> bool {
        let answer = wasm_bindgen_futures::JsFuture::from((self.0.hold_room)(room.to_owned())).await;
        answer.is_ok_and(|answer| answer.is_truthy())
    }

    /// This tab hosts no more.
    pub fn release_room(&self) {
        (self.0.release_room)();
    }

    /// The ids of the rooms that tabs of this browser host.
    pub async fn held_rooms(&self) -> Vec<String> {
        let answer = wasm_bindgen_futures::JsFuture::from((self.0.held_rooms)()).await;
        let rooms = answer.map(|rooms| js_sys::Array::from(&rooms)).unwrap_or_default();
        rooms.iter().filter_map(|room| room.as_string()).collect()
    }
}
