//! Download rates of devices, as last reported.

use std::collections::BTreeMap;

use potluck_plan::{Bytes, PeerId};
use potluck_planner::Device;
use potluck_protocol::{LoadPhase, LoadReport};

use crate::members::Members;

/// A download says nothing about its rate before so many bytes, or a quarter of all: connections open, and small pieces
/// come first.
const LEAST: Bytes = Bytes(1 << 20);

/// Bytes a millisecond of each device's downloads.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Downloads {
    rates: BTreeMap<PeerId, f64>,
}

impl Downloads {
    /// Notes the rates of members that are downloading.
    pub fn listen(&mut self, members: &Members) {
        for (peer, member) in &members.known {
            let report = member.status.loading.filter(|report| report.phase == LoadPhase::Download);
            if let Some(report) = report {
                self.note(*peer, report);
            }
        }
    }

    fn note(&mut self, peer: PeerId, report: LoadReport) {
        let least = LEAST.min(Bytes(report.total.0 / 4));
        if report.done >= least && report.rate.is_finite() && report.rate > 0.0 {
            self.rates.insert(peer, report.rate / 1e3);
        }
    }

    /// The rate of a device's own downloads, bytes a millisecond; `None` if it found everything in its storage.
    pub fn of(&self, peer: PeerId) -> Option<f64> {
        self.rates.get(&peer).copied()
    }

    /// Sets a device's rate. One that has not downloaded yet gets the median rate of the others.
    pub fn apply(&self, device: &mut Device) {
        if let Some(rate) = self.rates.get(&device.peer).copied().or_else(|| self.usual()) {
            device.download = rate;
        }
    }

    fn usual(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.rates.values().copied().collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_kilobytes_say_nothing_about_a_rate() {
        let (peer, mut downloads) = (PeerId([1; 16]), Downloads::default());
        let report = |done, rate| LoadReport {
            phase: LoadPhase::Download,
            done: Bytes(done),
            total: Bytes(7_000_000),
            rate,
            cached: Bytes(0),
            waits: 0,
        };
        downloads.note(peer, report(3_000, 3_000.0));
        assert_eq!(downloads.of(peer), None, "the rest could come in no time");
        downloads.note(peer, report(5_000_000, 2e6));
        downloads.note(peer, report(6_000_000, 0.0));
        assert_eq!(downloads.of(peer), Some(2_000.0));
    }

    #[test]
    fn a_device_that_has_not_downloaded_yet_gets_the_median_rate() {
        let peer = |id: u8| PeerId([id; 16]);
        let device = |id: u8| Device::declared(peer(id), Bytes(1), 1e9, 1.0);
        let applied = |downloads: &Downloads, id: u8| {
            let mut device = device(id);
            downloads.apply(&mut device);
            device.download
        };
        let mut downloads = Downloads::default();
        assert_eq!(applied(&downloads, 1), device(1).download, "nothing is known");
        downloads.rates = [(peer(1), 5.0), (peer(2), 100.0), (peer(3), 30.0)].into();
        assert_eq!((applied(&downloads, 2), applied(&downloads, 9)), (100.0, 30.0));
    }
}
