//! A conversation as the database has it, and what a tab's write does to it. All tabs of a browser share the database.

use serde::{Deserialize, Serialize};

use super::Conversation;

/// Names one write of a conversation. Random: a tab that does not know a record's revision does not know its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision(pub u64);

/// A stored conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The write that its text is from. Earlier builds wrote none.
    #[serde(default)]
    pub revision: Revision,
    /// The conversation.
    #[serde(flatten)]
    pub conversation: Conversation,
}

/// What a tab knows of a conversation's record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownRecord {
    /// The database had one. If it has none any more, the conversation was deleted.
    pub was_stored: bool,
    /// The revisions that this tab read or wrote. A write counts before it is confirmed: its page may be gone by then.
    #[serde(default = "of_earlier_builds")]
    pub revisions: Vec<Revision>,
}

/// What earlier builds knew: a record without a revision.
fn of_earlier_builds() -> Vec<Revision> {
    vec![Revision::default()]
}

/// A write of a conversation that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// What this tab has.
    pub mine: Record,
    /// What this tab knew of the record when the write began.
    pub seen: KnownRecord,
}

/// What becomes of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOutcome {
    /// This is stored now.
    Written(Record),
    /// Another tab has stored what this one does not know. It stays.
    Parted(Record),
    /// The conversation was deleted, and stays so.
    Deleted,
}

impl KnownRecord {
    /// Knows all revisions that `other` knows.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.revisions.iter().all(|revision| self.revisions.contains(revision))
    }

    /// The database has this revision, and this tab its text.
    pub fn read(&mut self, revision: Revision) {
        self.was_stored = true;
        self.attempt(revision);
    }

    /// A write of this revision begins.
    pub fn attempt(&mut self, revision: Revision) {
        if !self.revisions.contains(&revision) {
            self.revisions.push(revision);
        }
    }

    /// A write of this revision arrived. Earlier ones are overwritten.
    pub fn confirm(&mut self, revision: Revision) {
        self.was_stored = true;
        if let Some(at) = self.revisions.iter().position(|known| *known == revision) {
            self.revisions.drain(..at);
        }
    }
}

impl PendingWrite {
    /// What becomes of this write where the database has `stored`. Only a renamed record's title, and whether it is pinned, count
    /// more than what this tab has: the database learns of them first.
    #[must_use]
    pub fn onto(self, stored: Option<Record>) -> WriteOutcome {
        let Self { mut mine, seen } = self;
        match stored {
            None if seen.was_stored => WriteOutcome::Deleted,
            None => WriteOutcome::Written(mine),
            Some(theirs) if !seen.revisions.contains(&theirs.revision) => WriteOutcome::Parted(theirs),
            Some(Record { conversation: before, .. }) => {
                if before.renamed {
                    mine.conversation.take_title(&before);
                }
                mine.conversation.pinned = before.pinned;
                WriteOutcome::Written(mine)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_panel::RequestId;

    const OLD: Revision = Revision(1);
    const NEW: Revision = Revision(2);
    const OTHER: Revision = Revision(3);

    fn record(revision: Revision) -> Record {
        let mut conversation = Conversation::new("x".into());
        conversation.ask("Why?", RequestId(1), "tiny");
        Record { revision, conversation }
    }

    fn write(was_stored: bool, revisions: &[Revision]) -> PendingWrite {
        PendingWrite { mine: record(NEW), seen: KnownRecord { was_stored, revisions: revisions.to_vec() } }
    }

    #[test]
    fn a_write_replaces_what_its_tab_knows_and_nothing_else() {
        assert_eq!(write(false, &[]).onto(None), WriteOutcome::Written(record(NEW)), "the first write");
        assert_eq!(
            write(true, &[OLD]).onto(Some(record(OLD))),
            WriteOutcome::Written(record(NEW)),
            "nobody else wrote"
        );
        assert_eq!(
            write(true, &[OLD]).onto(Some(record(OTHER))),
            WriteOutcome::Parted(record(OTHER)),
            "another tab wrote"
        );
        assert_eq!(write(true, &[OLD]).onto(None), WriteOutcome::Deleted, "another tab deleted it");
    }

    #[test]
    fn a_first_write_that_failed_is_no_deletion() {
        let mut seen = KnownRecord::default();
        seen.attempt(OLD);
        assert_eq!(PendingWrite { mine: record(NEW), seen }.onto(None), WriteOutcome::Written(record(NEW)));
    }

    #[test]
    fn a_write_that_nobody_confirmed_is_known() {
        let mut seen = KnownRecord::default();
        seen.read(OLD);
        seen.attempt(OTHER);
        for arrived in [OLD, OTHER] {
            let again = PendingWrite { mine: record(NEW), seen: seen.clone() };
            assert_eq!(again.onto(Some(record(arrived))), WriteOutcome::Written(record(NEW)));
        }
    }

    #[test]
    fn what_a_confirmed_write_replaced_is_forgotten_and_what_follows_it_is_not() {
        let mut seen = KnownRecord::default();
        seen.read(OLD);
        seen.attempt(NEW);
        seen.attempt(OTHER);
        seen.confirm(NEW);
        assert_eq!(seen, KnownRecord { was_stored: true, revisions: vec![NEW, OTHER] });
    }

    #[test]
    fn a_write_keeps_the_title_and_the_pin_that_another_tab_gave() {
        let mut titled = record(OLD);
        titled.conversation.title = "Air".into();
        titled.conversation.renamed = true;
        titled.conversation.pinned = true;
        let WriteOutcome::Written(written) = write(true, &[OLD]).onto(Some(titled)) else {
            panic!("renaming parts nothing")
        };
        assert_eq!((written.conversation.title.as_str(), written.revision), ("Air", NEW));
        assert!(written.conversation.pinned);
    }

    #[test]
    fn records_survive_json_and_those_of_earlier_builds_are_read() {
        let before = record(OLD);
        let json = serde_json::to_string(&before).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), before);
        let without = serde_json::to_string(&before.conversation).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&without).unwrap(), record(Revision::default()));
        assert_eq!(
            serde_json::from_str::<Conversation>(&json).unwrap(),
            before.conversation,
            "an earlier build reads it"
        );
    }
}
