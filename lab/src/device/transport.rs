//! Messages that leave late, as on a slower network.

use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::LocalBoxFuture;
use potluck_node::platform::{
    HttpReply, HttpRequest, NetError, OpenedReply, Socket, SocketMessage, SocketSender, Transport,
};

use super::delay::Delay;

/// The network, with messages that leave late. HTTP requests do not.
pub struct DelayedTransport {
    inner: Rc<dyn Transport>,
    delay: Delay,
}

impl DelayedTransport {
    /// Delays messages of a network.
    pub fn new(inner: Rc<dyn Transport>, delay: Delay) -> Self {
        Self { inner, delay }
    }
}

impl Transport for DelayedTransport {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        let (connecting, delay) = (self.inner.connect(url), self.delay);
        Box::pin(async move {
            let Socket { sender, messages } = connecting.await?;
            let (queue, queued) = mpsc::unbounded();
            let mut due = delay.apply(queued);
            tokio::task::spawn_local(async move {
                while let Some(message) = due.next().await {
                    sender.send(message);
                }
                sender.close();
            });
            Ok(Socket { sender: Rc::new(Queue(queue)), messages })
        })
    }

    fn may_follow(&self, url: &str) -> bool {
        self.inner.may_follow(url)
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        self.inner.request(request)
    }

    fn open(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<OpenedReply, NetError>> {
        self.inner.open(request)
    }

    fn holds_content_back(&self) -> bool {
        self.inner.holds_content_back()
    }

    fn hides_refusals(&self) -> bool {
        self.inner.hides_refusals()
    }
}

/// Messages that have not left yet.
struct Queue(mpsc::UnboundedSender<SocketMessage>);

impl SocketSender for Queue {
    fn send(&self, message: SocketMessage) {
        // Fails if the connection was closed.
        let _ = self.0.unbounded_send(message);
    }

    fn close(&self) {
        self.0.close_channel();
    }
}
