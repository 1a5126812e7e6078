//! Who may come in, and as what: the host decides by what a device has proved. No clock: a session says when it was made.

use potluck_plan::{DeviceId, Millis};
use potluck_protocol::{
    BannedDevice, Doors, Invite, InviteId, InviteKind, IssuedInvite, LinkHolder, LogEvent, UnixSeconds,
};

use crate::Proof;
use crate::door_log::{TimeOfDay, record};
use crate::limits;
use crate::mutation::{Mutation, has_mutation};

/// Clocks are wrong: an invite is good for so many seconds more.
const GRACE_SECONDS: u32 = 300;
/// Least time between two renewals of the keys, in milliseconds. Sessions between members end five seconds after one that they did not
/// follow, and a second one would not prolong that.
const RENEW_EVERY_MILLIS: f64 = 10_000.0;
/// Least time between two updates of the page if only the log changed, in milliseconds.
const LOG_EVERY_MILLIS: f64 = 1_000.0;

/// What a member may do in the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// Ask questions. It gets neither work nor the group's secret.
    Chat,
    /// Everything a member may do.
    #[default]
    Full,
}

/// What is done with a device at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryDecision {
    /// It comes in.
    Welcome(Access),
    /// The host is asked.
    Ask(Access),
    /// It does not come in: one sentence for the person there.
    TurnedAway(&'static str),
}

/// What the host reads instead of a further invite.
const TOO_MANY_INVITES: &str = "This room keeps 64 invites until they expire, also those that are used up or that you took back. You can give out another once one expires.";

/// What the host reads instead of another renewal.
const RENEWED_JUST_NOW: &str = "The link was replaced a moment ago. Wait ten seconds before you replace it again.";

/// The same, before the driver has kept the new keys.
const BEING_STORED: &str =
    "The new link is still being stored here. Devices that come in before it is stored need it, too.";

/// What somebody reads who comes by an earlier link, or whom a renewal puts out.
pub(crate) const RENEWED: &str = "This link was replaced. Ask the host for the new one.";

/// What an invite of this kind allows.
fn access_of(kind: InviteKind) -> Access {
    match kind {
        InviteKind::Chat => Access::Chat,
        InviteKind::Contribute => Access::Full,
    }
}

/// Whether an invite has expired, by everybody's clock.
fn is_over(invite: &Invite, now: UnixSeconds) -> bool {
    now.0 > invite.expires.0.saturating_add(GRACE_SECONDS)
}

/// The host's doors.
#[derive(Default)]
pub(crate) struct Doorkeeper {
    doors: Doors,
    changed: bool,
    time: TimeOfDay,
    /// The time since when the log has had news.
    log_news: Option<Millis>,
    /// The room's keys are to be renewed for those that are inside. The driver has not kept the doors with them yet: until then
    /// nothing changes.
    renewing: Option<Vec<DeviceId>>,
    /// When they were renewed last.
    renewed_at: Option<Millis>,
}

impl Doorkeeper {
    pub fn new(doors: Doors) -> Self {
        Self { doors, ..Self::default() }
    }

    pub fn doors(&self) -> &Doors {
        &self.doors
    }

    /// The doors to keep, if they changed since the last call, or if their log has had news for a while.
    pub fn take_change(&mut self, now: Millis) -> Option<Doors> {
        let is_due = self.log_news.is_some_and(|since| now.0 - since.0 >= LOG_EVERY_MILLIS);
        let changed = std::mem::take(&mut self.changed) || is_due;
        if changed {
            self.log_news = None;
        }
        changed.then(|| match &self.renewing {
            Some(inside) => self.renewed(inside, now),
            None => self.doors.clone(),
        })
    }

    /// The room was opened, or a session was made, at this time of day.
    pub fn hear_time(&mut self, at: UnixSeconds, now: Millis) {
        self.time.hear(at, now);
    }

    /// Writes in the log what happened to a device.
    pub fn note(&mut self, now: Millis, device: Option<DeviceId>, name: &str, event: LogEvent) {
        record(&mut self.doors.log, self.time.at(now), device, name, event);
        self.log_news.get_or_insert(now);
    }

