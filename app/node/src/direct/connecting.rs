//! When this device tries to connect to which members, and what becomes of each attempt.
//!
//! Either side may begin. If both do, the offer of the lower route counts. An attempt that fails is repeated later and later.

use std::collections::BTreeMap;

use potluck_plan::Millis;
use potluck_protocol::{AttemptId, MAX_DESCRIPTION, Signal};

/// A connection of this device, whoever began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begin a connection; its description comes with [`Connecting::described`].
    Offer(ConnectionId),
    /// Answer this offer; the description comes as above.
    Answer(ConnectionId, String),
    /// The other side answered with this.
    Accept(ConnectionId, String),
    /// Give it up.
    Close(ConnectionId),
    /// Tell the member.
    Signal(u32, Signal),
}

/// Most connections of a device.
const MAX_CONNECTIONS: usize = 16;
/// Bytes of work for a member after which a connection is worth it. Members that only chat get none.
const WORTH_BYTES: u64 = 16 << 10;
/// For an attempt, from offer to open channel.
const ATTEMPT_MILLIS: f64 = 20_000.0;
/// Before the next attempt; twice that after each further failure.
const PAUSE_MILLIS: f64 = 5_000.0;
const MAX_PAUSE_MILLIS: f64 = 300_000.0;
/// Between two offers of a member that are answered. Each costs the page a connection.
const OFFER_MILLIS: f64 = 3_000.0;
/// A connection that lasted so long did not fail.
const LASTED_MILLIS: f64 = 60_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Offered,
    Answered,
    Open,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    connection: ConnectionId,
    /// The number that the side that offers gave it.
    id: AttemptId,
    stage: Stage,
    since: Millis,
}

#[derive(Default)]
struct Member {
    bytes: u64,
    attempt: Option<Attempt>,
    /// When its last offer was answered.
    answered: Option<Millis>,
    failures: u32,
    not_before: Option<Millis>,
}

/// All attempts of this device in a room.
#[derive(Default)]
pub struct Connecting {
    own: u32,
    allowed: bool,
    last: u32,
    members: BTreeMap<u32, Member>,
}

impl Connecting {
    /// `own` is this device's route. Attempts are numbered from `first`, which no earlier connection to a room should have used.
    pub fn new(own: u32, first: u32) -> Self {
        Self { own, last: first, ..Self::default() }
    }

    /// A session with this member is up.
    pub fn met(&mut self, route: u32) {
        self.members.entry(route).or_default();
    }

    /// It is gone.
    pub fn left(&mut self, route: u32) -> Option<Step> {
        self.members.remove(&route)?.attempt.map(|attempt| Step::Close(attempt.connection))
    }

    /// So many bytes of work go to a member.
    pub fn works_with(&mut self, route: u32, bytes: usize) {
        if let Some(member) = self.members.get_mut(&route) {
            member.bytes = member.bytes.saturating_add(bytes as u64);
        }
    }

    /// Whether this device may connect. Returns the connections that are to be given up, with their members.
    pub fn allow(&mut self, allowed: bool) -> Vec<(u32, ConnectionId)> {
        self.allowed = allowed;
        if allowed {
            return Vec::new();
        }
        let given_up = |(route, member): (&u32, &mut Member)| Some((*route, member.attempt.take()?.connection));
        self.members.iter_mut().filter_map(given_up).collect()
    }

    /// To be called a few times a second. `can_open` tells if a member's link can take a channel.
    pub fn tick(&mut self, now: Millis, can_open: impl Fn(u32) -> bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for member in self.members.values_mut() {
            if let Some(attempt) = member.attempt
                && attempt.stage != Stage::Open
                && now.0 - attempt.since.0 > ATTEMPT_MILLIS
            {
                steps.extend(member.end(now));
            }
        }
        let mut count = self.connections();
        for (route, member) in &mut self.members {
            let is_due = member.not_before.is_none_or(|at| at.0 <= now.0);
            let is_wanted = self.allowed && member.bytes >= WORTH_BYTES && member.attempt.is_none();
            if is_wanted && is_due && count < MAX_CONNECTIONS && can_open(*route) {
                self.last = self.last.wrapping_add(1);
                let (connection, id) = (ConnectionId(self.last), AttemptId(self.last));
                member.attempt = Some(Attempt { connection, id, stage: Stage::Offered, since: now });
                steps.push(Step::Offer(connection));
                count += 1;
            }
        }
        steps
    }

    fn connections(&self) -> usize {
        self.members.values().filter(|member| member.attempt.is_some()).count()
    }

