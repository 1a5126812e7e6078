//! Notices on the screen: newest last, no duplicates. Some speak of a matter that the page can see settled.

use potluck_panel::{Connection, Notice, Status};

/// A notice on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownNotice {
    /// Its id on this page.
    pub id: u32,
    /// What it says.
    pub notice: Notice,
}

/// What a notice speaks of, where the status says how it stands. The node sends no more than sentences, so their beginnings
/// tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// The host is away.
    HostAway,
    /// This device's GPU is lost.
    GpuLost,
    /// The hosted file is being checked.
    FileChecked,
}

/// How the sentences of each matter begin.
const BEGINNINGS: [(&str, Matter); 5] = [
    ("The host left. ", Matter::HostAway),
    ("This device's GPU was lost. ", Matter::GpuLost),
    ("The GPU did not come back. ", Matter::GpuLost),
    ("This device still checks this model's file ", Matter::FileChecked),
    ("The relay still checks this model's file ", Matter::FileChecked),
];

impl Matter {
    /// What a sentence speaks of, if it is one of these.
    #[must_use]
    pub fn of(sentence: &str) -> Option<Self> {
        BEGINNINGS.iter().find(|(beginning, _)| sentence.starts_with(beginning)).map(|(_, matter)| *matter)
    }

    /// The sentence is no longer true.
    #[must_use]
    pub fn is_settled(self, status: &Status) -> bool {
        match self {
            // While this tab itself is reconnecting, it does not know.
            Self::HostAway => {
                matches!(status.connection, Connection::Connected | Connection::Closed { .. } | Connection::Idle)
            }
            Self::GpuLost => status.device.webgpu,
            Self::FileChecked => status.model.is_some() || !status.role.coordinator,
        }
    }
}

/// The notices on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    next: u32,
    shown: Vec<ShownNotice>,
}

/// Limit on notices, so that they do not cover the page; the oldest is dropped.
const MOST: usize = 3;

impl Notices {
    /// Shows a notice and returns its id. Replaces a notice with the same sentence or of the same matter.
    pub fn show(&mut self, notice: Notice) -> u32 {
        let matter = Matter::of(&notice.sentence);
        let is_same = |old: &str| old == notice.sentence || (matter.is_some() && Matter::of(old) == matter);
        self.shown.retain(|shown| !is_same(&shown.notice.sentence));
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.shown.push(ShownNotice { id, notice });
        if self.shown.len() > MOST {
            self.shown.remove(0);
        }
        id
    }

    /// Removes a notice.
    pub fn dismiss(&mut self, id: u32) {
        self.shown.retain(|shown| shown.id != id);
    }

    /// True if a notice is still on the screen.
    #[must_use]
    pub fn is_shown(&self, id: u32) -> bool {
        self.shown.iter().any(|shown| shown.id == id)
    }

    /// The notices on the screen, newest last.
    #[must_use]
    pub fn shown(&self) -> &[ShownNotice] {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_panel::NoticeLevel;

    fn notice(sentence: &str) -> Notice {
        Notice { level: NoticeLevel::Info, sentence: sentence.into(), details: String::new() }
    }

    #[test]
    fn the_same_sentence_is_shown_once_and_the_screen_is_never_covered() {
        let mut notices = Notices::default();
        notices.show(notice("a"));
        let again = notices.show(notice("a"));
        assert_eq!(notices.shown().len(), 1);
        for sentence in ["b", "c", "d"] {
            notices.show(notice(sentence));
        }
        let sentences: Vec<_> = notices.shown().iter().map(|shown| shown.notice.sentence.as_str()).collect();
        assert_eq!(sentences, ["b", "c", "d"]);
        notices.dismiss(again);
        assert_eq!(notices.shown().len(), 3);
    }

    #[test]
    fn of_one_matter_only_the_newest_is_shown() {
        let mut notices = Notices::default();
        let lost = notices.show(notice("This device's GPU was lost. It is being opened again."));
        notices.show(notice("This device still checks this model's file (0 %)."));
        assert!(notices.is_shown(lost));
        notices.show(notice("The GPU did not come back. Restart the browser."));
        assert!(!notices.is_shown(lost));
        assert_eq!(notices.shown().len(), 2);
    }

    #[test]
    fn a_matter_is_settled_once_the_status_says_so() {
        let mut status = Status { connection: Connection::WaitingForHost, ..Status::default() };
        status.role.coordinator = true;
        for matter in [Matter::HostAway, Matter::GpuLost, Matter::FileChecked] {
            assert!(!matter.is_settled(&status), "{matter:?}");
        }
        status.connection = Connection::Reconnecting { attempt: 1 };
        assert!(!Matter::HostAway.is_settled(&status), "the host may be away still");
        status.connection = Connection::Connected;
        status.device.webgpu = true;
        status.role.coordinator = false;
        for matter in [Matter::HostAway, Matter::GpuLost, Matter::FileChecked] {
            assert!(matter.is_settled(&status), "{matter:?}");
        }
        assert_eq!(Matter::of("The host left before the answer was complete."), None);
    }

    /// The page knows these sentences only from their text, so whoever rewords them must learn of it.
    #[test]
    fn the_node_still_says_these_sentences() {
        let says = [
            include_str!("../../../swarm/src/peer/admission.rs"),
            include_str!("../../../node/src/node/gpu_loss.rs"),
            include_str!("../../../node/src/node/loading.rs"),
        ];
        for (beginning, _) in BEGINNINGS {
            // Who checks is put in front.
            let part = beginning.trim_start_matches("This device ").trim_start_matches("The relay ");
            assert!(says.iter().any(|source| source.contains(part)), "nobody says {beginning:?} any more");
        }
    }
}
