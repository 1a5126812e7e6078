//! Whether a connection is alive, judged by bytes that move, not by whole messages, and how much of a message it has sent.
//!
//! A WebSocket pong can be late for good reasons: it waits behind a long message that is still being uploaded, or the
//! ping waits behind megabytes on a slow downlink. A dead connection moves no bytes at all.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::quotas::{Charge, Share};

/// Bytes that a connection may deliver before the others get their turn: about 50 µs of work. A hundred connections that
/// send as fast as they can then delay a small frame by a few milliseconds.
const TURN_BYTES: usize = 64 * 1024;
/// The pause after a turn of a connection that is read slowly: 3 MB a second.
const SLOW_PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a client's control frame beside its payload: two, and the mask. A client that writes the length in more stays
/// charged for them until its next message.
const CONTROL_HEAD: usize = 6;

/// Counts signs that the other side is alive, and the bytes of the message that it is sending.
#[derive(Debug, Default)]
pub struct Activity {
    count: AtomicU64,
    blocked: AtomicBool,
    stalled: AtomicBool,
    crowded: AtomicBool,
    slow: AtomicBool,
    incoming: Mutex<Option<Incoming>>,
}

#[derive(Debug)]
struct Incoming {
    unfinished: Charge,
    limit: usize,
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

    /// Whether the connection was given up because it took nothing.
    pub fn has_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Whether the connection was given up because its unfinished message did not fit into the memory of the relay.
    pub fn is_crowded_out(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// From now on the connection is read at a few megabytes a second: what it sends is dropped.
    pub fn read_slowly(&self) {
        self.slow.store(true, Ordering::Relaxed);
    }

    fn incoming(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on unfinished messages of at most `limit` bytes count as memory of `share`.
    pub fn count_messages(&self, share: &Arc<Share>, limit: usize) {
        *self.incoming() = Some(Incoming { unfinished: share.charge(), limit });
    }

    /// A message was received completely, or no more is received.
    pub fn finish_message(&self) {
        if let Some(incoming) = &mut *self.incoming() {
            incoming.unfinished.clear();
        }
    }

    /// A ping or pong with so much payload was received, perhaps between the fragments of a message, which go on to
    /// occupy memory: only its own bytes are returned.
    pub fn finish_control(&self, payload: usize) {
        if let Some(incoming) = &mut *self.incoming() {
            incoming.unfinished.shrink(CONTROL_HEAD + payload);
        }
    }

    /// Counts bytes of messages. Those that TLS adds are none: no message returns them, so they would add up.
    ///
    /// # Errors
    /// The unfinished message is too long, or does not fit into the memory of the relay.
    pub fn receive(&self, bytes: usize) -> io::Result<()> {
        let mut incoming = self.incoming();
        let Some(Incoming { unfinished, limit }) = &mut *incoming else { return Ok(()) };
        let is_full = unfinished.grow(bytes).is_err();
        if is_full || unfinished.bytes() > *limit {
            self.crowded.store(is_full, Ordering::Relaxed);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }
}

/// A stream that records its activity. Bytes read count. Bytes written count only after a write was blocked: accepting
/// more then means that the other side acknowledged earlier ones. The send buffer of a dead connection accepts bytes too,
/// until it is full. A write that is blocked for too long fails.
#[derive(Debug)]
pub struct ActivityStream<S> {
    inner: S,
    activity: Arc<Activity>,
    stall: Duration,
    stalls_at: Option<Pin<Box<Sleep>>>,
    /// Bytes read in this turn.
    turn: usize,
    /// The end of its pause, if it is read slowly.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> ActivityStream<S> {
    /// Wraps `inner`; a write may be blocked for `stall`.
    pub fn new(inner: S, stall: Duration) -> Self {
        Self { inner, activity: Arc::default(), stall, stalls_at: None, turn: 0, pause: None }
    }

    /// Its activity.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn record_write(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.stalls_at = None;
            if self.activity.blocked.swap(false, Ordering::Relaxed) {
                self.activity.record();
            }
            return result;
        }
        self.activity.blocked.store(true, Ordering::Relaxed);
        let stalls_at = self.stalls_at.get_or_insert_with(|| Box::pin(sleep(self.stall)));
        ready!(stalls_at.as_mut().poll(cx));
        self.activity.stalled.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.turn >= TURN_BYTES {
            self.turn = 0;
            if !self.activity.slow.load(Ordering::Relaxed) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.pause = Some(Box::pin(sleep(SLOW_PAUSE)));
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        self.turn = if read.is_pending() { 0 } else { self.turn + bytes };
        if bytes > 0 {
            self.activity.record();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.record_write(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.record_write(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