    /// Whether a device may come in by what it has proved.
    pub fn entry(&self, device: DeviceId, proof: Proof, now: UnixSeconds) -> EntryDecision {
        if self.is_banned(device) {
            return EntryDecision::TurnedAway("The host does not let this device into the room.");
        }
        match proof {
            Proof::Host => EntryDecision::Welcome(Access::Full),
            Proof::Link(number) => self.by_link(device, number),
            // The group's secret may have been passed on: what counts is whom the host let in.
            Proof::Group | Proof::Visitor if self.doors.admitted.contains(&device) => {
                EntryDecision::Welcome(Access::Full)
            }
            Proof::Group | Proof::Visitor => EntryDecision::Ask(Access::Full),
            Proof::Invite(invite) => self.by_invite(device, invite, now),
        }
    }

    /// The same for a device that was let in over this session and says hello again: only a ban turns it away. What it has proved may let
    /// in nobody new since, and it may have been forgotten how it came.
    pub fn entry_again(&self, device: DeviceId, proof: Proof, now: UnixSeconds) -> EntryDecision {
        let access = if let Proof::Invite(invite) = proof { access_of(invite.kind) } else { Access::Full };
        match self.entry(device, proof, now) {
            EntryDecision::TurnedAway(_) if !self.is_banned(device) => EntryDecision::Welcome(access),
            entry => entry,
        }
    }

    /// By an earlier link only those come back who came by one before and were inside at each renewal since. Then they get the newest
    /// one.
    fn by_link(&self, device: DeviceId, number: u32) -> EntryDecision {
        let came_before = || self.doors.by_link.iter().any(|holder| holder.device == device);
        if number == self.doors.link || came_before() || has_mutation(Mutation::AnyLink) {
            EntryDecision::Welcome(Access::Full)
        } else {
            EntryDecision::TurnedAway(RENEWED)
        }
    }

    fn by_invite(&self, device: DeviceId, invite: Invite, now: UnixSeconds) -> EntryDecision {
        let Some(issued) = self.doors.invites.iter().find(|issued| issued.invite == invite) else {
            return EntryDecision::TurnedAway("The host does not know this invite any more. Ask for a new one.");
        };
        let access = access_of(invite.kind);
        match () {
            () if issued.devices.contains(&device) => EntryDecision::Welcome(access),
            () if issued.revoked => EntryDecision::TurnedAway("The host took this invite back. Ask for a new one."),
            () if is_over(&invite, now) => {
                EntryDecision::TurnedAway("This invite has expired. Ask the host for a new one.")
            }
            () if issued.devices.len() >= usize::from(invite.uses) => {
                EntryDecision::TurnedAway("This invite has been used up. Ask the host for a new one.")
            }
            () if invite.ask => EntryDecision::Ask(access),
            () => EntryDecision::Welcome(access),
        }
    }

    /// A device came in: its invite has one use less, and whom the host was asked about need not be asked about again.
    pub fn came_in(&mut self, device: DeviceId, proof: Proof) {
        let list = match proof {
            Proof::Host => return,
            Proof::Link(number) => return self.came_by_link(device, number),
            Proof::Group | Proof::Visitor => &mut self.doors.admitted,
            Proof::Invite(invite) => {
                let issued = self.doors.invites.iter_mut().find(|issued| issued.invite == invite);
                let Some(issued) = issued else { return };
                &mut issued.devices
            }
        };
        // Those who came longest ago are forgotten. That one came again is no news by itself.
        let before = list.iter().position(|known| *known == device).map(|place| list.remove(place));
        self.changed |= before.is_none();
        list.push(device);
        list.drain(..list.len().saturating_sub(limits::MAX_DEVICES));
    }

    fn came_by_link(&mut self, device: DeviceId, link: u32) {
        let holders = &mut self.doors.by_link;
        let known = holders.iter().position(|holder| holder.device == device).map(|place| holders.remove(place));
        let before = known.map(|holder| holder.link);
        self.changed |= before.is_none_or(|before| before < link);
        holders.push(LinkHolder { device, link: before.unwrap_or(link).max(link) });
        holders.drain(..holders.len().saturating_sub(limits::MAX_DEVICES));
    }

