//! The page's commands.

use std::rc::Rc;

use potluck_engine::Tier;
use potluck_panel::{
    DirectConnections, ExpertGuesser, HostChoice, InviteChoice, KeySeed, NoticeLevel, RoomKeys, ToNode, ToPage,
};
use potluck_plan::{Arithmetic, PlanEpoch, Pooling};
use potluck_protocol::{Invite, InviteId, OwnerSecrets, UnixSeconds};
use potluck_relay_api::ROOM_ID_CHARS;
use potluck_swarm::{Event, HostCommand, Ownership, SpotChecks};
use potluck_text::texts;
use potluck_trust::{IdentityKeys, OwnerKey, RoomRole, RoomSecret};

use super::decisions::recording;
use super::doors::{EARLIER_LINKS, RoomOwner, invite_of, is_for_chat};
use super::{Input, Node, NodeIdentity};
use crate::links::is_private_host;
use crate::platform::{LocalFile, Platform};
use crate::relay::Relay;
use crate::room::{LineOptions, Listing};
use crate::status::RoomName;

const DAMAGED_KEYS: &str = "The keys of this room cannot be read. Host a new room.";
const DAMAGED_LINK: &str = "This link is not complete. Copy the whole link and open it again.";
const OLD_LINK: &str = "This link is from an older version of Potluck. Ask the host for a new one.";

impl Node {
    pub(super) fn command(&mut self, command: ToNode, files: Vec<Rc<dyn LocalFile>>) {
        match command {
            ToNode::Start { build, relay, device_key, tab_key, name, kind } => {
                let keys = IdentityKeys { device: device_key.0.into(), tab: tab_key.0.into() };
                self.start(&build, &relay, keys, name, kind);
            }
            ToNode::AccessTokens(tokens) => self.platform.access.replace(tokens),
            ToNode::DirectConnections(choice) => {
                self.direct = choice;
                if let Some(members) = self.membership.members() {
                    members.set_connects(self.connects());
                }
            }
            ToNode::Host(choice) => self.host(choice, files),
            ToNode::Join { room, key } => self.join(room, key),
            ToNode::Contribute(choice) => self.contribute(choice.budget),
            ToNode::StopContributing => {
                self.contribution.withdraw();
                self.event(Event::StopContributing);
            }
            ToNode::Leave(leaving) => {
                self.contribution.withdraw();
                self.event(Event::Leave(leaving));
            }
            ToNode::Rename(name) => self.event(Event::Rename(name)),
            ToNode::Admit { peer, allow } => self.event(Event::Admit { peer, allow }),
            ToNode::Remove(peer) => self.event(Event::Remove(peer)),
            ToNode::Ban(peer) => self.event(Event::Ban(peer)),
            ToNode::Unban(device) => self.event(Event::Unban(device)),
            ToNode::Invite(choice) => self.invite(choice),
            ToNode::Revoke(id) => self.event(Event::Revoke(id)),
            ToNode::RenewLink => self.event(Event::Renew),
            ToNode::DoorsKept(link) => self.event(Event::DoorsKept(link)),
            ToNode::DoorsLost(link) => self.event(Event::DoorsLost(link)),
            ToNode::SetSharing(share) => self.event(Event::SetSharing(share)),
            ToNode::SetDeputy(choice) => self.event(Event::SetDeputy(choice)),
            ToNode::Writing => self.event(Event::Writing),
            ToNode::Prompt(prompt) => self.event(Event::Prompt(prompt)),
            ToNode::Stop(request) => self.event(Event::Stop(request)),
            ToNode::Visibility { hidden } => self.event(Event::Visibility { hidden }),
            ToNode::SelfTest => self.self_test(),
            ToNode::ListStorage => self.list_storage(),
            ToNode::DeleteStored { model } => self.delete_stored(model),
            ToNode::Trace => self.trace(),
            ToNode::Bench(choice) => self.start_bench(choice, files),
            ToNode::StopBench => self.stop_bench(),
        }
    }

