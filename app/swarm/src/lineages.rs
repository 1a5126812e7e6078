//! Which devices may belong to one person, as far as the host knows. A cheater that came in twice must not confirm itself.

use std::collections::BTreeMap;

use potluck_plan::{DeviceId, PeerId};
use potluck_protocol::{Checkers, Doors, Invite, Lineage};

use crate::Proof;

/// A way into the room. Whoever can use it once can use it again, with another tab or another profile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the room's link.
    Link,
    /// From the public list, or with the group's secret: the host was asked.
    Asked,
    /// By an invite.
    Invite(Invite),
}

/// The lineage of each member. `me`: the host's device.
pub(crate) fn lineages(me: DeviceId, members: &[(PeerId, DeviceId, Proof)], doors: &Doors) -> Vec<(PeerId, Lineage)> {
    let mut ways = vec![Way::Link, Way::Asked];
    ways.extend(doors.invites.iter().map(|issued| Way::Invite(issued.invite)));
    let mut same = Same((0..ways.len()).collect());
    let mut by_device: BTreeMap<DeviceId, usize> = BTreeMap::new();
    let came = |device: DeviceId, way: usize, by_device: &mut BTreeMap<DeviceId, usize>, same: &mut Same| {
        let first = *by_device.entry(device).or_insert(way);
        same.unite(first, way);
    };
    for holder in doors.by_link.iter().filter(|holder| holder.device != me) {
        came(holder.device, 0, &mut by_device, &mut same);
    }
    for device in &doors.admitted {
        came(*device, 1, &mut by_device, &mut same);
    }
    for (issued, way) in doors.invites.iter().zip(2..) {
        issued.devices.iter().for_each(|device| came(*device, way, &mut by_device, &mut same));
    }
    for (_, device, proof) in members.iter().filter(|(_, device, _)| *device != me) {
        let way = match proof {
            Proof::Host | Proof::Link(_) => Way::Link,
            Proof::Group | Proof::Visitor => Way::Asked,
            Proof::Invite(invite) => Way::Invite(*invite),
        };
        if let Some(way) = ways.iter().position(|known| *known == way) {
            came(*device, way, &mut by_device, &mut same);
        }
    }
    let lineage = |(peer, device, _): &(PeerId, DeviceId, Proof)| {
        if *device == me {
            return Some((*peer, Lineage::HOST));
        }
        let root = same.root(*by_device.get(device)?);
        Some((*peer, Lineage(u16::try_from(root + 1).ok()?)))
    };
    members.iter().filter_map(lineage).collect()
}

/// Ways in that one device has used count as one.
struct Same(Vec<usize>);

impl Same {
    fn root(&self, mut way: usize) -> usize {
        while self.0[way] != way {
            way = self.0[way];
        }
        way
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// What a stage was told about who may check whom.
#[derive(Debug, Default)]
pub(crate) struct KnownCheckers {
    pub secret: u64,
    lineages: BTreeMap<PeerId, Lineage>,
}

impl KnownCheckers {
    pub fn lineage(&self, peer: PeerId) -> Option<Lineage> {
        self.lineages.get(&peer).copied()
    }
}

impl From<Checkers> for KnownCheckers {
    fn from(Checkers { secret, lineages }: Checkers) -> Self {
        Self { secret, lineages: lineages.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use potluck_protocol::{InviteId, InviteKind, IssuedInvite, LinkHolder, UnixSeconds};

    use super::*;

    const ME: DeviceId = DeviceId([9; 32]);

    fn invite(id: u32) -> Invite {
        Invite { id: InviteId(id), kind: InviteKind::Contribute, ask: false, expires: UnixSeconds(9), uses: 9 }
    }

    fn device(n: u8) -> DeviceId {
        DeviceId([n; 32])
    }

    fn doors(invites: &[&[u8]]) -> Doors {
        let issued = |(devices, id): (&&[u8], u32)| IssuedInvite {
            invite: invite(id),
            revoked: false,
            devices: devices.iter().map(|n| device(*n)).collect(),
        };
        Doors { invites: invites.iter().zip(0..).map(issued).collect(), ..Doors::default() }
    }

    /// The lineages of peers 1, 2, …, which are of these devices and came like this.
    fn of(members: &[(u8, Proof)], doors: &Doors) -> Vec<u16> {
        let members: Vec<_> =
            members.iter().zip(1..).map(|((n, proof), peer)| (PeerId([peer; 16]), device(*n), *proof)).collect();
        lineages(ME, &members, doors).into_iter().map(|(_, lineage)| lineage.0).collect()
    }

    #[test]
    fn devices_that_came_by_one_invite_or_by_the_link_are_of_one_lineage() {
        let [a, b] = [invite(0), invite(1)].map(Proof::Invite);
        let seen = of(&[(1, a), (2, a), (3, b), (4, Proof::Link(0)), (5, Proof::Link(0))], &doors(&[&[1, 2], &[3]]));
        assert_eq!((seen[0] == seen[1], seen[3] == seen[4]), (true, true), "{seen:?}");
        assert_eq!([0, 2, 3].map(|index| seen[index]).iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn whoever_was_asked_about_is_of_one_lineage_and_so_are_tabs_of_a_device() {
        let seen = of(&[(1, Proof::Visitor), (2, Proof::Group), (3, Proof::Link(0)), (3, Proof::Link(0))], &doors(&[]));
        assert_eq!((seen[0] == seen[1], seen[2] == seen[3], seen[0] == seen[2]), (true, true, false), "{seen:?}");
    }

    #[test]
    fn a_device_that_came_by_two_invites_makes_them_one() {
        let [a, b] = [invite(0), invite(1)].map(Proof::Invite);
        // Device 7 is not here any more.
        let seen = of(&[(1, a), (2, b)], &doors(&[&[1, 7], &[2, 7]]));
        assert_eq!(seen[0], seen[1]);
        let seen = of(&[(1, a), (2, b)], &doors(&[&[1], &[2]]));
        assert_ne!(seen[0], seen[1]);
    }

    /// It came back by the invite, and what it had been before was not looked at: its person's other device checked it.
    #[test]
    fn a_device_that_came_by_the_link_and_comes_back_by_an_invite_makes_them_one() {
        let members = [(1, Proof::Invite(invite(0))), (2, Proof::Link(0))];
        let by_link = |n| LinkHolder { device: device(n), link: 0 };
        for (holders, are_one) in [(vec![by_link(2)], false), (vec![by_link(1), by_link(2)], true)] {
            let doors = Doors { by_link: holders, ..doors(&[&[1]]) };
            let seen = of(&members, &doors);
            assert_eq!(seen[0] == seen[1], are_one, "{seen:?}");
        }
        // The host's own device may have come by both with its tabs.
        let doors = Doors { by_link: vec![LinkHolder { device: ME, link: 0 }], ..doors(&[&[1]]) };
        let seen = of(&members, &doors);
        assert_ne!(seen[0], seen[1]);
    }

    #[test]
    fn the_hosts_own_tabs_are_the_hosts_and_an_unknown_invite_says_nothing() {
        let seen = of(&[(9, Proof::Host), (9, Proof::Link(0)), (1, Proof::Link(0))], &doors(&[]));
        assert_eq!((seen[0], seen[1], seen[2] > 0), (0, 0, true));
        assert!(of(&[(1, Proof::Invite(invite(5)))], &doors(&[])).is_empty());
    }
}
