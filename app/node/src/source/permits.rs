//! Lets a fixed number of tasks through at a time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures::channel::oneshot;

/// A fixed number of permits; tasks wait for one in the order in which they came.
#[derive(Clone)]
pub struct Permits(Rc<RefCell<State>>);

struct State {
    free: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// One permit; given to the next task on drop.
pub struct Permit(Permits);

impl Permits {
    /// `count` permits.
    pub fn new(count: usize) -> Self {
        Self(Rc::new(RefCell::new(State { free: count, waiting: VecDeque::new() })))
    }

    /// Waits for a permit.
    pub async fn acquire(&self) -> Permit {
        let receiver = {
            let mut state = self.0.borrow_mut();
            if state.free > 0 {
                state.free -= 1;
                return Permit(self.clone());
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(sender);
            receiver
        };
        // A sender is dropped without a permit only with the permits themselves, of which this is one.
        receiver.await.unwrap_or_else(|_| Permit(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Permits(state) = &self.0;
        let next = state.borrow_mut().waiting.pop_front();
        match next {
            None => state.borrow_mut().free += 1,
            // If that task is gone, the permit comes back, is dropped here and goes to the one after it.
            Some(next) => drop(next.send(Permit(self.0.clone()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn no_more_tasks_than_permits_run_and_those_that_gave_up_are_skipped() {
        let permits = Permits::new(2);
        let acquire = || permits.acquire().boxed_local();
        let (first, second) = (acquire().now_or_never(), acquire().now_or_never());
        assert!(first.is_some() && second.is_some());
        let (mut third, mut fourth) = (acquire(), acquire());
        assert!((&mut third).now_or_never().is_none() && (&mut fourth).now_or_never().is_none());
        drop(third);
        drop(first);
        let fourth = fourth.now_or_never();
        assert!(fourth.is_some(), "the permit goes to the task that still waits");
        assert!(acquire().now_or_never().is_none());
        drop((second, fourth));
        let both = (acquire().now_or_never(), acquire().now_or_never());
        assert!(both.0.is_some() && both.1.is_some(), "no permit is lost");
    }
}