    fn start(&mut self, build: &str, relay: &str, keys: IdentityKeys, name: String, kind: potluck_panel::DeviceKind) {
        self.page.send(ToPage::Ready { build: potluck_panel::BUILD.to_owned() });
        if build != potluck_panel::BUILD {
            return self.notice(NoticeLevel::Error, texts().notice.versions_differ().to_owned());
        }
        if self.identity.is_some() {
            return;
        }
        let (peer, device, relay) = (keys.peer(), keys.device(), Relay::new(self.platform.clone(), relay));
        self.identity = Some(NodeIdentity { keys, peer, device, name, kind, relay });
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            compute.device.open().await;
            inputs.send(Input::GpuOpened);
        }));
    }

    fn host(&mut self, choice: HostChoice, files: Vec<Rc<dyn LocalFile>>) {
        let (owner, secret) = match &choice.resume {
            None => (OwnerKey::generate(self.platform.random), RoomSecret::generate(self.platform.random)),
            Some(RoomKeys { owner, secret }) => match RoomSecret::parse(secret) {
                Some(secret) => (OwnerKey::from_seed(owner.0), secret),
                None => {
                    self.membership.close(Some(DAMAGED_KEYS.to_owned()));
                    return self.page.mark_changed();
                }
            },
        };
        self.page.send(ToPage::Hosting(RoomKeys { owner: KeySeed(owner.seed()), secret: secret.text() }));
        let budget = choice.budget;
        self.open_room(choice, (owner, secret), files);
        if budget > 0 {
            self.contribute(budget);
        }
        self.page.mark_changed();
    }

    /// Hosts the room with these keys.
    pub(super) fn open_room(
        &mut self,
        choice: HostChoice,
        (owner, secret): (OwnerKey, RoomSecret),
        files: Vec<Rc<dyn LocalFile>>,
    ) {
        let Some(identity) = &self.identity else { return };
        let (relay, keys, title) = (identity.relay.clone(), identity.keys.clone(), identity.name.clone());
        let keys_of_room = RoomOwner { key: owner.clone(), first: secret.clone() };
        let (link, key) = (choice.doors.link, keys_of_room.link_key(choice.doors.link));
        self.hosting.start(files, choice.context, choice.cache, Some(keys_of_room));
        self.choose_guesser(choice.guesser);
        let resumed = choice.resume.is_some();
        let last_epoch = if resumed { epoch_after_reload(&self.platform) } else { Default::default() };
        let (generation, revoked) = (choice.doors.generation, choice.doors.revoked());
        let secrets = OwnerSecrets { owner: owner.seed(), link: secret.to_bytes() };
        let earlier_links = choice.doors.earlier_links(EARLIER_LINKS);
        let command = HostCommand {
            source: choice.model,
            context: choice.context,
            kv_cache: choice.cache,
            arithmetic: self.arithmetic(choice.arithmetic),
            sharing: choice.sharing,
            ends: choice.ends,
            last_epoch,
            in_advance: true,
            doors: choice.doors,
            at: now(&self.platform),
            pooling: self.pooling(choice.pooling),
            spot_checks: SpotChecks { secret: u64::from_le_bytes(self.platform.random_bytes()), ..self.spot_checks },
            on_demand: self.on_demand,
            protect: choice.protect,
            deputy: choice.deputy,
            ownership: Some(Ownership { secrets, term: choice.term, visible: choice.visible }),
        };
        let room = RoomName { id: owner.room(), key: Some(key), visible: choice.visible, chat_only: false };
        let options = LineOptions {
            relay,
            room: room.id.clone(),
            role: RoomRole::Owner { key: owner, secret, link, generation, visible: choice.visible },
            // The relay learns the host's name only where the host wants it listed.
            listing: Listing { title: if choice.visible { title } else { String::new() }, visible: choice.visible },
            term: choice.term,
            revoked,
            earlier_links,
            keys,
            connects: self.connects(),
        };
        self.membership.enter(room);
        self.event(Event::Host(command));
        self.open_line(options);
    }

    pub(super) fn host_alone(&mut self, command: HostCommand, budget: u64, files: Vec<Rc<dyn LocalFile>>) {
        self.hosting.start(files, command.context, command.kv_cache, None);
        self.choose_guesser(ExpertGuesser::Usual);
        self.event(Event::Host(command));
        self.contribute(budget);
    }

    /// Whether this device connects to others past the relay.
    pub(super) fn connects(&self) -> bool {
        match self.direct {
            DirectConnections::Always => true,
            DirectConnections::Never => false,
            DirectConnections::InPrivateNetworks => {
                self.identity.as_ref().is_some_and(|identity| is_private_host(identity.relay.host()))
            }
        }
    }

    /// The chosen arithmetic, if every device of a room can compute by it, else what suits this device's GPU.
    fn arithmetic(&self, chosen: Option<Arithmetic>) -> Arithmetic {
        let shares_work = || self.compute.device.gpu().is_some_and(|gpu| gpu.capabilities().tier != Tier::Software);
        let portable = chosen.filter(|arithmetic| Arithmetic::PORTABLE.contains(arithmetic));
        portable.unwrap_or_else(|| Arithmetic::automatic(shares_work()))
    }

    /// The chosen spreading of experts; the usual one, if a page has kept one that no room can have.
    fn pooling(&self, chosen: Pooling) -> Pooling {
        chosen.checked().unwrap_or_else(|error| {
            self.notice(NoticeLevel::Warning, texts().pooling.replaced(error));
            Pooling::default()
        })
    }

    fn join(&mut self, room: String, key: Option<String>) {
        let Some(identity) = &self.identity else { return };
        let (relay, keys) = (identity.relay.clone(), identity.keys.clone());
        let role = guest_role(&room, key.as_deref());
        let chat_only = matches!(&role, Ok(RoomRole::Invited(invite)) if is_for_chat(invite));
        self.membership.enter(RoomName { id: room.clone(), key, visible: false, chat_only });
        match role {
            Ok(role) => {
                self.event(Event::Join);
                let (listing, term, revoked, earlier_links) = Default::default();
                let connects = self.connects();
                let options = LineOptions { relay, room, role, listing, term, revoked, earlier_links, keys, connects };
                self.open_line(options);
            }
            Err(sentence) => self.membership.close(Some(sentence.to_owned())),
        }
        self.page.mark_changed();
    }

    /// Gives out an invite of the room that this node hosts.
    fn invite(&mut self, choice: InviteChoice) {
        let InviteChoice { kind, ask, hours, uses } = choice;
        let id = InviteId(u32::from_le_bytes(self.platform.random_bytes()));
        let expires = UnixSeconds(now(&self.platform).0.saturating_add(hours.saturating_mul(3_600)));
        self.event(Event::Invite(Invite { id, kind, ask, expires, uses }));
    }

    fn self_test(&mut self) {
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            if let Err(sentence) = compute.test_again().await {
                inputs.send(Input::Notice(sentence));
            }
            inputs.send(Input::Changed);
        }));
        self.page.mark_changed();
    }

    fn trace(&self) {
        let Some(peer) = &self.peer else { return };
        match serde_json::to_string(&recording(peer)) {
            Ok(json) => self.page.send(ToPage::Trace(json)),
            Err(error) => self.notice(NoticeLevel::Error, format!("The recording cannot be written: {error}.")),
        }
    }
}

