//! How requests reach the server of a model: not while it asks to wait, and again after trouble that may pass.

use std::cell::Cell;

use potluck_panel::AccessToken;
use potluck_plan::Millis;
use potluck_text::texts;

use super::replies::Refusal;
use crate::backoff::Backoff;
use crate::platform::{HttpReply, HttpRequest, NetError, OpenedReply, Platform, Traffic, host_of};
use crate::source::error::SourceError;

/// Attempts before a request fails.
const MAX_ATTEMPTS: u32 = 6;
/// Attempts before a reply of another version counts: servers behind one name may not have the same yet.
const MAX_VERSIONS: u32 = 3;
/// Waits between attempts. The longest one lies behind the last attempt.
const BACKOFF: Backoff = Backoff::new(500.0, 16_000.0);
/// Waits of a server that refuses for now and does not say for how long.
const UNKNOWN_WAIT: Backoff = Backoff::new(2_000.0, 60_000.0);
/// The longest time that this device waits for a server that refuses again and again: three windows of five minutes. Devices behind
/// one address share their server's limit, so more than one window can pass.
const MAX_WAIT: f64 = 15.0 * 60e3;
/// The same where it is not known that the server refuses: one window.
const MAX_HIDDEN_WAIT: f64 = 5.5 * 60e3;
/// Devices that a server told the same time come back within this share of it,
const SPREAD: f64 = 0.1;
/// but within so many milliseconds at least.
const LEAST_SPREAD: f64 = 2_000.0;

/// Milliseconds that a timer may be early.
const EARLY: f64 = 50.0;

/// The way to the server of a model.
pub(in crate::source) struct Line {
    pub platform: Platform,
    pub traffic: Traffic,
    /// Before that, nothing is asked.
    free_at: Cell<f64>,
    /// Refusals since a reply was usable.
    refusals: Cell<u32>,
    /// Refusals so far, to tell which requests were sent after the last one.
    all_refusals: Cell<u32>,
    /// Milliseconds that were waited since then.
    waited: Cell<f64>,
    /// The server has refused because of too many requests.
    is_limited: Cell<bool>,
    /// A reply was usable.
    worked: Cell<bool>,
    /// To servers of links, and not to the relay.
    to_links: bool,
    /// A broken connection may be a refusal that this network hides.
    may_hide: bool,
}

/// The status of a server that does not know an access token.
const UNKNOWN: u16 = 401;

/// The same request without an access token, if it has one. A server may refuse a token that has ended even for files that everybody gets.
fn without_token(request: &HttpRequest) -> Option<HttpRequest> {
    request.access.is_some().then(|| HttpRequest { access: None, ..request.clone() })
}

/// When a request was sent: after so many refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::source) struct Sent(u32);

impl Drop for Line {
    fn drop(&mut self) {
        // Nobody waits any more.
        self.traffic.end_wait(Millis(self.free_at.get()));
    }
}

impl Line {
    /// To servers of links, or to the relay.
    pub fn new(platform: Platform, traffic: Traffic, to_links: bool) -> Self {
        Self {
            to_links,
            may_hide: to_links && platform.transport.hides_refusals(),
            platform,
            traffic,
            free_at: Cell::new(0.0),
            refusals: Cell::default(),
            all_refusals: Cell::default(),
            waited: Cell::default(),
            is_limited: Cell::default(),
            worked: Cell::default(),
        }
    }

    /// True if requests must be few.
    pub fn is_limited(&self) -> bool {
        self.is_limited.get()
    }

    /// Makes a request once the server may be asked.
    ///
    /// # Errors
    /// The server cannot be reached, or the connection broke.
    pub async fn request(&self, request: HttpRequest) -> Result<(HttpReply, Sent), NetError> {
        let sent = self.turn().await;
        let (arrived, access) = (request.arrived.within(&self.traffic), self.access(&request.url));
        let request = HttpRequest { arrived, access, ..request };
        let without = without_token(&request);
        let reply = self.platform.transport.request(request).await?;
        match without.filter(|_| reply.status == UNKNOWN) {
            Some(without) => Ok((self.platform.transport.request(without).await?, sent)),
            None => Ok((reply, sent)),
        }
    }