    /// A member's word about a connection. `can_open` tells if its link can take a channel.
    pub fn signal(&mut self, from: u32, signal: Signal, can_open: bool, now: Millis) -> Vec<Step> {
        let count = self.connections();
        let Some(member) = self.members.get_mut(&from) else { return Vec::new() };
        match signal {
            Signal::Allowed(_) => Vec::new(),
            Signal::Offer(id, description) => {
                let own_counts =
                    member.attempt.is_some_and(|attempt| attempt.stage == Stage::Offered) && self.own < from;
                if own_counts {
                    return Vec::new();
                }
                let fits = count < MAX_CONNECTIONS || member.attempt.is_some();
                let is_early = member.answered.is_some_and(|at| now.0 - at.0 < OFFER_MILLIS);
                if !self.allowed || !fits || !can_open || is_early || description.len() > MAX_DESCRIPTION {
                    return vec![Step::Signal(from, Signal::Declined(id))];
                }
                member.answered = Some(now);
                let ended = member.attempt.take().map(|attempt| Step::Close(attempt.connection));
                self.last = self.last.wrapping_add(1);
                let connection = ConnectionId(self.last);
                member.attempt = Some(Attempt { connection, id, stage: Stage::Answered, since: now });
                ended.into_iter().chain([Step::Answer(connection, description)]).collect()
            }
            Signal::Answer(id, description) => match member.attempt {
                Some(attempt) if attempt.stage == Stage::Offered && attempt.id == id => {
                    if description.len() > MAX_DESCRIPTION {
                        return member.end(now).into_iter().collect();
                    }
                    vec![Step::Accept(attempt.connection, description)]
                }
                _ => Vec::new(),
            },
            Signal::Declined(id) => match member.attempt {
                Some(attempt) if attempt.stage == Stage::Offered && attempt.id == id => {
                    member.end(now).into_iter().collect()
                }
                _ => Vec::new(),
            },
        }
    }

    /// The browser has described this side of a connection.
    pub fn described(&self, connection: ConnectionId, description: String) -> Option<Step> {
        let (route, attempt) = self.find(connection)?;
        let signal = match attempt.stage {
            Stage::Offered => Signal::Offer(attempt.id, description),
            Stage::Answered => Signal::Answer(attempt.id, description),
            Stage::Open => return None,
        };
        Some(Step::Signal(route, signal))
    }

    /// The channel of a connection is open; returns its member.
    pub fn opened(&mut self, connection: ConnectionId, now: Millis) -> Option<u32> {
        let (route, attempt) = self.find(connection)?;
        let member = self.members.get_mut(&route)?;
        member.attempt = Some(Attempt { stage: Stage::Open, since: now, ..attempt });
        Some(route)
    }

    /// A connection ended or stalls; returns its member.
    pub fn ended(&mut self, connection: ConnectionId, now: Millis) -> Option<(u32, Step)> {
        let (route, _) = self.find(connection)?;
        Some((route, self.members.get_mut(&route)?.end(now)?))
    }

    /// The connection to a member, if its channel is open.
    pub fn open_connection(&self, route: u32) -> Option<ConnectionId> {
        let attempt = self.members.get(&route)?.attempt?;
        (attempt.stage == Stage::Open).then_some(attempt.connection)
    }

    fn find(&self, connection: ConnectionId) -> Option<(u32, Attempt)> {
        self.members.iter().find_map(|(route, member)| {
            member.attempt.filter(|attempt| attempt.connection == connection).map(|attempt| (*route, attempt))
        })
    }
}