/// How somebody with this link, or without one, enters a room.
pub(super) fn guest_role(room: &str, key: Option<&str>) -> Result<RoomRole, &'static str> {
    let Some(key) = key else { return Ok(RoomRole::Visitor) };
    if room.len() != ROOM_ID_CHARS {
        return Err(OLD_LINK);
    }
    let role = match invite_of(key) {
        Some(invite) => invite.map(RoomRole::Invited),
        None => RoomSecret::parse(key).map(RoomRole::Guest),
    };
    role.ok_or(DAMAGED_LINK)
}

/// The epoch that a room continues above when it is hosted again after a reload. Plans are made less often than once a second,
/// so the clock's seconds are above every epoch the room had. A clock that was wrong does no harm: members say which epoch they know.
fn epoch_after_reload(platform: &Platform) -> PlanEpoch {
    const SINCE: u64 = 1_767_225_600;
    // Below what members are believed to know.
    const MOST: u64 = 1 << 29;
    PlanEpoch(platform.clock.unix_seconds().saturating_sub(SINCE).min(MOST) as u32)
}

/// The time on this device's clock.
fn now(platform: &Platform) -> UnixSeconds {
    UnixSeconds(u32::try_from(platform.clock.unix_seconds()).unwrap_or(u32::MAX))
}
