//! Hosts the room of a host that was lost, and takes part in a room that another device hosts by now.

use potluck_panel::{ExpertGuesser, HostChoice, KeySeed, RoomKeys, ToPage};
use potluck_protocol::{OwnerSecrets, Succession};
use potluck_swarm::Event;
use potluck_trust::{OwnerKey, RoomSecret};

use super::Node;
use super::commands::guest_role;
use crate::room::LineOptions;
use crate::status::RoomName;

impl Node {
    /// This node was the deputy, and the host is lost: the room is opened in a later term, with everything that the host chose.
    pub(super) fn take_over(&mut self, succession: Succession) {
        let OwnerSecrets { owner, link } = succession.secrets;
        let keys = (OwnerKey::from_seed(owner), RoomSecret::from_bytes(link));
        let choice = HostChoice {
            model: succession.model,
            budget: self.contribution.budget(),
            context: succession.context,
            cache: succession.kv_cache,
            arithmetic: Some(succession.arithmetic),
            sharing: succession.sharing,
            ends: succession.ends,
            visible: succession.visible,
            resume: Some(RoomKeys { owner: KeySeed(owner), secret: keys.1.text() }),
            doors: succession.doors,
            protect: false,
            guesser: ExpertGuesser::Usual,
            pooling: succession.pooling,
            deputy: succession.deputy,
            term: succession.term,
        };
        self.page.send(ToPage::TookOver(Box::new(choice.clone())));
        self.open_room(choice, keys, Vec::new());
        self.page.mark_changed();
    }

    /// Another device hosts the room: this one comes back with the room's link.
    pub(super) fn step_down(&mut self) {
        let (Some(identity), Some(room)) = (&self.identity, self.membership.room()) else { return };
        let (relay, keys, id, key) = (identity.relay.clone(), identity.keys.clone(), room.id.clone(), room.key.clone());
        self.tasks.abort_opening();
        self.hosting.end();
        self.forget_guesser();
        self.page.send(ToPage::SteppedDown { room: id.clone(), key: key.clone() });
        match guest_role(&id, key.as_deref()) {
            Ok(role) => {
                self.membership.enter(RoomName { id: id.clone(), key, visible: false, chat_only: false });
                let (listing, revoked, earlier_links, term) = Default::default();
                let connects = self.connects();
                let options =
                    LineOptions { relay, room: id, role, listing, term, revoked, earlier_links, keys, connects };
                self.open_line(options);
            }
            Err(sentence) => {
                self.event(Event::Leave(potluck_protocol::Leaving::ForNow));
                self.membership.close(Some(sentence.to_owned()));
            }
        }
        self.page.mark_changed();
    }
}
