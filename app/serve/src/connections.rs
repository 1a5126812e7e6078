//! Connections: so many at once that the node keeps file descriptors for itself, and none that waits long for a request.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What connections may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at once. Others wait.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may wait for one.
    pub head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Some systems give a program 256 file descriptors, and the node needs a few.
        Self { connections: 192, head: Duration::from_secs(30) }
    }
}

/// Bytes of a request's head, and of what is read ahead.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// After this silence a program's machine is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How long to wait if the system gives no more connections.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until it is to close. Then each connection's current request is its last.
pub(crate) async fn serve(listener: TcpListener, app: Router, limits: Limits, mut to_close: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(MAX_HEAD_BYTES);
    let (closing, _) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        let (stream, place) = tokio::select! {
            _ = &mut to_close => break,
            accepted = accept(&listener, &places) => accepted,
            Some(_) = connections.join_next() => continue,
        };
        connections.spawn(serve_one(http.clone(), stream, place, app.clone(), closing.subscribe()));
    }
    drop(listener);
    closing.send_replace(true);
    while connections.join_next().await.is_some() {}
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = places.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                log::debug!("a connection was not accepted: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn serve_one(
    http: http1::Builder,
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
    app: Router,
    mut closing: watch::Receiver<bool>,
) {
    // Each token is a small packet, and must not wait until the one before it is acknowledged. Without either option it works, too.
    _ = stream.set_nodelay(true);
    _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = std::pin::pin!(connection);
    // A connection that breaks concerns nobody else.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|is_closing| *is_closing) => connection.as_mut().graceful_shutdown(),
    }
    _ = connection.await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    async fn connected(to: std::net::SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn read(mut stream: TcpStream) -> String {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn whoever_sends_no_request_holds_a_place_only_for_a_while() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (close, to_close) = oneshot::channel();
        let app = Router::new().fallback(async || "Hello");
        let limits = Limits { connections: 2, head: Duration::from_millis(300) };
        let server = tokio::spawn(serve(listener, app, limits, to_close));
        let begin = Instant::now();
        let silent = connected(address, "").await;
        let half = connected(address, "GET / HTTP/1.1\r\nHost: x\r\n").await;
        let asks = connected(address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        let reply = read(asks).await;
        assert!(reply.ends_with("Hello"), "{reply}");
        assert!(begin.elapsed() >= limits.head, "both places were taken until then");
        assert_eq!((read(silent).await.as_str(), read(half).await.contains("Hello")), ("", false));
        close.send(()).unwrap();
        server.await.unwrap();
    }
}
