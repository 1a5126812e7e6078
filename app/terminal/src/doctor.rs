//! `potluck-node doctor`: whether this device, its cache and its relay are as they should be.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use potluck_engine::{AdapterKind, Gpu};
use potluck_node::native::{Fingerprint, Network, platform};
use potluck_node::platform::HttpRequest;
use potluck_panel::{BUILD, SelfTest, SelfTestState, ToNode};
use potluck_relay_api::path;
use potluck_text::texts;
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::options::DeviceOptions;
use crate::output::print;
use crate::printable::Printable;
use crate::session::Session;
use crate::setup::{NO_RELAY, Setup};
use crate::signals::Stop;
use crate::values::parse_relay;

/// Clocks that are this close agree: certificates and invites count in minutes.
const CLOSE: u64 = 60;

/// Options of `doctor`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct DoctorOptions {
    /// Also ask this relay, and compare its clock with this device's
    #[arg(long, value_name = "URL", value_parser = parse_relay)]
    pub relay: Option<String>,
    /// SHA-256 fingerprint of the relay's certificate authority, or of its certificate, as the relay shows it. Needed if no public
    /// authority vouches for the relay
    #[arg(long, value_name = "HEX", requires = "relay")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// This device.
    #[command(flatten)]
    pub device: DeviceOptions,
}

