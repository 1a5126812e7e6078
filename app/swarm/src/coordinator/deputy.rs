//! The deputy: the device that hosts the room if this host is lost. It is told everything that it needs for that, and what becomes
//! of questions and answers, as it happens.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Millis, PeerId};
use potluck_protocol::{
    AnswerPart, DeputyChoice, DeviceKind, Doors, Followed, Frame, OwnerSecrets, RequestId, Succession, Term,
};

use super::answers::Answers;
use super::transcript::Transcript;
use crate::RelayRoute;
use crate::doorkeeper::Access;
use crate::event::HostCommand;
use crate::event_context::EventContext;
use crate::members::{Member, Members};

/// A host with a deputy that has not heard from the relay for so long writes nothing. The relay lets a deputy take over only
/// somewhat later, so two hosts never answer at once.
const LEASE_MILLIS: f64 = 3_000.0;

/// Which keys the room has, and in which term this device hosts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ownership {
    /// The room's secrets.
    pub secrets: OwnerSecrets,
    /// The term.
    pub term: Term,
    /// The room is in the public list.
    pub visible: bool,
}

#[derive(Default)]
pub(super) struct Deputy {
    now: Option<Following>,
    /// The latest term that a deputy was given.
    newest: Term,
    /// When this host asked the relay the last time that the relay has confirmed. The relay heard it no sooner.
    renewed: Option<Millis>,
}

/// What the deputy was told.
struct Following {
    peer: PeerId,
    route: RelayRoute,
    succession: Box<Succession>,
    questions: BTreeMap<(PeerId, RequestId), Told>,
    /// Whose conversations it knows.
    askers: BTreeSet<PeerId>,
    /// It knows the answers that had ended before it became the deputy.
    knows_ended: bool,
}

/// How far it knows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Waits,
    Begun { parts: usize },
}

impl Deputy {
    pub fn peer(&self) -> Option<PeerId> {
        self.now.as_ref().map(|following| following.peer)
    }

    /// The relay confirms that it has heard what this host asked at this time.
    pub fn renewed(&mut self, asked: Millis) {
        self.renewed = Some(self.renewed.map_or(asked, |before| Millis(before.0.max(asked.0))));
    }

    /// This host may write: nobody can have taken over from it.
    pub fn may_write(&self, now: Millis) -> bool {
        self.now.is_none() || self.renewed.is_some_and(|at| now.0 - at.0 < LEASE_MILLIS)
    }

    /// Chooses the deputy, and tells it what has changed about the room.
    pub fn choose(&mut self, command: &HostCommand, doors: &Doors, cx: &mut EventContext) {
        let chosen = command.ownership.filter(|_| command.has_deputy()).and_then(|ownership| {
            let peer = chosen(command.deputy, self.peer(), cx)?;
            if self.peer() != Some(peer) {
                self.newest = self.newest.max(ownership.term).next();
            }
            Some((
                peer,
                cx.out.route_of(peer)?,
                succession(Ownership { term: self.newest, ..ownership }, command, doors),
            ))
        });
        let Some((peer, route, succession)) = chosen else {
            if let Some(before) = self.now.take() {
                cx.out.send(before.peer, Frame::Deputy(None));
            }
            return;
        };
        match &mut self.now {
            Some(now) if now.peer == peer && now.route == route => {
                if *now.succession != succession {
                    *now.succession = succession;
                    cx.out.send(peer, Frame::Deputy(Some(now.succession.clone())));
                }
            }
            now => {
                if let Some(before) = now.take_if(|before| before.peer != peer) {
                    cx.out.send(before.peer, Frame::Deputy(None));
                }
                let succession = Box::new(succession);
                cx.out.send(peer, Frame::Deputy(Some(succession.clone())));
                // The lease begins with the deputy.
                self.renewed = Some(cx.now);
                cx.out.send(peer, Frame::Follow(Box::new(Followed::Anew)));
                let (questions, askers, knows_ended) = Default::default();
                *now = Some(Following { peer, route, succession, questions, askers, knows_ended });
            }
        }
    }

    /// Tells the deputy what it does not know yet of questions and answers.
    pub fn inform(&mut self, answers: &Answers, cx: &mut EventContext) {
        let Some(now) = &mut self.now else { return };
        // Told on another connection, it is told everything again.
        if cx.out.route_of(now.peer) != Some(now.route) {
            return;
        }
        // One a frame, because some are long.
        for followed in now.news(answers, &cx.members) {
            cx.out.send(now.peer, Frame::Follow(Box::new(followed)));
        }
    }
}

