//! Poll kicks for a browser's GPU process. Chromium looks for finished work about every two milliseconds, but also
//! whenever a submit arrives. While a short piece of work is in flight, empty submits make it look earlier. On an
//! H200 a step of 0.2 ms then takes 0.5 ms instead of 2.9 ms (`e2e/bench/sync.mjs`). They slow down software adapters,
//! which get none.

use potluck_plan::KernelClass;

use crate::runtime::step_times::{StepKind, StepTimes};

/// Milliseconds between two empty submits. A shorter interval delays the work itself; and while a prompt is read, whoever waits for
/// a step has messages to seal.
fn apart(class: KernelClass) -> f64 {
    match class {
        KernelClass::Decode => 0.1,
        KernelClass::Prefill => 0.5,
    }
}

/// Kicks start this many milliseconds before four fifths of a step's usual time, because browser timers fire late.
const EARLY: f64 = 4.0;

/// Longer steps, in milliseconds, gain too little. Between tokens of an answer nothing else is to be computed; chunks of
/// a prompt are, by others that may share the GPU.
fn longest(class: KernelClass) -> f64 {
    match class {
        KernelClass::Decode => 50.0,
        KernelClass::Prefill => 20.0,
    }
}

/// What to do while waiting for a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// The step will not finish within this many milliseconds.
    Sleep(f64),
    /// The step may finish at any moment: make an empty submit, this many milliseconds after the last one.
    Look(f64),
    /// Kicking is not worthwhile, or the step takes far longer than usual.
    Stop,
}

/// The oldest work in flight.
#[derive(Clone, Copy, Debug)]
pub struct Oldest {
    /// `None`: it gets no kicks.
    pub kind: Option<StepKind>,
    /// When it was submitted.
    pub started: f64,
}

/// Names a loop that sends kicks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopId(u64);

/// When to send kicks. A device finishes work in order, so all depends on the oldest work in flight; the next one counts
/// from its end. At most one loop sends kicks, as long as the oldest work is worth it.
#[derive(Debug, Default)]
pub struct PollKicks {
    times: StepTimes,
    /// When a result came last.
    received: f64,
    newest: LoopId,
    /// When the newest loop looks next; `None` if it has ended.
    looks_at: Option<f64>,
}

impl PollKicks {
    /// A result came `now`, of the oldest work in flight. The first step of a kind only serves as a measurement.
    pub fn received(&mut self, done: Oldest, now: f64) {
        if let Some(kind) = done.kind {
            self.times.learn(kind, now - self.begun(done));
        }
        self.received = now;
    }

    /// When the device could begin with the oldest work.
    fn begun(&self, oldest: Oldest) -> f64 {
        oldest.started.max(self.received)
    }

    fn next(&self, oldest: Option<Oldest>, now: f64) -> Next {
        let usual = oldest.and_then(|oldest| {
            let kind = oldest.kind?;
            let usual = self.times.usual(kind).filter(|usual| *usual <= longest(kind.class()))?;
            Some((usual, now - self.begun(oldest), apart(kind.class())))
        });
        let Some((usual, waited, apart)) = usual else { return Next::Stop };
        let early = 0.8 * usual - EARLY - waited;
        if early >= 1.0 {
            Next::Sleep(early)
        } else if waited > 2.0 * usual + EARLY {
            Next::Stop
        } else {
            Next::Look(apart)
        }
    }

    /// Work was submitted, or a result came. Returns the loop that has to begin, if none looks early enough.
    pub fn begin(&mut self, oldest: Option<Oldest>, now: f64) -> Option<LoopId> {
        let due = match self.next(oldest, now) {
            Next::Stop => return None,
            Next::Sleep(millis) => now + millis,
            Next::Look(_) => now,
        };
        if self.looks_at.is_some_and(|at| at <= due + 1.0) {
            return None;
        }
        self.newest.0 += 1;
        self.looks_at = Some(due);
        Some(self.newest)
    }

    /// A loop asks what to do.
    pub fn look(&mut self, by: LoopId, oldest: Option<Oldest>, now: f64) -> Next {
        if by != self.newest {
            return Next::Stop;
        }
        let next = self.next(oldest, now);
        self.looks_at = match next {
            Next::Stop => None,
            Next::Sleep(millis) => Some(now + millis),
            Next::Look(_) => Some(now),
        };
        next
    }
}

/// Sends kicks until `look` says that there is nothing to wait for. No kick is sent before the browser has had a turn.
#[cfg(target_arch = "wasm32")]
pub fn until_stopped(look: impl Fn() -> Next + 'static, kick: impl Fn() + 'static) {
    wasm_bindgen_futures::spawn_local(async move {
        let Ok(channel) = web_sys::MessageChannel::new() else { return };
        let (mut last, mut wait) = (crate::runtime::clock::now(), Next::Look(0.0));
        loop {
            match wait {
                Next::Sleep(millis) => sleep(millis).await,
                Next::Look(_) => turn(&channel).await,
                Next::Stop => break,
            }
            wait = look();
            let now = crate::runtime::clock::now();
            if matches!(wait, Next::Look(apart) if now - last >= apart) {
                last = now;
                kick();
            }
        }
        channel.port1().close();
    });
}