    /// Opens a reply once the server may be asked.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn open(&self, request: HttpRequest) -> Result<(OpenedReply, Sent), NetError> {
        let sent = self.turn().await;
        let access = self.access(&request.url);
        let request = HttpRequest { access, ..request };
        let without = without_token(&request);
        let opened = self.platform.transport.open(request).await?;
        match without.filter(|_| opened.0.status == UNKNOWN) {
            Some(without) => Ok((self.platform.transport.open(without).await?, sent)),
            None => Ok((opened, sent)),
        }
    }

    /// The relay knows this device otherwise.
    fn access(&self, url: &str) -> Option<AccessToken> {
        self.platform.access.token(url).filter(|_| self.to_links)
    }

    /// Waits while the server asks to; it may ask for more meanwhile.
    async fn turn(&self) -> Sent {
        loop {
            let left = self.free_at.get() - self.now();
            if left <= 0.0 {
                return Sent(self.all_refusals.get());
            }
            self.platform.clock.sleep(left).await;
        }
    }

    fn now(&self) -> f64 {
        self.platform.clock.now().0
    }

    /// The reply to a request was usable. What flows since before a refusal says nothing of whether the next request is welcome.
    pub fn works(&self, sent: Sent) {
        self.worked.set(true);
        if sent == Sent(self.all_refusals.get()) {
            self.refusals.set(0);
            self.waited.set(0.0);
        }
    }

    /// The server lets this device wait: for so many seconds if it says so, but longer and longer where it refuses nevertheless.
    /// Requests that were refused together count once. Devices that wait for the same moment do not come back together.
    fn refused(&self, seconds: Option<u32>, most: f64) -> Result<(), u32> {
        let now = self.now();
        let again = self.free_at.get() <= now + EARLY;
        self.all_refusals.set(self.all_refusals.get().wrapping_add(1));
        if again {
            self.refusals.set(self.refusals.get() + 1);
        }
        let random = f64::from(u32::from_le_bytes(self.platform.random_bytes())) / f64::from(u32::MAX);
        let own = UNKNOWN_WAIT.wait(self.refusals.get()) * (0.75 + 0.5 * random);
        let asked = seconds.map_or(0.0, |seconds| f64::from(seconds) * 1e3);
        let wait = if asked > 0.0 { own.max(asked + random * LEAST_SPREAD.max(asked * SPREAD)) } else { own };
        if again || now + wait > self.free_at.get() {
            let waited = self.waited.get() + (now + wait - self.free_at.get().max(now));
            if waited > most {
                return Err(seconds.unwrap_or((wait / 1e3).ceil() as u32));
            }
            self.waited.set(waited);
            self.free_at.set(now + wait);
            self.traffic.wait_until(Millis(now + wait));
        }
        Ok(())
    }
}

/// What the attempts at one read have come to.
#[derive(Default)]
pub(super) struct Attempts {
    failed: u32,
    of_other_versions: u32,
}

impl Attempts {
    /// Waits until another attempt makes sense.
    ///
    /// # Errors
    /// There is to be none.
    pub async fn wait(&mut self, line: &Line, url: &str, refusal: Refusal) -> Result<(), SourceError> {
        let (error, pause) = match refusal {
            Refusal::Final(error) => return Err(error),
            Refusal::Busy(seconds) => {
                line.is_limited.set(true);
                let wait = line.refused(seconds, MAX_WAIT).map_err(|seconds| busy(url, seconds));
                if wait.is_ok() {
                    log::info!("{} has had too many requests: waiting", host_of(url));
                }
                return wait;
            }
            Refusal::OtherVersion(error) => {
                self.of_other_versions += 1;
                if self.of_other_versions >= MAX_VERSIONS {
                    return Err(error);
                }
                (error, BACKOFF.wait(self.of_other_versions))
            }
            Refusal::Retry(error) | Refusal::Full(error) => {
                self.failed += 1;
                let is_over = self.failed >= MAX_ATTEMPTS;
                let may_be_refusal = line.may_hide && line.worked.get() && matches!(error, SourceError::Net(_));
                if is_over && may_be_refusal {
                    return line.refused(None, MAX_HIDDEN_WAIT).map_err(|_| error);
                }
                if is_over {
                    return Err(error);
                }
                (error, BACKOFF.wait(self.failed))
            }
        };
        log::info!("retrying: {error}");
        line.platform.clock.sleep(pause).await;
        Ok(())
    }
}

fn busy(url: &str, seconds: u32) -> SourceError {
    let host = host_of(url).to_owned();
    SourceError::Busy(texts().weights.server_is_busy(&host, u64::from(seconds.div_ceil(60))))
}