/// What was found of one thing.
enum Finding {
    Good(String),
    Bad(String),
    Skipped(&'static str),
}

use Finding::{Bad, Good, Skipped};

/// Looks at everything and prints a line for each. Ends with code 1 if something of this device is wrong, and 3 if only the relay is.
///
/// # Errors
/// Something is wrong.
pub(crate) async fn doctor(options: &DoctorOptions, stop: &Stop) -> Result<(), Failure> {
    let mut stop = stop.clone();
    tokio::select! {
        biased;
        signal = stop.stopped() => Err(Failure::Stopped(signal)),
        examined = examine(options) => examined,
    }
}

async fn examine(options: &DoctorOptions) -> Result<(), Failure> {
    let text = &texts().doctor;
    let wrong = || text.something_is_wrong().to_owned();
    report(text.program(), &Good(BUILD.to_owned()))?;
    let gpu = gpu(options).await;
    let mut is_well = report(text.gpu(), &gpu)?;
    let tested = match gpu {
        Good(_) => self_test(options).await?,
        _ => Skipped(text.not_tested()),
    };
    is_well &= report(text.self_test(), &tested)?;
    is_well &= report(text.cache(), &cache(options).await)?;
    let (relay, clock) = relay(options).await;
    let is_relay_well = report(text.relay(), &relay)?;
    is_well &= report(text.clock(), &clock)?;
    match (is_well, is_relay_well) {
        (false, _) => Err(Failure::Failed(wrong())),
        (true, false) => Err(Failure::Room(wrong())),
        (true, true) => Ok(()),
    }
}

/// Prints a line. False if something is wrong.
fn report(label: &str, finding: &Finding) -> Result<bool, Failure> {
    let text = &texts().doctor;
    let (mark, value) = match finding {
        Good(value) => (text.good(), value.as_str()),
        Bad(value) => (text.bad(), value.as_str()),
        Skipped(value) => (text.skipped(), *value),
    };
    print(&Printable::lines(&format!("{mark:4} {label:10} {value}\n")))?;
    Ok(!matches!(finding, Bad(_)))
}

async fn gpu(options: &DoctorOptions) -> Finding {
    match timeout(Duration::from_secs(options.device.timeout), Gpu::open(options.device.gpu())).await {
        Ok(Ok(gpu)) => {
            let is = gpu.capabilities();
            let driver = if is.driver.is_empty() { String::new() } else { format!(", {}", is.driver) };
            let adapter = format!("{} ({}{driver})", is.name, is.backend);
            Good(match is.kind {
                AdapterKind::Software => texts().doctor.software(adapter),
                _ => adapter,
            })
        }
        Ok(Err(error)) => Bad(error.to_string()),
        Err(_) => Bad(texts().terminal.no_progress(options.device.timeout)),
    }
}

/// Tests the kernels of a small model.
async fn self_test(options: &DoctorOptions) -> Result<Finding, Failure> {
    let network = Network { relay: NO_RELAY.to_owned(), ..Network::default() };
    let mut session = Session::start(Setup::new(&network, &options.device)?);
    let tested = async {
        let mut is_asked = false;
        loop {
            session.next().await?;
            let device = &session.status.device;
            if let Some(trouble) = &device.trouble {
                return Ok(Bad(trouble.clone()));
            }
            if device.webgpu && !is_asked {
                session.page(ToNode::SelfTest);
                is_asked = true;
            }
            if let Some(finding) = verdict(&device.self_test) {
                return Ok(finding);
            }
        }
    };
    let late = || Ok(Bad(texts().terminal.no_progress(options.device.timeout)));
    timeout(Duration::from_secs(options.device.timeout), tested).await.unwrap_or_else(|_| late())
}

fn verdict(test: &SelfTest) -> Option<Finding> {
    let (text, tested) = (&texts().doctor, u64::from(test.tested));
    match test.state {
        SelfTestState::NotRun | SelfTestState::Running => None,
        SelfTestState::Passed => Some(Good(text.passed(tested))),
        SelfTestState::Replaced => Some(Good(text.replaced(tested, test.replaced.join(", ")))),
        SelfTestState::Failed => Some(Bad(text.failed(test.failed.join(", ")))),
    }
}

async fn cache(options: &DoctorOptions) -> Finding {
    let folder = match options.device.cache.made_folder() {
        Ok(folder) => folder,
        Err(failure) => return Bad(failure.to_string()),
    };
    let shown = folder.display().to_string();
    let platform = platform(folder, &Network::default());
    // A lock is a file that is written.
    let written = platform.store.lock("doctor".to_owned()).await.map(drop);
    match (written, platform.store.usage().await) {
        (Ok(()), Ok(usage)) => Good(texts().doctor.cache_used(shown, usage.used)),
        (Err(error), _) | (_, Err(error)) => Bad(texts().secret_file.unwritable(shown, error.to_string())),
    }
}

/// What the relay answers, and what its clock says.
async fn relay(options: &DoctorOptions) -> (Finding, Finding) {
    let text = &texts().doctor;
    let Some(relay) = &options.relay else { return (Skipped(text.no_relay()), Skipped(text.no_relay())) };
    let network = Network { relay: relay.clone(), relay_fingerprint: options.relay_fingerprint, ..Network::default() };
    let platform = platform(std::env::temp_dir(), &network);
    let (begun, seconds) = (Instant::now(), options.device.timeout);
    let request = HttpRequest::get(format!("{}{}", relay.trim_end_matches('/'), path::HEALTH));
    let reply = match timeout(Duration::from_secs(seconds), platform.transport.request(request)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => return (Bad(error.to_string()), Skipped(text.clock_unknown())),
        Err(_) => return (Bad(texts().terminal.no_progress(seconds)), Skipped(text.clock_unknown())),
    };
    let clock = clock(reply.date.as_deref(), SystemTime::now());
    if reply.status != 200 || reply.body.trim_ascii() != b"ok" {
        return (Bad(text.other_answer(relay, reply.status)), clock);
    }
    (Good(text.answers(relay, begun.elapsed().as_secs_f64() * 1e3)), clock)
}

fn clock(date: Option<&str>, now: SystemTime) -> Finding {
    let text = &texts().doctor;
    let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
        return Skipped(text.clock_unknown());
    };
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (ours, theirs) = (seconds(now), seconds(theirs));
    match ours.abs_diff(theirs) {
        // A date has whole seconds.
        close @ 0..=CLOSE => Good(text.clock_agrees(close.max(1))),
        ahead if ours > theirs => Bad(text.clock_ahead(ahead)),
        behind => Bad(text.clock_behind(behind)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_noticed_in_both_directions() {
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 10:00:00 GMT").unwrap();
        let of = |date| match clock(date, now) {
            Good(value) | Bad(value) => value,
            Skipped(value) => value.to_owned(),
        };
        assert_eq!(of(Some("Mon, 30 Nov 2026 10:00:30 GMT")), "within 30 s of the relay's");
        assert!(of(Some("Mon, 30 Nov 2026 09:00:00 GMT")).contains("3,600 s ahead"));
        assert!(of(Some("Tue, 01 Dec 2026 10:00:00 GMT")).contains("86,400 s behind"));
        for nothing in [None, Some("yesterday")] {
            assert!(of(nothing).contains("does not say"), "{nothing:?}");
        }
    }

    #[test]
    fn what_a_self_test_found_is_said() {
        let test = |state| SelfTest { state, tested: 40, replaced: vec!["a".to_owned()], failed: vec!["b".to_owned()] };
        assert!(verdict(&test(SelfTestState::Running)).is_none());
        assert!(matches!(verdict(&test(SelfTestState::Passed)), Some(Good(text)) if text.contains("40 kernels")));
        assert!(matches!(verdict(&test(SelfTestState::Replaced)), Some(Good(text)) if text.contains(": a.")));
        assert!(matches!(verdict(&test(SelfTestState::Failed)), Some(Bad(text)) if text.contains(": b.")));
    }
}