    /// The host itself lets a device in: that it was put out before is over, and it stays if the keys are just being renewed.
    pub fn let_in(&mut self, device: DeviceId) {
        self.let_back(device);
        if let Some(inside) = &mut self.renewing {
            inside.push(device);
            self.changed = true;
        }
    }

    /// That a device was put out before is over.
    fn let_back(&mut self, device: DeviceId) {
        let before = self.doors.put_out.len();
        self.doors.put_out.retain(|out| *out != device);
        self.changed |= self.doors.put_out.len() != before;
    }

    /// The host put a device out. It may come back the way it came, until the keys are renewed.
    pub fn put_out(&mut self, device: DeviceId) {
        if !self.doors.put_out.contains(&device) {
            let out = &mut self.doors.put_out;
            out.push(device);
            out.drain(..out.len().saturating_sub(limits::MAX_DEVICES));
            self.changed = true;
        }
    }

    /// The host renews the room's keys while these devices are `inside`: the driver is to keep the doors as they are then.
    ///
    /// # Errors
    /// The keys were renewed a moment ago, or are not kept yet: one sentence for the host.
    pub fn renew(&mut self, inside: Vec<DeviceId>, now: Millis) -> Result<(), &'static str> {
        if self.renewed_at.is_some_and(|at| now.0 - at.0 < RENEW_EVERY_MILLIS) {
            return Err(RENEWED_JUST_NOW);
        }
        if self.renewing.is_some() {
            return Err(BEING_STORED);
        }
        (self.renewing, self.changed) = (Some(inside), true);
        Ok(())
    }

    /// The doors with renewed keys.
    fn renewed(&self, inside: &[DeviceId], now: Millis) -> Doors {
        let mut doors = self.doors.clone();
        doors.renew(inside);
        record(&mut doors.log, self.time.at(now), None, "", LogEvent::LinkRenewed);
        doors
    }

    /// Doors with this number of the link are kept. If their keys are renewed ones, the room has those from now on: returns the devices
    /// that stay. They were inside when the host renewed the keys, and it has put out none of them.
    pub fn kept(&mut self, link: u32, now: Millis) -> Option<Vec<DeviceId>> {
        let mut stay = self.ends_renewal(link)?;
        stay.retain(|device| !self.doors.put_out.contains(device) && !self.is_banned(*device));
        self.doors = self.renewed(&stay, now);
        self.renewed_at = Some(now);
        Some(stay)
    }

    /// Doors with this number of the link cannot be kept. True if their keys were renewed ones: the room goes on with those it has.
    pub fn lost(&mut self, link: u32) -> bool {
        self.ends_renewal(link).is_some()
    }

    /// The driver has answered about doors with this number of the link. If those are the renewed ones, returns who was inside.
    fn ends_renewal(&mut self, link: u32) -> Option<Vec<DeviceId>> {
        let inside = self.renewing.take_if(|_| link == self.doors.link.wrapping_add(1));
        self.changed |= inside.is_some();
        inside
    }

    /// The host gives out an invite. If the room has as many as it keeps, it forgets one that has expired.
    ///
    /// # Errors
    /// None has expired: one sentence for the host. A forgotten invite lets nobody back in, and the relay does not refuse it any
    /// more, so none is forgotten that can still be used.
    pub fn issue(&mut self, invite: Invite, now: Millis) -> Result<(), &'static str> {
        if self.doors.invites.len() >= limits::MAX_INVITES {
            let time = self.time.at(now);
            let expired = self.doors.invites.iter().enumerate().filter(|(_, issued)| is_over(&issued.invite, time));
            // Those by which nobody came go first: nobody needs them to come back.
            let first = expired.min_by_key(|(_, issued)| (!issued.devices.is_empty(), issued.invite.expires));
            let place = first.map(|(place, _)| place).ok_or(TOO_MANY_INVITES)?;
            self.doors.invites.remove(place);
        }
        self.doors.invites.push(IssuedInvite { invite, revoked: false, devices: Vec::new() });
        self.changed = true;
        Ok(())
    }

    /// The host takes an invite back. Who came by it stays, and comes back by it.
    pub fn revoke(&mut self, id: InviteId) {
        for issued in self.doors.invites.iter_mut().filter(|issued| issued.invite.id == id && !issued.revoked) {
            issued.revoked = true;
            self.changed = true;
        }
    }

    /// Bans a device, and lets nobody new in by an invite that it used. Returns the new generation of the group secret.
    pub fn ban(&mut self, device: DeviceId, name: String) -> u32 {
        if !self.is_banned(device) {
            self.doors.banned.push(BannedDevice { device, name });
            let banned = &mut self.doors.banned;
            banned.drain(..banned.len().saturating_sub(limits::MAX_DEVICES));
            self.doors.admitted.retain(|known| *known != device);
        }
        for issued in self.doors.invites.iter_mut().filter(|issued| issued.devices.contains(&device)) {
            issued.revoked = true;
        }
        self.doors.generation = self.doors.generation.wrapping_add(1);
        self.changed = true;
        self.doors.generation
    }

    /// A device may come in again.
    pub fn unban(&mut self, device: DeviceId) {
        self.let_back(device);
        self.doors.banned.retain(|banned| banned.device != device);
        self.changed = true;
    }

    fn is_banned(&self, device: DeviceId) -> bool {
        self.doors.banned.iter().any(|banned| banned.device == device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_000_000);

    fn device(n: u16) -> DeviceId {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&n.to_le_bytes());
        DeviceId(id)
    }

    fn invite(kind: InviteKind, uses: u16) -> Invite {
        Invite { id: InviteId(7), kind, ask: false, expires: UnixSeconds(NOW.0 + 60), uses }
    }

    fn keeper(invite: Invite) -> Doorkeeper {
        let mut keeper = Doorkeeper::default();
        give(&mut keeper, invite);
        keeper
    }

    fn give(keeper: &mut Doorkeeper, invite: Invite) {
        assert_eq!(keeper.issue(invite, Millis(0.0)), Ok(()), "it is not one too many");
    }

    /// The keys are renewed, and kept.
    fn renew(keeper: &mut Doorkeeper, inside: &[DeviceId]) {
        assert_eq!(keeper.renew(inside.to_vec(), Millis(0.0)), Ok(()));
        let link = keeper.doors().link + 1;
        assert!(keeper.kept(link, Millis(0.0)).is_some(), "they are kept");
    }

    fn sentence(entry: EntryDecision) -> &'static str {
        match entry {
            EntryDecision::TurnedAway(sentence) => sentence,
            entry => panic!("turned away, not {entry:?}"),
        }
    }

    #[test]
    fn an_invite_lets_in_as_many_devices_as_it_says_and_each_of_them_again() {
        let invite = invite(InviteKind::Contribute, 2);
        let mut keeper = keeper(invite);
        for n in [1, 2, 1] {
            assert_eq!(keeper.entry(device(n), Proof::Invite(invite), NOW), EntryDecision::Welcome(Access::Full));
            keeper.came_in(device(n), Proof::Invite(invite));
        }
        assert!(sentence(keeper.entry(device(3), Proof::Invite(invite), NOW)).contains("used up"));
    }

    #[test]
    fn an_expired_invite_lets_in_nobody_new_and_a_wrong_clock_is_forgiven_for_five_minutes() {
        let invite = invite(InviteKind::Chat, 9);
        let mut keeper = keeper(invite);
        let entry = |keeper: &Doorkeeper, n, after| {
            keeper.entry(device(n), Proof::Invite(invite), UnixSeconds(invite.expires.0 + after))
        };
        assert_eq!(entry(&keeper, 1, GRACE_SECONDS), EntryDecision::Welcome(Access::Chat));
        keeper.came_in(device(1), Proof::Invite(invite));
        assert!(sentence(entry(&keeper, 2, GRACE_SECONDS + 1)).contains("expired"));
        assert_eq!(entry(&keeper, 1, GRACE_SECONDS + 1), EntryDecision::Welcome(Access::Chat), "it was here before");
    }

    #[test]
    fn an_invite_that_was_taken_back_or_changed_is_no_invite() {
        let invite = invite(InviteKind::Chat, 9);
        let mut keeper = keeper(invite);
        let more = Invite { kind: InviteKind::Contribute, ..invite };
        assert!(sentence(keeper.entry(device(1), Proof::Invite(more), NOW)).contains("does not know"));
        keeper.revoke(InviteId(7));
        assert!(sentence(keeper.entry(device(1), Proof::Invite(invite), NOW)).contains("took this invite back"));
    }

    #[test]
    fn whoever_came_by_an_invite_that_was_taken_back_comes_back_unless_it_is_banned() {
        let invite = invite(InviteKind::Chat, 9);
        let mut keeper = keeper(invite);
        for n in [1, 2] {
            keeper.came_in(device(n), Proof::Invite(invite));
        }
        keeper.revoke(InviteId(7));
        keeper.ban(device(2), "Mallory".into());
        assert_eq!(keeper.entry(device(1), Proof::Invite(invite), NOW), EntryDecision::Welcome(Access::Chat));
        assert!(sentence(keeper.entry(device(2), Proof::Invite(invite), NOW)).contains("does not let"));
        assert!(sentence(keeper.entry(device(3), Proof::Invite(invite), NOW)).contains("took this invite back"));
        let revoked = keeper.doors().revoked();
        assert_eq!((revoked.for_nobody.as_slice(), revoked.for_returning.as_slice()), (&[][..], &[7][..]));
        keeper.ban(device(1), "Trudy".into());
        let revoked = keeper.doors().revoked();
        assert_eq!((revoked.for_nobody.as_slice(), revoked.for_returning.as_slice()), (&[7][..], &[][..]));
    }

    #[test]
    fn ask_me_first_asks_once() {
        let invite = Invite { ask: true, ..invite(InviteKind::Contribute, 9) };
        let mut keeper = keeper(invite);
        for proof in [Proof::Invite(invite), Proof::Visitor, Proof::Group] {
            let mut keeper = Doorkeeper::new(keeper.doors().clone());
            assert_eq!(keeper.entry(device(1), proof, NOW), EntryDecision::Ask(Access::Full), "{proof:?}");
            keeper.came_in(device(1), proof);
            assert_eq!(keeper.entry(device(1), proof, NOW), EntryDecision::Welcome(Access::Full), "{proof:?}");
        }
        assert!(keeper.take_change(Millis(0.0)).is_some() && keeper.take_change(Millis(0.0)).is_none());
    }

    #[test]
    fn news_of_the_log_alone_are_told_once_a_second() {
        let mut keeper = Doorkeeper::default();
        keeper.hear_time(NOW, Millis(0.0));
        for at in 0..2_500 {
            keeper.note(Millis(f64::from(at)), Some(device(1)), "Eve", LogEvent::Refused("No.".into()));
            let told = keeper.take_change(Millis(f64::from(at)));
            assert_eq!(told.is_some(), at == 1_000 || at == 2_001, "{at}");
        }
        assert_eq!(keeper.doors().log[0].times, 2_500);
        assert_eq!(keeper.doors().log[0].last, UnixSeconds(NOW.0 + 2));
    }

    #[test]
    fn by_an_earlier_link_only_those_come_back_who_were_inside_and_were_not_put_out() {
        let mut keeper = Doorkeeper::default();
        let entry = |keeper: &Doorkeeper, n, link| keeper.entry(device(n), Proof::Link(link), NOW);
        for n in [1, 2, 3, 4] {
            assert_eq!(entry(&keeper, n, 0), EntryDecision::Welcome(Access::Full));
            keeper.came_in(device(n), Proof::Link(0));
        }
        keeper.ban(device(2), "Mallory".into());
        keeper.put_out(device(3));
        assert_eq!(entry(&keeper, 3, 0), EntryDecision::Welcome(Access::Full), "until the link is renewed");
        assert_eq!(keeper.renew(vec![device(1), device(3)], Millis(0.0)), Ok(()));
        assert_eq!(keeper.take_change(Millis(0.0)).map(|doors| (doors.link, doors.generation)), Some((1, 2)));
        let kept = [0, 1, 1].map(|link| keeper.kept(link, Millis(0.0)));
        assert_eq!(kept, [None, Some(vec![device(1)]), None], "nobody gets them before they are kept, nor twice");
        assert_eq!(entry(&keeper, 1, 0), EntryDecision::Welcome(Access::Full));
        assert!(sentence(entry(&keeper, 2, 0)).contains("does not let"));
        // One that was put out and came back, one that was away, and one that was never there.
        for n in [3, 4, 5] {
            assert_eq!(sentence(entry(&keeper, n, 0)), RENEWED, "device {n}");
            assert_eq!(entry(&keeper, n, 1), EntryDecision::Welcome(Access::Full), "the new link is for anybody");
        }
        assert_eq!(keeper.doors().earlier_links(16).for_returning, [0]);
        keeper.came_in(device(1), Proof::Link(1));
        assert_eq!(keeper.doors().earlier_links(16).for_nobody, [0], "nobody else needs it");
    }

    #[test]
    fn only_whom_the_host_lets_in_again_itself_stays_after_it_was_put_out() {
        for lets_in in [true, false] {
            let mut keeper = Doorkeeper::default();
            keeper.came_in(device(1), Proof::Link(0));
            keeper.put_out(device(1));
            keeper.came_in(device(1), Proof::Link(0));
            if lets_in {
                keeper.let_back(device(1));
            }
            renew(&mut keeper, &[device(1)]);
            let welcome = keeper.entry(device(1), Proof::Link(0), NOW) == EntryDecision::Welcome(Access::Full);
            assert_eq!(welcome, lets_in, "the host let it in: {lets_in}");
        }
    }

    #[test]
    fn a_renewal_that_cannot_be_kept_changes_nothing() {
        let invite = invite(InviteKind::Chat, 9);
        let mut keeper = keeper(invite);
        keeper.put_out(device(1));
        keeper.take_change(Millis(0.0));
        let before = keeper.doors().clone();
        assert_eq!(keeper.renew(Vec::new(), Millis(0.0)), Ok(()));
        assert_eq!(keeper.doors(), &before, "nothing changes before the new keys are kept");
        assert_eq!(
            keeper.take_change(Millis(0.0)).map(|doors| (doors.link, doors.invites[0].revoked)),
            Some((1, true))
        );
        for (n, proof) in [(2, Proof::Link(0)), (3, Proof::Invite(invite))] {
            assert!(matches!(keeper.entry(device(n), proof, NOW), EntryDecision::Welcome(_)), "{proof:?}");
        }
        assert!(!keeper.lost(0) && keeper.lost(1) && !keeper.lost(1));
        assert_eq!(keeper.take_change(Millis(0.0)), Some(before), "the driver is told what holds");
        assert_eq!(keeper.kept(1, Millis(0.0)), None, "that renewal is over");
    }

    #[test]
    fn a_banned_device_comes_in_by_nothing_until_the_host_forgives_it() {
        let invite = invite(InviteKind::Contribute, 9);
        let mut keeper = keeper(invite);
        let proofs = [Proof::Link(0), Proof::Group, Proof::Visitor, Proof::Invite(invite)];
        proofs.into_iter().for_each(|proof| keeper.came_in(device(1), proof));
        assert_eq!(keeper.ban(device(1), "Mallory".into()), 1);
        for proof in proofs {
            assert!(sentence(keeper.entry(device(1), proof, NOW)).contains("does not let"), "{proof:?}");
        }
        assert_eq!(keeper.ban(device(2), "Trudy".into()), 2, "each ban has a group secret of its own");
        keeper.unban(device(1));
        assert_eq!(keeper.entry(device(1), Proof::Link(0), NOW), EntryDecision::Welcome(Access::Full));
    }

    #[test]
    fn a_ban_ends_the_invites_that_the_device_used_and_no_others() {
        let one = invite(InviteKind::Chat, 9);
        let mut keeper = keeper(one);
        let two = Invite { id: InviteId(8), ..one };
        give(&mut keeper, two);
        keeper.came_in(device(1), Proof::Invite(one));
        keeper.came_in(device(2), Proof::Invite(two));
        keeper.ban(device(1), "Mallory".into());
        assert_eq!(keeper.doors().revoked().for_nobody, [7]);
        assert!(sentence(keeper.entry(device(3), Proof::Invite(one), NOW)).contains("took this invite back"));
        assert_eq!(keeper.entry(device(3), Proof::Invite(two), NOW), EntryDecision::Welcome(Access::Chat));
    }

    /// The one that ended first was forgotten: who had come by it could not come back, and the relay let its holders in again.
    #[test]
    fn a_room_forgets_no_invite_that_can_still_be_used() {
        let mut keeper = Doorkeeper::default();
        keeper.hear_time(NOW, Millis(0.0));
        let numbered = |id: u32| Invite {
            id: InviteId(id),
            expires: UnixSeconds(NOW.0 + 1_000 + id),
            ..invite(InviteKind::Chat, 1)
        };
        (0..limits::MAX_INVITES as u32).for_each(|id| give(&mut keeper, numbered(id)));
        keeper.came_in(device(1), Proof::Invite(numbered(0)));
        let numbers =
            |keeper: &Doorkeeper| keeper.doors().invites.iter().map(|issued| issued.invite.id.0).collect::<Vec<_>>();
        let before = numbers(&keeper);
        let refused = keeper.issue(numbered(100), Millis(0.0));
        assert!(refused.is_err_and(|sentence| sentence.contains("64 invites")), "{refused:?}");
        assert_eq!(numbers(&keeper), before);
        // The first two expire: the one by which nobody came goes first.
        let later = Millis(1e3 * f64::from(1_002 + GRACE_SECONDS));
        for (id, gone) in [(100, 1), (101, 0)] {
            assert_eq!(keeper.issue(numbered(id), later), Ok(()));
            assert!(!numbers(&keeper).contains(&gone), "{:?}", numbers(&keeper));
        }
        assert!(keeper.issue(numbered(102), later).is_err());
        assert_eq!(keeper.doors().invites.len(), limits::MAX_INVITES);
    }

    /// Whatever the host does, in whatever order: nobody banned is let in, and no invite lets in more than it says.
    #[test]
    fn seeded_histories_never_let_in_who_may_not() {
        for seed in 0..2_000u64 {
            let mut state = seed;
            let mut below = |n: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % n
            };
            let mut keeper = Doorkeeper::default();
            let mut invites = Vec::new();
            for step in 0..60u32 {
                let device = device(below(6) as u16);
                match below(8) {
                    0 => {
                        let kind = if below(2) == 0 { InviteKind::Chat } else { InviteKind::Contribute };
                        let expires = UnixSeconds(NOW.0 + below(40) as u32);
                        let (id, ask, uses) = (InviteId(step), below(2) == 0, below(3) as u16);
                        invites.push(Invite { id, kind, ask, expires, uses });
                        give(&mut keeper, invites[invites.len() - 1]);
                    }
                    1 if !invites.is_empty() => keeper.revoke(invites[below(invites.len() as u64) as usize].id),
                    2 => drop(keeper.ban(device, String::new())),
                    3 => keeper.unban(device),
                    _ if invites.is_empty() => {}
                    _ => {
                        let invite = invites[below(invites.len() as u64) as usize];
                        let proof = Proof::Invite(invite);
                        let entry = keeper.entry(device, proof, UnixSeconds(NOW.0 + step * 20));
                        if let EntryDecision::Welcome(access) = entry {
                            assert!(!keeper.is_banned(device), "seed {seed}, step {step}");
                            assert_eq!(access == Access::Chat, invite.kind == InviteKind::Chat, "seed {seed}");
                            keeper.came_in(device, proof);
                        }
                    }
                }
                for issued in &keeper.doors().invites {
                    assert!(issued.devices.len() <= usize::from(issued.invite.uses), "seed {seed}, step {step}");
                }
            }
        }
    }
}
