//! Reads parts of files into staging buffers, in a few threads of their own: the node's thread has messages to answer.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use futures::channel::oneshot;
use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;

/// Threads at most and at least. What is in memory is copied by a processor, of which most shall be left; storage is fastest with many.
const MOST_THREADS: usize = 32;
const LEAST_THREADS: usize = 4;

type Read = Box<dyn FnOnce() + Send>;

/// The threads and what they are to read, in order.
struct Readers {
    state: Mutex<State>,
    wake: Condvar,
    most: usize,
}

#[derive(Default)]
struct State {
    reads: VecDeque<Read>,
    threads: usize,
    idle: usize,
}

impl Readers {
    const fn new(most: usize) -> Self {
        let state = State { reads: VecDeque::new(), threads: 0, idle: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), most }
    }

    /// The threads of this process.
    fn shared() -> &'static Self {
        static SHARED: std::sync::OnceLock<Readers> = std::sync::OnceLock::new();
        SHARED.get_or_init(|| {
            let cores = std::thread::available_parallelism().map_or(LEAST_THREADS, usize::from);
            Self::new((cores / 2).clamp(LEAST_THREADS, MOST_THREADS))
        })
    }

    fn begin(&'static self, read: Read) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reads.push_back(read);
        if state.idle < state.reads.len() && state.threads < self.most {
            state.threads += 1;
            drop(state);
            let begun = std::thread::Builder::new().name("reads".to_owned()).spawn(|| self.run());
            if let Err(error) = begun {
                log::warn!("a thread for reads did not start: {error}");
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.threads -= 1;
                // Without any thread nobody would ever read.
                let left = if state.threads == 0 { state.reads.pop_front() } else { None };
                drop(state);
                left.into_iter().for_each(|read| read());
            }
        } else {
            drop(state);
            self.wake.notify_one();
        }
    }

    fn run(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match state.reads.pop_front() {
                Some(read) => {
                    drop(state);
                    read();
                    state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                }
                None => {
                    state.idle += 1;
                    state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
    }
}

/// Fills the part with the file's bytes from `offset` on. It begins at once, whether or not somebody waits.
pub fn read_into(file: Arc<File>, offset: u64, mut part: StagingPart) -> LocalBoxFuture<'static, io::Result<()>> {
    let (done, result) = oneshot::channel();
    Readers::shared().begin(Box::new(move || {
        let read = part.fill(|at, bytes| read_at(&file, offset + at, bytes));
        // Whoever waits may upload the buffer, or delete the file.
        drop((part, file));
        // Fails if nobody waits any more.
        let _ = done.send(read);
    }));
    Box::pin(async move { result.await.map_err(io::Error::other).flatten() })
}

/// Fills a slice with the file's bytes from `offset` on, wherever others read.
///
/// # Errors
/// The system's; `UnexpectedEof` if the file is shorter.
#[cfg(unix)]
pub fn read_at(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Fills a slice with the file's bytes from `offset` on, wherever others read.
///
/// # Errors
/// The system's; `UnexpectedEof` if the file is shorter.
#[cfg(windows)]
pub fn read_at(file: &File, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                offset += read as u64;
                bytes = &mut bytes[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_reads_are_done_by_no_more_threads_than_allowed() {
        static READERS: Readers = Readers::new(3);
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let (done, results) = std::sync::mpsc::channel();
        for number in 0..100 {
            let done = done.clone();
            READERS.begin(Box::new(move || {
                MOST.fetch_max(AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                AT_ONCE.fetch_sub(1, Ordering::SeqCst);
                done.send(number).unwrap();
            }));
        }
        drop(done);
        let mut all: Vec<i32> = results.iter().collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>(), "each read is done once");
        assert!(MOST.load(Ordering::SeqCst) <= 3, "{MOST:?} threads read at a time");
    }
}
