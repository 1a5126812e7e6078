//! How late something is: log-normal, as moex.txt (4.1) assumes of workers.

use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;
use std::time::{Duration, Instant};

use futures::channel::mpsc;
use futures::future::LocalBoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use potluck_node::native::random;
use thiserror::Error;

/// Timers wake up to this much late; the rest of a delay is spent asking for the time.
const TIMER_GRAIN: Duration = Duration::from_millis(2);

/// A wait, drawn anew each time.
pub type Hesitation = Rc<dyn Fn() -> LocalBoxFuture<'static, ()>>;

/// How late messages leave, or experts answer: log-normal, as moex.txt (4.1) assumes of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    median_millis: f64,
    /// Standard deviation of the logarithm; 0 for a constant delay.
    sigma: f64,
}

/// A text is no delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected milliseconds, such as 20, or with the standard deviation of their logarithm, such as 20,0.5")]
pub struct BadDelay;

impl FromStr for Delay {
    type Err = BadDelay;

    fn from_str(text: &str) -> Result<Self, BadDelay> {
        let (median, sigma) = text.split_once(',').unwrap_or((text, "0"));
        let number =
            |text: &str, max: f64| text.parse().ok().filter(|value: &f64| (0.0..=max).contains(value)).ok_or(BadDelay);
        Ok(Self { median_millis: number(median, 10_000.0)?, sigma: number(sigma, 3.0)? })
    }
}

impl Delay {
    /// A wait of so long, drawn anew each time; none once the file `until` exists. Must be used inside a `LocalSet`.
    pub fn hesitation(self, until: Option<PathBuf>) -> Hesitation {
        Rc::new(move || match &until {
            Some(file) if file.exists() => Box::pin(std::future::ready(())),
            _ => Box::pin(wait(Instant::now() + self.at(standard_normal()), ())),
        })
    }

    /// The delay at a point of the standard normal distribution.
    fn at(self, normal: f64) -> Duration {
        Duration::from_secs_f64(self.median_millis * (self.sigma * normal).exp() / 1e3)
    }

    /// The same messages in the same order, each as much later as chance has it, and none before an earlier one. Must be
    /// called inside a `LocalSet`.
    pub fn apply<T: Send + 'static>(self, messages: impl Stream<Item = T> + Unpin + 'static) -> BoxStream<'static, T> {
        let (sender, stamped) = mpsc::unbounded();
        let stamped_messages = messages.map(move |message| (Instant::now() + self.at(standard_normal()), message));
        tokio::task::spawn_local(async move {
            // Fails if nobody receives any more.
            let _ = stamped_messages.map(Ok).forward(sender).await;
        });
        stamped.then(|(at, message)| wait(at, message)).boxed()
    }
}

async fn wait<T>(at: Instant, message: T) -> T {
    let timer = at.saturating_duration_since(Instant::now()).saturating_sub(TIMER_GRAIN);
    if !timer.is_zero() {
        tokio::time::sleep(timer).await;
    }
    while Instant::now() < at {
        tokio::task::yield_now().await;
    }
    message
}

/// By Box and Muller.
fn standard_normal() -> f64 {
    let uniform = || {
        let mut bytes = [0; 8];
        random(&mut bytes);
        // 53 bits, above zero.
        ((u64::from_le_bytes(bytes) >> 11) + 1) as f64 / (1u64 << 53) as f64
    };
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_delay_is_a_median_and_perhaps_a_deviation() {
        assert_eq!("0.5".parse(), Ok(Delay { median_millis: 0.5, sigma: 0.0 }));
        assert_eq!("20,0.5".parse(), Ok(Delay { median_millis: 20.0, sigma: 0.5 }));
        for text in ["", "fast", "-1", "20,", "20,9", "NaN", "1e9"] {
            assert_eq!(text.parse::<Delay>(), Err(BadDelay), "{text}");
        }
    }

    #[test]
    fn half_of_the_delays_are_below_the_median() {
        let delay = Delay { median_millis: 20.0, sigma: 0.5 };
        assert_eq!(delay.at(0.0), Duration::from_millis(20));
        let below = (0..4000).filter(|_| delay.at(standard_normal()) < Duration::from_millis(20)).count();
        assert!((1800..2200).contains(&below), "{below} of 4000");
    }

    #[test]
    fn messages_keep_their_order() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = tokio::task::LocalSet::new();
        let delay = Delay { median_millis: 1.0, sigma: 1.0 };
        let began = Instant::now();
        let arrived: Vec<u32> =
            tasks.block_on(&runtime, async { delay.apply(futures::stream::iter(0..50)).collect().await });
        assert_eq!(arrived, (0..50).collect::<Vec<u32>>());
        assert!(began.elapsed() >= Duration::from_micros(500), "the slowest of 50 decides");
    }

    #[test]
    fn a_hesitation_does_not_wait_for_an_earlier_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = tokio::task::LocalSet::new();
        let hesitation = |median_millis| Delay { median_millis, sigma: 0.0 }.hesitation(None);
        let is_short_first = tasks.block_on(&runtime, async {
            let (long, short) = (hesitation(10_000.0)(), hesitation(1.0)());
            matches!(futures::future::select(long, short).await, futures::future::Either::Right(_))
        });
        assert!(is_short_first);
    }
}
