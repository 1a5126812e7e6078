//! Waits for uploads, natively: a driver reports that a copy is done only to who asks. A thread of its own asks, so that the
//! engine's thread never waits for a staging buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::runtime::gpu::Gpu;
use crate::runtime::notify::Notify;

/// How long it waits in one go: meanwhile no buffer can be freed.
const PATIENCE: Duration = Duration::from_millis(100);

/// The thread; it begins with the first upload, and ends with this.
#[derive(Debug, Default)]
pub struct UploadWait(Option<Sender<wgpu::SubmissionIndex>>);

impl UploadWait {
    /// Has the buffers of a submission mapped again once it is done, and tells `notify`.
    pub fn until(&mut self, gpu: &Gpu, submission: wgpu::SubmissionIndex, notify: Notify) {
        let unsent = match &self.0 {
            Some(thread) => thread.send(submission).map_err(|unsent| unsent.0),
            None => Err(submission),
        };
        let Err(submission) = unsent else { return };
        let (thread, submissions) = channel();
        // It is sent before the thread begins, which has the other end.
        let _ = thread.send(submission.clone());
        let (device, lost) = (gpu.device.clone(), gpu.lost_mark());
        let waiting = std::thread::Builder::new().name("uploads".to_owned());
        match waiting.spawn(move || run(&device, &lost, &notify, &submissions)) {
            Ok(_) => self.0 = Some(thread),
            Err(error) => {
                log::warn!("uploads are waited for in between: {error}");
                let done = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
                if gpu.device.poll(done).is_err() {
                    gpu.mark_lost();
                }
            }
        }
    }
}

fn run(device: &wgpu::Device, lost: &Arc<AtomicBool>, notify: &Notify, submissions: &Receiver<wgpu::SubmissionIndex>) {
    while let Ok(submission) = submissions.recv() {
        let done = || wgpu::PollType::Wait { submission_index: Some(submission.clone()), timeout: Some(PATIENCE) };
        let mut waited = Err(wgpu::PollError::Timeout);
        while matches!(waited, Err(wgpu::PollError::Timeout)) && !lost.load(Ordering::SeqCst) {
            waited = device.poll(done());
        }
        if waited.is_err() {
            lost.store(true, Ordering::SeqCst);
        }
        // A lost device sends no event.
        notify.wake();
    }
}
