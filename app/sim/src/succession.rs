//! What a driver does when a deputy takes over, and when a host steps down; and the rule that two hosts never answer at once.

use potluck_plan::{Arithmetic, PlanEpoch};
use potluck_protocol::{AnswerPart, DeputyChoice, Doors, Frame, OwnerSecrets, Succession, Term};
use potluck_swarm::{Event, HostCommand, Ownership};

use super::engine::CONTEXT;
use super::relay::Uplink;
use super::world::{Scheduled, World};

/// A host with a deputy tells the relay this often that it is there.
const RENEW_MILLIS: f64 = 1_000.0;
/// Size of such a message.
const SHORT: usize = 60;
/// A driver opens the new connection after this time.
const REOPEN_MILLIS: f64 = 50.0;

/// Who has written text, by the rule that only the newest host does.
#[derive(Default)]
pub(super) struct Hosts {
    newest: Term,
    /// Hosts that took over.
    pub taken_over: u32,
}

impl World {
    /// The host chooses who hosts if it is lost.
    pub fn choose_deputy(&mut self, choice: DeputyChoice) {
        self.deputy = choice;
    }

    /// How often a deputy has taken over.
    pub fn taken_over(&self) -> u32 {
        self.hosts.taken_over
    }

    pub(super) fn host_command(&self, index: usize) -> HostCommand {
        let peer = &self.peers[index];
        HostCommand {
            source: self.source.clone(),
            context: CONTEXT,
            kv_cache: self.kv_cache,
            arithmetic: Arithmetic::Exact,
            sharing: self.share,
            ends: self.ends,
            last_epoch: PlanEpoch(0),
            in_advance: self.in_advance,
            doors: peer.doors.clone(),
            at: Default::default(),
            pooling: self.pooling,
            spot_checks: self.spot_checks,
            on_demand: self.on_demand,
            protect: self.protect,
            deputy: self.deputy,
            ownership: Some(Ownership { secrets: secrets(), term: peer.term, visible: false }),
        }
    }

    pub(super) fn take_over(&mut self, index: usize, succession: &Succession) {
        self.hosts.taken_over += 1;
        self.hang_up(index);
        let Doors { link, generation, .. } = succession.doors;
        let peer = &mut self.peers[index];
        (peer.is_host, peer.term) = (true, succession.term);
        (peer.doors, peer.link, peer.group) = (succession.doors.clone(), link, Some(generation));
        let command = HostCommand {
            context: succession.context,
            sharing: succession.sharing,
            ends: succession.ends,
            deputy: succession.deputy,
            ..self.host_command(index)
        };
        self.event(index, Event::Host(command));
        self.schedule(self.now + REOPEN_MILLIS, index, Scheduled::Dial);
    }

    pub(super) fn step_down(&mut self, index: usize) {
        self.hang_up(index);
        let peer = &mut self.peers[index];
        (peer.is_host, peer.group) = (false, None);
        self.schedule(self.now + REOPEN_MILLIS, index, Scheduled::Dial);
    }

    /// A host with a deputy tells the relay that it is there.
    pub(super) fn renew_lease(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        if self.deputy != DeputyChoice::Nobody && peer.is_host && self.now - peer.renewed >= RENEW_MILLIS {
            peer.renewed = self.now;
            self.up(index, SHORT, Uplink::Renew(self.now));
        }
    }

    /// A host sends text: none of an earlier term does so after one of a later term has.
    pub(super) fn note_text(&mut self, index: usize, frame: &Frame) {
        let Frame::Answer(_, AnswerPart::Text { .. }) = frame else { return };
        let (term, newest) = (self.peers[index].term, self.hosts.newest);
        if term < newest {
            self.violate(format!("device {index} writes as the host of {term:?} after one of {newest:?} has written"));
        }
        self.hosts.newest = newest.max(term);
    }
}

fn secrets() -> OwnerSecrets {
    OwnerSecrets { owner: [1; 32], link: [2; 16] }
}