/// Yields to the worker's other events without the four milliseconds that a timer takes.
#[cfg(target_arch = "wasm32")]
pub async fn turn(channel: &web_sys::MessageChannel) {
    let turn = js_sys::Promise::new(&mut |resolve, _| {
        channel.port1().set_onmessage(Some(&resolve));
        // An open channel between two ports of one worker accepts any message.
        let _ = channel.port2().post_message(&wasm_bindgen::JsValue::NULL);
    });
    let _ = wasm_bindgen_futures::JsFuture::from(turn).await;
}

#[cfg(target_arch = "wasm32")]
async fn sleep(millis: f64) {
    use wasm_bindgen::prelude::*;
    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_name = setTimeout)]
        fn set_timeout(callback: &js_sys::Function, millis: i32);
    }
    let timer = js_sys::Promise::new(&mut |resolve, _| set_timeout(&resolve, millis as i32));
    let _ = wasm_bindgen_futures::JsFuture::from(timer).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{BlockIndex, ExpertId, Task};

    const LOOK: Next = Next::Look(0.1);

    fn kind(class: KernelClass) -> StepKind {
        let task = Task::Experts {
            block: BlockIndex(0),
            class,
            normed: vec![0.0],
            experts: vec![vec![ExpertId(1)]],
            sum: None,
        };
        StepKind::of(&task).expect("experts have a time")
    }

    fn step(started: f64) -> Oldest {
        Oldest { kind: Some(kind(KernelClass::Decode)), started }
    }

    /// Steps of both classes take so long, as measured before 0.
    fn usual(millis: f64) -> PollKicks {
        let mut kicks = PollKicks::default();
        for class in [KernelClass::Decode, KernelClass::Prefill] {
            kicks.times.learn(kind(class), millis);
        }
        kicks
    }

    #[test]
    fn the_first_step_only_tells_how_long_steps_take() {
        let mut kicks = PollKicks::default();
        assert_eq!(kicks.begin(Some(step(0.0)), 0.0), None);
        kicks.received(step(0.0), 3.0);
        assert_eq!(kicks.next(Some(step(4.0)), 4.0), LOOK);
    }

    #[test]
    fn most_of_a_long_step_is_slept_through_and_an_endless_one_given_up() {
        let kicks = usual(20.0);
        let next = |now| kicks.next(Some(step(0.0)), now);
        assert_eq!(next(0.0), Next::Sleep(12.0));
        assert_eq!(next(13.0), LOOK);
        assert_eq!(next(43.0), LOOK);
        assert_eq!(next(44.5), Next::Stop, "a GPU that hangs must not keep the processor busy");
    }

    #[test]
    fn very_long_steps_are_left_alone() {
        let prompt = Oldest { kind: Some(kind(KernelClass::Prefill)), started: 0.0 };
        assert_eq!(usual(80.0).next(Some(step(0.0)), 70.0), Next::Stop);
        assert_eq!(usual(30.0).next(Some(step(0.0)), 28.0), LOOK);
        assert_eq!(usual(30.0).next(Some(prompt), 28.0), Next::Stop, "a chunk of a prompt sooner");
        assert_eq!(usual(5.0).next(Some(prompt), 2.0), Next::Look(0.5), "and with fewer kicks");
    }

    #[test]
    fn one_loop_looks_for_all_work_in_flight() {
        let mut kicks = usual(1.0);
        let first = kicks.begin(Some(step(10.0)), 10.0).expect("nobody looks yet");
        assert_eq!(kicks.begin(Some(step(10.0)), 10.2), None, "more was submitted");
        assert_eq!(kicks.look(first, Some(step(10.0)), 10.3), LOOK);
        kicks.received(step(10.0), 11.0);
        assert_eq!(kicks.look(first, Some(step(10.2)), 11.1), LOOK, "the second one is in flight");
        kicks.received(step(10.2), 12.0);
        assert_eq!(kicks.look(first, None, 12.1), Next::Stop);
        assert!(kicks.begin(Some(step(13.0)), 13.0).is_some_and(|next| next != first), "the loop had ended");
    }

    #[test]
    fn work_that_waited_for_others_counts_from_their_end() {
        let mut kicks = usual(2.0);
        kicks.received(step(0.0), 30.0);
        assert_eq!(kicks.next(Some(step(1.0)), 31.0), LOOK, "it is not overdue");
        kicks.received(step(1.0), 32.0);
        assert_eq!(kicks.times.usual(kind(KernelClass::Decode)), Some(2.0), "it took 2 ms of the 31");
    }

    #[test]
    fn a_short_step_is_not_left_to_a_loop_that_sleeps_for_a_long_one() {
        let mut kicks = usual(40.0);
        let long = kicks.begin(Some(step(0.0)), 0.0).expect("nobody looks yet");
        assert_eq!(kicks.look(long, Some(step(0.0)), 0.1), Next::Sleep(27.9));
        kicks.times = usual(1.0).times;
        let short = kicks.begin(Some(step(5.0)), 5.0).expect("the loop sleeps until 28");
        assert_eq!(kicks.look(short, Some(step(5.0)), 5.1), LOOK);
        assert_eq!(kicks.look(long, Some(step(5.0)), 28.0), Next::Stop, "one loop is enough");
    }

    #[test]
    fn work_without_kicks_ends_the_loop_until_it_is_done() {
        let mut kicks = usual(1.0);
        let other = Oldest { kind: None, started: 0.0 };
        assert_eq!(kicks.begin(Some(other), 0.1), None);
        kicks.received(other, 9.0);
        assert!(kicks.begin(Some(step(0.1)), 9.0).is_some(), "what is behind it is next");
    }
}
