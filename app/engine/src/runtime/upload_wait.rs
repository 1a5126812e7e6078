//! Waits for uploads, natively: a driver reports that a copy is done only to those who ask. A thread of its own asks, so that the
//! engine's thread never waits for a staging buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::runtime::gpu::Gpu;
use crate::runtime::notify::Notify;
use crate::runtime::polling::{self, Unpolled};

/// How long it waits in one go: meanwhile no buffer can be freed.
const PATIENCE: Duration = Duration::from_millis(100);

/// The thread; it begins with the first upload, and ends with this.
#[derive(Debug, Default)]
pub struct UploadWait(Option<Waiting>);

impl UploadWait {
    /// Has the buffers of a submission mapped again once it is done, and tells `notify`.
    pub fn until(&mut self, gpu: &Gpu, submission: wgpu::SubmissionIndex, notify: Notify) {
        let unsent = match &self.0 {
            Some(waiting) => waiting.submissions.send(submission).map_err(|unsent| unsent.0),
            None => Err(submission),
        };
        let Err(submission) = unsent else { return };
        match Waiting::begin(gpu, submission.clone(), notify) {
            Ok(waiting) => self.0 = Some(waiting),
            Err(error) => {
                log::warn!("uploads are waited for in between: {error}");
                let done = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
                if polling::poll(&gpu.device, done).is_err() {
                    gpu.mark_lost();
                }
            }
        }
    }
}

impl Drop for UploadWait {
    /// Waits for the thread, up to [`PATIENCE`]. It shares the device, and if it were the last to have it, it would unload the
    /// driver: a program that exits meanwhile crashes.
    fn drop(&mut self) {
        if let Some(Waiting { submissions, unwanted, thread }) = self.0.take() {
            unwanted.store(true, Ordering::SeqCst);
            drop(submissions);
            // It panics only if the driver does.
            let _ = thread.join();
        }
    }
}

/// A thread that waits for submissions.
#[derive(Debug)]
struct Waiting {
    submissions: Sender<wgpu::SubmissionIndex>,
    /// Nobody wants to know any more.
    unwanted: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Waiting {
    /// Begins with the first submission.
    fn begin(gpu: &Gpu, first: wgpu::SubmissionIndex, notify: Notify) -> std::io::Result<Self> {
        let (submissions, receiver) = channel();
        // The other end is here.
        let _ = submissions.send(first);
        let unwanted = Arc::<AtomicBool>::default();
        let (device, lost, ends) = (gpu.device.clone(), gpu.lost_mark(), unwanted.clone());
        let thread = std::thread::Builder::new().name("uploads".to_owned());
        let thread = thread.spawn(move || run(&device, [&*lost, &*ends], &notify, &receiver))?;
        Ok(Self { submissions, unwanted, thread })
    }
}

fn run(
    device: &wgpu::Device,
    [lost, unwanted]: [&AtomicBool; 2],
    notify: &Notify,
    submissions: &Receiver<wgpu::SubmissionIndex>,
) {
    while let Ok(submission) = submissions.recv() {
        let done = || wgpu::PollType::Wait { submission_index: Some(submission.clone()), timeout: Some(PATIENCE) };
        let mut waited = Err(Unpolled::Timeout);
        while waited == Err(Unpolled::Timeout) && !lost.load(Ordering::SeqCst) {
            if unwanted.load(Ordering::SeqCst) {
                return;
            }
            waited = polling::poll(device, done());
        }
        if waited.is_err() {
            lost.store(true, Ordering::SeqCst);
        }
        // A lost device sends no event.
        notify.wake();
    }
}