impl Member {
    fn end(&mut self, now: Millis) -> Option<Step> {
        let attempt = self.attempt.take()?;
        let lasted = attempt.stage == Stage::Open && now.0 - attempt.since.0 > LASTED_MILLIS;
        self.failures = if lasted { 0 } else { self.failures + 1 };
        let pause = PAUSE_MILLIS * 2f64.powi(self.failures.saturating_sub(1).min(10) as i32);
        self.not_before = Some(Millis(now.0 + pause.min(MAX_PAUSE_MILLIS)));
        Some(Step::Close(attempt.connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(0.0);

    fn device(own: u32, other: u32) -> Connecting {
        let mut device = Connecting::new(own, 0);
        device.allow(true);
        device.met(other);
        device.works_with(other, WORTH_BYTES as usize);
        device
    }

    fn offer(device: &mut Connecting, now: Millis) -> ConnectionId {
        match device.tick(now, |_| true)[..] {
            [Step::Offer(connection)] => connection,
            ref other => panic!("{other:?} is no offer"),
        }
    }

    fn text() -> String {
        "v=0".to_owned()
    }

    #[test]
    fn two_devices_meet_by_offer_and_answer() {
        let (mut first, mut second) = (device(1, 2), device(2, 1));
        let offered = offer(&mut first, NOW);
        let Some(Step::Signal(2, signal)) = first.described(offered, text()) else { panic!("no offer") };
        let steps = second.signal(1, signal, true, NOW);
        let [Step::Answer(answered, _)] = steps[..] else { panic!("{steps:?}") };
        let Some(Step::Signal(1, signal)) = second.described(answered, text()) else { panic!("no answer") };
        assert_eq!(first.signal(2, signal, true, NOW), [Step::Accept(offered, text())]);
        assert_eq!((first.opened(offered, NOW), second.opened(answered, NOW)), (Some(2), Some(1)));
        assert_eq!(first.open_connection(2), Some(offered));
        assert!(first.tick(Millis(1e6), |_| true).is_empty(), "an open channel is no attempt that takes too long");
    }

    #[test]
    fn of_two_offers_that_cross_the_lower_routes_counts() {
        let (mut first, mut second) = (device(1, 2), device(2, 1));
        let (mine, theirs) = (offer(&mut first, NOW), offer(&mut second, NOW));
        let id = AttemptId(1);
        assert!(first.signal(2, Signal::Offer(id, text()), true, NOW).is_empty());
        let steps = second.signal(1, Signal::Offer(id, text()), true, NOW);
        assert!(
            matches!(steps[..], [Step::Close(closed), Step::Answer(answered, _)] if closed == theirs && answered != theirs)
        );
        assert_eq!(first.signal(2, Signal::Answer(id, text()), true, NOW), [Step::Accept(mine, text())]);
    }

    #[test]
    fn nobody_connects_without_leave_or_reason() {
        let mut quiet = Connecting::new(1, 0);
        quiet.allow(true);
        quiet.met(2);
        assert!(quiet.tick(NOW, |_| true).is_empty(), "nothing was sent to it");
        let mut forbidden = device(1, 2);
        forbidden.allow(false);
        assert!(forbidden.tick(NOW, |_| true).is_empty());
        let declined = [Step::Signal(2, Signal::Declined(AttemptId(7)))];
        assert_eq!(forbidden.signal(2, Signal::Offer(AttemptId(7), text()), true, NOW), declined);
        let mut willing = device(1, 2);
        assert_eq!(willing.signal(2, Signal::Offer(AttemptId(7), text()), false, NOW), declined, "a tab beside it");
        let long = "v".repeat(MAX_DESCRIPTION + 1);
        assert_eq!(willing.signal(2, Signal::Offer(AttemptId(7), long), true, NOW), declined);
        assert!(willing.signal(3, Signal::Offer(AttemptId(7), text()), true, NOW).is_empty(), "nobody knows it");
    }

    #[test]
    fn attempts_that_fail_are_repeated_later_and_later() {
        let mut device = device(1, 2);
        let (mut now, mut pauses) = (0.0, Vec::new());
        for _ in 0..9 {
            let connection = offer(&mut device, Millis(now));
            assert_eq!(device.ended(connection, Millis(now)), Some((2, Step::Close(connection))));
            assert_eq!(device.ended(connection, Millis(now)), None, "only once");
            let waited = (1..).map(|second| f64::from(second) * 1e3).find(|waited| {
                device.members.get(&2).and_then(|member| member.not_before).is_some_and(|at| at.0 <= now + waited)
            });
            pauses.push(waited.unwrap_or_default());
            now += waited.unwrap_or_default();
        }
        assert_eq!(pauses, [5e3, 1e4, 2e4, 4e4, 8e4, 16e4, 3e5, 3e5, 3e5]);
    }

    #[test]
    fn an_attempt_that_nobody_answers_ends() {
        let mut device = device(1, 2);
        let connection = offer(&mut device, NOW);
        assert_eq!(device.tick(Millis(ATTEMPT_MILLIS + 1.0), |_| true), [Step::Close(connection)]);
        assert!(device.signal(2, Signal::Answer(AttemptId(1), text()), true, NOW).is_empty(), "too late");
    }

    #[test]
    fn a_member_that_offers_again_and_again_costs_little() {
        let mut device = device(1, 2);
        let offers = (0..600).map(|number| {
            let now = Millis(f64::from(number) * 10.0);
            device.signal(2, Signal::Offer(AttemptId(number), text()), true, now)
        });
        let answered = offers.filter(|steps| steps.iter().any(|step| matches!(step, Step::Answer(..)))).count();
        assert_eq!(answered, 2, "of 600 in six seconds");
    }

    #[test]
    fn connections_are_limited() {
        let mut device = Connecting::new(0, 0);
        device.allow(true);
        (1..40).for_each(|route| device.met(route));
        (1..40).for_each(|route| device.works_with(route, WORTH_BYTES as usize));
        assert_eq!(device.tick(NOW, |_| true).len(), MAX_CONNECTIONS);
        assert_eq!(device.allow(false).len(), MAX_CONNECTIONS, "all are given up where the host takes its leave back");
    }
}
