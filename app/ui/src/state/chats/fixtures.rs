//! Conversations for tests, and a browser whose tabs store them.

use std::collections::BTreeMap;

use potluck_panel::{AnswerPart, AnswerStop, Channel, RequestId, Timings};

use super::{
    super::{Conversation, KnownRecord, PendingWrite, Record, Revision, WriteOutcome},
    Chats, Stashed,
};

pub const REQUEST: RequestId = RequestId(1);
/// The revision of the records that a browser begins with.
pub const FIRST: Revision = Revision(1);

pub fn asked(id: &str) -> Conversation {
    let mut conversation = Conversation::new(id.into());
    conversation.ask("Why?", REQUEST, "tiny");
    conversation
}

pub fn answered(id: &str, text: &str) -> Conversation {
    let mut conversation = asked(id);
    conversation.apply(REQUEST, &delta(text));
    conversation.apply(REQUEST, &end());
    conversation
}

pub fn delta(text: &str) -> AnswerPart {
    AnswerPart::Text { index: 0, channel: Channel::Answer, delta: text.into(), tokens: vec![1], logprobs: Vec::new() }
}

pub fn end() -> AnswerPart {
    AnswerPart::End { pieces: 1, stop: AnswerStop::Complete, timings: Timings::default() }
}

pub fn record(conversation: Conversation) -> Record {
    Record { revision: FIRST, conversation }
}

/// A conversation that a tab had read as a first record, and changed.
pub fn stashed(conversation: Conversation) -> Stashed {
    Stashed { conversation, seen: KnownRecord { was_stored: true, revisions: vec![FIRST] } }
}

pub fn ids(conversations: &[Conversation]) -> Vec<&str> {
    conversations.iter().map(|conversation| conversation.id.as_str()).collect()
}

pub fn text_of(conversation: &Conversation) -> &str {
    &conversation.turns[0].answer.text
}

/// Lets a tab continue a conversation.
pub fn ask(tab: Chats, id: &str, question: &str, request: RequestId) {
    tab.change(id, |conversation| conversation.ask(question, request, "tiny"));
}

/// A browser's database.
pub struct Browser {
    pub records: BTreeMap<String, Record>,
    last: Revision,
}

impl Browser {
    pub fn with(conversations: Vec<Conversation>) -> Self {
        let records = conversations.into_iter().map(|conversation| (conversation.id.clone(), record(conversation)));
        Self { records: records.collect(), last: FIRST }
    }

    /// A tab that loads the page.
    pub fn tab(&self, stash: Vec<Stashed>, open: Option<&str>) -> Chats {
        Chats::restore(Some(self.records.values().cloned().collect()), stash, String::new(), open, "fresh".into())
    }

    /// The writes that are due in a tab.
    pub fn begin(&mut self, tab: Chats) -> Vec<PendingWrite> {
        tab.begin_writes(|| {
            self.last.0 += 1;
            self.last
        })
    }

    /// A write arrives; its tab may never hear of that.
    pub fn take(&mut self, write: PendingWrite) -> WriteOutcome {
        let id = write.mine.conversation.id.clone();
        let verdict = write.onto(self.records.get(&id).cloned());
        if let WriteOutcome::Written(record) = &verdict {
            self.records.insert(id, record.clone());
        }
        verdict
    }

    /// A tab stores what is due, where nobody else has written meanwhile.
    pub fn save(&mut self, tab: Chats) {
        for write in self.begin(tab) {
            match self.take(write) {
                WriteOutcome::Written(written) => tab.saved(&written),
                other => panic!("the write must arrive: {other:?}"),
            }
        }
    }

    /// A tab stores its only unsaved conversation, and finds another tab's record there.
    pub fn save_in_vain(&mut self, tab: Chats) -> Record {
        let write = self.begin(tab).pop().expect("something is unsaved");
        match self.take(write) {
            WriteOutcome::Parted(theirs) => theirs,
            other => panic!("another tab wrote before: {other:?}"),
        }
    }

    /// The questions of a stored conversation.
    pub fn questions(&self, id: &str) -> Vec<&str> {
        self.records[id].conversation.turns.iter().map(|turn| turn.question.as_str()).collect()
    }
}
