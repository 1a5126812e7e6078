//! How many handshakes this side answers in total: each costs about a millisecond of arithmetic.
//!
//! Every lane has its own budget, so that visitors, who need no secret, cannot use up anybody else's. So have holders of links that the
//! room had before, which may be anybody's by now. A connection's first handshake and its later ones have separate budgets, so that a
//! peer that keeps shaking hands cannot keep newcomers out.

use potluck_plan::Millis;

use crate::wire::Lane;

/// The rate at which handshakes are answered.
#[derive(Clone, Copy)]
struct Rate {
    /// At once.
    burst: f64,
    /// On average.
    per_second: f64,
}

/// Visitors ask to come in, and the host is asked about sixteen of them at a time.
const VISITORS: Rate = Rate { burst: 32.0, per_second: 16.0 };
/// A full room that returns after its host was away.
const OTHERS: Rate = Rate { burst: 64.0, per_second: 16.0 };

/// A budget that refills.
#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Millis,
}

impl Bucket {
    fn take(bucket: &mut Option<Self>, rate: Rate, now: Millis) -> bool {
        let bucket = bucket.get_or_insert(Self { left: rate.burst, at: now });
        bucket.left = (bucket.left + (now.0 - bucket.at.0).max(0.0) / 1e3 * rate.per_second).min(rate.burst);
        bucket.at = now;
        let has_one = bucket.left >= 1.0;
        bucket.left -= f64::from(u8::from(has_one));
        has_one
    }
}

/// Who has begun a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Somebody in this lane.
    InLane(Lane),
    /// Somebody with a link that the room had before.
    ByEarlierLink,
}

impl Caller {
    const COUNT: usize = Lane::COUNT + 1;

    /// Its place among all callers.
    fn index(self) -> usize {
        match self {
            Self::InLane(lane) => lane.index(),
            Self::ByEarlierLink => Lane::COUNT,
        }
    }

    fn rate(self) -> Rate {
        match self {
            Self::InLane(Lane::Visitor) | Self::ByEarlierLink => VISITORS,
            Self::InLane(Lane::Link | Lane::Group | Lane::Invite) => OTHERS,
        }
    }
}

/// What is left by caller, for first handshakes and for later ones.
#[derive(Default)]
pub(super) struct Budgets([[Option<Bucket>; 2]; Caller::COUNT]);

impl Budgets {
    /// Takes one handshake. False if none is left.
    #[must_use]
    pub fn take(&mut self, caller: Caller, is_first: bool, now: Millis) -> bool {
        Bucket::take(&mut self.0[caller.index()][usize::from(!is_first)], caller.rate(), now)
    }
}
