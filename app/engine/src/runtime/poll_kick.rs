//! Poll kicks for a browser's GPU process. Chromium looks for finished work about every two milliseconds, but also
//! whenever a submit arrives. While a decode step of a stage is in flight, empty submits make it look earlier. On an
//! H200 a step of 0.2 ms then takes 0.5 ms instead of 2.9 ms (`e2e/bench/sync.mjs`). They slow down software adapters,
//! which get none.

/// Milliseconds between two empty submits. A shorter interval delays the work itself.
#[cfg(target_arch = "wasm32")]
const APART: f64 = 0.1;
/// Longer steps, in milliseconds, gain too little.
const LONGEST: f64 = 50.0;
/// Kicks start this many milliseconds before four fifths of a step's usual time, because browser timers fire late.
const EARLY: f64 = 4.0;
/// Weight of the previous average in the moving average of step times.
const KEPT: f64 = 0.8;

/// What to do while waiting for a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// The step will not finish within this many milliseconds.
    Sleep(f64),
    /// The step may finish at any moment.
    Look,
    /// Kicking is not worthwhile, or the step takes far longer than usual.
    Stop,
}

/// How long decode steps take on this device.
#[derive(Debug, Default)]
pub struct StepTimes {
    usual: Option<f64>,
}

impl StepTimes {
    /// Records the time of a finished step.
    pub fn learn(&mut self, millis: f64) {
        self.usual = Some(self.usual.map_or(millis, |usual| KEPT * usual + (1.0 - KEPT) * millis));
    }

    /// What to do when a step has been in flight for `waited` milliseconds. The first step only serves as a
    /// measurement.
    pub fn next(&self, waited: f64) -> Next {
        let Some(usual) = self.usual.filter(|usual| *usual <= LONGEST) else { return Next::Stop };
        let early = 0.8 * usual - EARLY - waited;
        if early >= 1.0 {
            Next::Sleep(early)
        } else if waited > 2.0 * usual + EARLY {
            Next::Stop
        } else {
            Next::Look
        }
    }
}

/// Sends kicks until `look` says that there is nothing to wait for. No kick is sent before the browser has had a turn.
#[cfg(target_arch = "wasm32")]
pub fn until_stopped(look: impl Fn() -> Next + 'static, kick: impl Fn() + 'static) {
    wasm_bindgen_futures::spawn_local(async move {
        let Ok(channel) = web_sys::MessageChannel::new() else { return };
        let (mut last, mut wait) = (crate::runtime::clock::now(), Next::Look);
        loop {
            match wait {
                Next::Sleep(millis) => sleep(millis).await,
                Next::Look => turn(&channel).await,
                Next::Stop => break,
            }
            wait = look();
            let now = crate::runtime::clock::now();
            if wait == Next::Look && now - last >= APART {
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

    fn usual(millis: f64) -> StepTimes {
        StepTimes { usual: Some(millis) }
    }

    #[test]
    fn the_first_step_only_tells_how_long_steps_take() {
        let mut step_times = StepTimes::default();
        assert_eq!(step_times.next(0.0), Next::Stop);
        step_times.learn(3.0);
        assert_eq!(step_times.next(0.0), Next::Look);
    }

    #[test]
    fn most_of_a_long_step_is_slept_through_and_an_endless_one_given_up() {
        let step_times = usual(20.0);
        assert_eq!(step_times.next(0.0), Next::Sleep(12.0));
        assert_eq!(step_times.next(13.0), Next::Look);
        assert_eq!(step_times.next(43.0), Next::Look);
        assert_eq!(step_times.next(44.5), Next::Stop, "a GPU that hangs must not keep the processor busy");
    }

    #[test]
    fn very_long_steps_are_left_alone() {
        assert_eq!(usual(80.0).next(70.0), Next::Stop);
    }

    #[test]
    fn the_usual_time_follows_a_device_that_slows_down() {
        let mut step_times = usual(2.0);
        (0..20).for_each(|_| step_times.learn(10.0));
        assert!(matches!(step_times.next(0.0), Next::Sleep(millis) if millis > 3.0), "{step_times:?}");
    }
}
