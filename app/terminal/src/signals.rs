//! Signals that end the program.

use std::time::Duration;

use tokio::sync::watch;

use crate::failure::Signal;
use crate::output::end_progress;

/// How long the program may take to end after the first signal.
const FAREWELL: Duration = Duration::from_secs(5);

/// Whether somebody has stopped this program.
#[derive(Clone)]
pub struct Stop(watch::Receiver<Option<Signal>>);

impl Stop {
    /// Listens from now on, in a thread of its own: work that holds the main thread up does not hold up the end. The first signal is
    /// handed to whoever waits; with the second one, or if the first changes nothing, the program ends at once.
    #[must_use]
    pub fn on_signals() -> Self {
        let (sender, receiver) = watch::channel(None);
        let listen = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let Some(mut signals) = Signals::new() else { return };
                let first = signals.next().await;
                _ = sender.send(Some(first));
                _ = tokio::time::timeout(FAREWELL, signals.next()).await;
                end_progress();
                std::process::exit(i32::from(first.code()));
            });
        };
        // Without the thread, signals end the program as they do any other.
        _ = std::thread::Builder::new().name("signals".to_owned()).spawn(listen);
        Self(receiver)
    }

    /// Nobody stops this program but by force.
    #[must_use]
    pub fn never() -> Self {
        Self(watch::channel(None).1)
    }

    /// Waits until somebody stops the program.
    pub async fn stopped(&mut self) -> Signal {
        match self.0.wait_for(Option::is_some).await.ok().and_then(|signal| *signal) {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
struct Signals([(tokio::signal::unix::Signal, Signal); 2]);

#[cfg(unix)]
impl Signals {
    fn new() -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind, is| Some((signal(kind).ok()?, is));
        Some(Self([of(SignalKind::interrupt(), Signal::Interrupt)?, of(SignalKind::terminate(), Signal::Terminate)?]))
    }

    async fn next(&mut self) -> Signal {
        let [(one, interrupt), (other, terminate)] = &mut self.0;
        tokio::select! {
            _ = one.recv() => *interrupt,
            _ = other.recv() => *terminate,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Option<Self> {
        Some(Self)
    }

    async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
