//! Reads parts of files into staging buffers, in a few threads of their own: the node's thread has messages to answer.

use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};

use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Threads at most and at least. What is in memory is copied by a processor, of which most shall be left; storage is fastest with many.
const MOST_THREADS: usize = 32;
const LEAST_THREADS: usize = 4;

/// A runtime for the sake of its threads: reads must neither wait behind other blocking work nor take all cores.
fn readers(most: usize) -> io::Result<Runtime> {
    Builder::new_current_thread().max_blocking_threads(most).thread_name("reads").build()
}

/// Begins to read at once, or as soon as a thread is free.
fn begin<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    static READERS: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let readers = READERS.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(LEAST_THREADS, usize::from);
        readers((cores / 2).clamp(LEAST_THREADS, MOST_THREADS))
    });
    match readers {
        Ok(readers) => Ok(readers.spawn_blocking(read)),
        Err(error) => Err(error.kind().into()),
    }
}

/// Fills the part with the file's bytes from `offset` on. It begins at once, whether or not somebody waits.
pub fn read_into(file: Arc<File>, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, io::Result<()>> {
    fill(part, move |at, bytes| read_at(&file, offset + at, bytes))
}

/// Fills the part with what `read` puts into buffers, given where in the part they lie. It begins at once, whether or not somebody
/// waits.
pub fn fill(
    mut part: StagingPart,
    read: impl FnMut(u64, &mut [u8]) -> io::Result<()> + Send + 'static,
) -> LocalBoxFuture<'static, io::Result<()>> {
    // Part and file are gone before the read is done: whoever waits may upload the buffer, or delete the file.
    let begun = begin(move || part.fill(read));
    Box::pin(async move { begun?.await.map_err(io::Error::other).flatten() })
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
        let at_once: Arc<[AtomicUsize; 2]> = Arc::default();
        let readers = readers(3).unwrap();
        let read = |number: i32| {
            let at_once = at_once.clone();
            readers.spawn_blocking(move || {
                let [now, most] = &*at_once;
                most.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                number
            })
        };
        let reads: Vec<_> = (0..100).map(read).collect();
        let all = futures::executor::block_on(futures::future::try_join_all(reads)).unwrap();
        assert_eq!(all, (0..100).collect::<Vec<_>>(), "each read is done once");
        assert!(at_once[1].load(Ordering::SeqCst) <= 3, "{:?} threads read at a time", at_once[1]);
    }
}
