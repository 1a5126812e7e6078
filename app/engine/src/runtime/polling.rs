//! Natively a driver tells what is done only to those who ask, and several threads ask: the engine's, one for uploads, one that
//! keeps the clock up.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What wgpu 30.0 panics with if a wait runs out just as another thread has found that everything is done. Its trunk does not
/// any more (gfx-rs/wgpu, pull request 9958).
const RACE: &str = "If the queue is empty, the current submission index";

/// Why a poll did not end as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpolled {
    /// What was waited for is not known to be done.
    Timeout,
    /// The device is lost, or its driver or wgpu has panicked: nothing is to be expected of it.
    Lost,
}

/// As [`wgpu::Device::poll`], also beside other threads that poll. In that race it is a timeout: the other thread has called
/// whoever waited for it. Only a callback that a third thread set in that instant would be lost.
///
/// # Errors
/// [`Unpolled`].
pub fn poll(device: &wgpu::Device, wait: wgpu::PollType) -> Result<(), Unpolled> {
    unless_panicked(|| device.poll(wait))
}

fn unless_panicked(poll: impl FnOnce() -> Result<wgpu::PollStatus, wgpu::PollError>) -> Result<(), Unpolled> {
    // Only callbacks of ours run meanwhile, and they only queue events or set marks.
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(wgpu::PollError::Timeout)) => Err(Unpolled::Timeout),
        Err(panic) if panic.downcast_ref::<String>().is_some_and(|message| message.starts_with(RACE)) => {
            Err(Unpolled::Timeout)
        }
        Ok(Err(_)) | Err(_) => Err(Unpolled::Lost),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::runtime::gpu::{Gpu, GpuOptions};

    /// Among a few thousand of them the race is met now and then.
    const SUBMISSIONS: usize = 5_000;

    /// Ends the other threads, also if this one panics.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_race_is_a_timeout_and_any_other_panic_loses_the_device() {
        let raced = unless_panicked(|| panic!("{RACE} ({}) should be at least the wait submission index (2)", 1));
        assert_eq!(raced, Err(Unpolled::Timeout));
        assert_eq!(unless_panicked(|| panic!("the driver is gone")), Err(Unpolled::Lost));
        assert_eq!(unless_panicked(|| Ok(wgpu::PollStatus::QueueEmpty)), Ok(()));
    }

    #[test]
    fn waits_end_beside_other_threads_that_poll() {
        let gpu =
            futures::executor::block_on(Gpu::open(GpuOptions::default())).expect("these tests need a Vulkan adapter");
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 1 << 20,
            usage: wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        poll(&gpu.device, wgpu::PollType::Poll).unwrap();
                    }
                });
            }
            let _over = Over(&is_over);
            for _ in 0..SUBMISSIONS {
                let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.clear_buffer(&buffer, 0, None);
                let submission = gpu.queue.submit([encoder.finish()]);
                let wait = || wgpu::PollType::Wait {
                    submission_index: Some(submission.clone()),
                    timeout: Some(Duration::ZERO),
                };
                let mut waited = Err(Unpolled::Timeout);
                while waited == Err(Unpolled::Timeout) {
                    waited = poll(&gpu.device, wait());
                }
                assert_eq!(waited, Ok(()), "a device that other threads poll is not lost");
            }
        });
    }
}