impl Following {
    fn news(&mut self, answers: &Answers, members: &Members) -> Vec<Followed> {
        let mut news = Vec::new();
        if !std::mem::replace(&mut self.knows_ended, true) {
            news.extend(answers.all_ended().filter_map(|transcript| more(transcript, &mut 0)));
        }
        let start = |asker| members.known.get(&asker).map(|member: &Member| member.hello.start);
        for question in answers.queue.iter() {
            let (asker, request) = (question.asker, question.prompt.request);
            if self.questions.insert((asker, request), Told::Waits).is_none() {
                let prompt = Box::new(question.prompt.clone());
                news.push(Followed::Asked { asker, start: start(asker), prompt });
            }
        }
        for active in &answers.active {
            let (asker, request) = (active.transcript.asker, active.transcript.request);
            let told = self.questions.entry((asker, request)).or_insert_with(|| {
                let prompt = Box::new(active.prompt.clone());
                news.push(Followed::Asked { asker, start: start(asker), prompt });
                Told::Waits
            });
            if *told == Told::Waits {
                let prompt = active.conversation.log.first(active.prompt_tokens);
                news.push(Followed::Began { asker, request, prompt });
                *told = Told::Begun { parts: 0 };
            }
            if let Told::Begun { parts } = told {
                news.extend(more(&active.transcript, parts));
            }
        }
        let is_open = |asker, request| {
            answers.queue.contains(asker, request)
                || answers.active.iter().any(|active| active.transcript.is(asker, request))
        };
        let over: Vec<_> =
            self.questions.keys().copied().filter(|(asker, request)| !is_open(*asker, *request)).collect();
        for (asker, request) in over {
            let told = self.questions.remove(&(asker, request));
            let mut parts = if let Some(Told::Begun { parts }) = told { parts } else { 0 };
            match answers.ended(asker, request) {
                Some(transcript) => news.extend(more(transcript, &mut parts)),
                None => news.push(Followed::Dropped { asker, request }),
            }
        }
        self.conversations(answers, &mut news);
        news
    }

    /// Conversations between answers: those that end while it follows it keeps by itself.
    fn conversations(&mut self, answers: &Answers, news: &mut Vec<Followed>) {
        let askers = answers.conversations.askers();
        if askers == self.askers {
            return;
        }
        for asker in askers.difference(&self.askers) {
            for (name, log) in answers.conversations.of(*asker) {
                news.push(Followed::Kept { asker: *asker, name: name.to_owned(), log });
            }
        }
        for asker in self.askers.difference(&askers) {
            if !answers.active.iter().any(|active| active.transcript.asker == *asker) {
                news.push(Followed::Forgot(*asker));
            }
        }
        self.askers = askers;
    }
}

/// What was sent of an answer after the first `known` parts.
fn more(transcript: &Transcript, known: &mut usize) -> Option<Followed> {
    let parts: Vec<AnswerPart> = transcript.parts_from(*known);
    *known += parts.len();
    let (asker, request) = (transcript.asker, transcript.request);
    (!parts.is_empty()).then_some(Followed::Wrote { asker, request, parts })
}

/// The deputy as the host wishes it, as long as it is there. Where anybody may be it, it is one that lends, and no phone, if there is such a
/// device; whoever is it stays it otherwise.
fn chosen(choice: DeputyChoice, now: Option<PeerId>, cx: &EventContext) -> Option<PeerId> {
    let me = cx.members.me;
    let own = cx.members.device(me);
    let mut best: Option<((bool, bool, bool, bool), PeerId)> = None;
    for (peer, member) in cx.members.known.iter().filter(|(peer, _)| **peer != me) {
        let is_there =
            member.admitted && member.access == Access::Full && member.away_until.is_none() && !member.frozen;
        let device = cx.members.device(*peer);
        let is_wanted = match choice {
            DeputyChoice::Nobody => false,
            DeputyChoice::Device(wanted) => device == Some(wanted),
            // A browser's tabs leave together.
            DeputyChoice::Anyone => device != own && !member.distrusted,
        };
        if is_there && is_wanted {
            let lends = member.hello.contribution.is_some();
            let stays = member.hello.kind != DeviceKind::Phone;
            let rank = (lends, stays, Some(*peer) == now, !member.hello.hidden);
            if best.is_none_or(|(other, _)| other < rank) {
                best = Some((rank, *peer));
            }
        }
    }
    best.map(|(_, peer)| peer)
}

fn succession(ownership: Ownership, command: &HostCommand, doors: &Doors) -> Succession {
    let Ownership { secrets, term, visible } = ownership;
    Succession {
        secrets,
        term,
        visible,
        model: command.source.clone(),
        context: command.context,
        kv_cache: command.kv_cache,
        arithmetic: command.arithmetic,
        sharing: command.sharing,
        ends: command.ends,
        pooling: command.pooling,
        on_demand: command.on_demand,
        spot_checks: command.spot_checks.share,
        doors: doors.clone(),
        deputy: command.deputy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_when_it_was_asked_for() {
        let route = RelayRoute(1);
        let command = crate::examples::command();
        let ownership =
            Ownership { secrets: OwnerSecrets { owner: [0; 32], link: [0; 16] }, term: Term(0), visible: false };
        let succession = Box::new(succession(ownership, &command, &Doors::default()));
        let (questions, askers, knows_ended) = Default::default();
        let peer = PeerId([2; 16]);
        let now = Some(Following { peer, route, succession, questions, askers, knows_ended });
        let mut deputy = Deputy { now, renewed: Some(Millis(0.0)), ..Deputy::default() };
        assert!(deputy.may_write(Millis(2_999.0)) && !deputy.may_write(Millis(3_000.0)));
        deputy.renewed(Millis(2_500.0));
        deputy.renewed(Millis(1_000.0));
        assert!(deputy.may_write(Millis(5_499.0)), "an answer that comes late takes nothing back");
        assert!(!deputy.may_write(Millis(5_500.0)));
        assert!(Deputy::default().may_write(Millis(1e9)), "without a deputy nobody can take over");
    }
}
