//! Whether a connection is alive, judged by bytes that move, not by whole messages.
//!
//! A WebSocket pong can be late for good reasons: it waits behind a long message that is still being uploaded, or the
//! ping waits behind megabytes on a slow downlink. A dead connection moves no bytes at all.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts signs that the other side is alive.
#[derive(Debug, Default)]
pub struct Activity {
    count: AtomicU64,
    blocked: AtomicBool,
}

impl Activity {
    fn record(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of signs so far. If it is the same at two pings, nothing moved in between. Counting pings instead of
    /// seconds keeps a relay that was stalled itself from declaring everyone dead.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A stream that records its activity. Bytes read count. Bytes written count only after a write was blocked: accepting
/// more then means that the other side acknowledged earlier ones. The send buffer of a dead connection accepts bytes too,
/// until it is full.
#[derive(Debug)]
pub struct ActivityStream<S> {
    inner: S,
    activity: Arc<Activity>,
}

impl<S> ActivityStream<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, activity: Arc::default() }
    }

    /// Its activity.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn record_write(&self, result: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        if result.is_pending() {
            self.activity.blocked.store(true, Ordering::Relaxed);
        } else if self.activity.blocked.swap(false, Ordering::Relaxed) {
            self.activity.record();
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.activity.record();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.record_write(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.record_write(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
