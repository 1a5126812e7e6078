//! Which devices computed the answers that people have read. If one of them is found wrong later, who asked is told.

use std::collections::{BTreeSet, VecDeque};

use potluck_plan::PeerId;
use potluck_protocol::{AnswerPart, Frame, RequestId};

use crate::event_context::EventContext;

/// Answers that are remembered, the newest ones.
const MAX_SHOWN: usize = 1_024;

/// An answer that has ended.
pub(super) struct ShownAnswer {
    pub asker: PeerId,
    pub request: RequestId,
    /// The asker's name of the conversation.
    pub conversation: String,
    /// Devices with a stage that computed some of it.
    pub computed_by: BTreeSet<PeerId>,
    /// One of them was found wrong.
    pub is_doubtful: bool,
}

impl ShownAnswer {
    fn tell(&self, cx: &mut EventContext) {
        let part = AnswerPart::Doubtful { conversation: self.conversation.clone() };
        cx.out.send(self.asker, Frame::Answer(self.request, part));
    }
}

#[derive(Default)]
pub(super) struct ShownAnswers(VecDeque<ShownAnswer>);

impl ShownAnswers {
    pub fn add(&mut self, answer: ShownAnswer) {
        if self.0.len() == MAX_SHOWN {
            self.0.pop_front();
        }
        self.0.push_back(answer);
    }

    /// A device was found wrong: tells everyone who asked for what it computed.
    pub fn doubt(&mut self, peer: PeerId, cx: &mut EventContext) {
        for answer in self.0.iter_mut().filter(|answer| answer.computed_by.contains(&peer)) {
            answer.is_doubtful = true;
            answer.tell(cx);
        }
    }

    /// An asker is here again, and may have missed it.
    pub fn remind(&self, asker: PeerId, cx: &mut EventContext) {
        self.0.iter().filter(|answer| answer.is_doubtful && answer.asker == asker).for_each(|answer| answer.tell(cx));
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::Millis;

    use super::*;
    use crate::HintOptions;
    use crate::experts::Holders;
    use crate::members::Members;
    use crate::outbox::Outbox;

    const ME: PeerId = PeerId([1; 16]);
    const STAGE: PeerId = PeerId([2; 16]);

    fn told(cx: &mut EventContext) -> Vec<RequestId> {
        let request = |frame| match frame {
            Frame::Answer(request, AnswerPart::Doubtful { conversation }) if conversation == "c" => request,
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| cx.out.next_own()).map(request).collect()
    }

    #[test]
    fn askers_are_told_of_what_a_device_computed_and_again_when_they_come_back() {
        let (members, holders, hints) = (Members::new(ME), Holders::default(), HintOptions::default());
        let kv_cache = Default::default();
        let (biases, out) = (Default::default(), Outbox::new(ME));
        let mut cx = EventContext { now: Millis(0.0), members, holders, hints, kv_cache, biases, out };
        let mut shown = ShownAnswers::default();
        let mut add = |request, by: &[PeerId]| {
            let (request, computed_by) = (RequestId(request), by.iter().copied().collect());
            shown.add(ShownAnswer { asker: ME, request, conversation: "c".into(), computed_by, is_doubtful: false });
        };
        add(0, &[STAGE]);
        for request in 1..=MAX_SHOWN as u32 {
            add(request, if request % 512 == 0 { &[ME, STAGE] } else { &[ME] });
        }
        shown.doubt(STAGE, &mut cx);
        let expected = [RequestId(512), RequestId(1_024)];
        assert_eq!(told(&mut cx), expected, "the first one is forgotten");
        shown.remind(STAGE, &mut cx);
        assert_eq!(told(&mut cx), [], "it asked for nothing");
        shown.remind(ME, &mut cx);
        assert_eq!(told(&mut cx), expected);
    }
}
