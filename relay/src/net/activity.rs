//! Signs of life of a connection, taken from the bytes that move, not from the messages they make.
//!
//! A WebSocket pong can be late for good reasons: it waits behind a long message that its sender is still uploading, or
//! the ping waits behind megabytes on a slow downlink. A dead peer moves no bytes at all.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts the signs of life.
#[derive(Debug, Default)]
pub struct Activity {
    signs: AtomicU64,
    blocked: AtomicBool,
}

impl Activity {
    fn touch(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were. The same number at two pings means that nothing moved between them. Counting pings instead of
    /// seconds keeps a relay that was itself stalled from taking everyone for dead.
    pub fn signs(&self) -> u64 {
        self.signs.load(Ordering::Relaxed)
    }
}

/// A stream that notes its activity. Bytes read count. Bytes written count only when the system had refused some before:
/// taking them now means that the other side acknowledged earlier ones, whereas a dead peer's buffer takes bytes until it
/// is full.
#[derive(Debug)]
pub struct Watched<S> {
    inner: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    /// Watches `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, activity: Arc::default() }
    }

    /// What it notes.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn wrote(&self, result: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        if result.is_pending() {
            self.activity.blocked.store(true, Ordering::Relaxed);
        } else if self.activity.blocked.swap(false, Ordering::Relaxed) {
            self.activity.touch();
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.activity.touch();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.wrote(result)
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
