//! The page's commands.

use std::rc::Rc;

use potluck_panel::{HostChoice, NoticeLevel, ToNode, ToPage};
use potluck_plan::{PeerId, PlanEpoch};
use potluck_swarm::{Event, HostCommand};

use super::{Input, Node, NodeIdentity};
use crate::platform::{LocalFile, Platform};
use crate::relay::{Relay, RelayError};
use crate::room::{LineOptions, Listing};
use crate::status::RoomName;

impl Node {
    pub(super) fn command(&mut self, command: ToNode, files: Vec<Rc<dyn LocalFile>>) {
        match command {
            ToNode::Start { build, relay, peer, name, kind } => self.start(&build, &relay, peer, name, kind),
            ToNode::Host(choice) => self.host(choice, files),
            ToNode::Join { room, key } => self.join(room, key),
            ToNode::Contribute(choice) => self.contribute(choice.budget),
            ToNode::StopContributing => {
                self.contribution.withdraw();
                self.event(Event::StopContributing);
            }
            ToNode::Leave => {
                self.contribution.withdraw();
                self.event(Event::Leave);
            }
            ToNode::Rename(name) => self.event(Event::Rename(name)),
            ToNode::Admit { peer, allow } => self.event(Event::Admit { peer, allow }),
            ToNode::SetSharing(share) => self.event(Event::SetSharing(share)),
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

    fn start(&mut self, build: &str, relay: &str, peer: PeerId, name: String, kind: potluck_panel::DeviceKind) {
        self.page.send(ToPage::Ready { build: potluck_panel::BUILD.to_owned() });
        if build != potluck_panel::BUILD {
            let sentence = "The page and its worker are of different versions. Reload the page.";
            return self.notice(NoticeLevel::Error, sentence.to_owned());
        }
        if self.identity.is_some() {
            return;
        }
        self.identity = Some(NodeIdentity { peer, name, kind, relay: Relay::new(self.platform.clone(), relay) });
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            compute.open().await;
            inputs.send(Input::GpuOpened);
        }));
    }

    fn host(&mut self, choice: HostChoice, files: Vec<Rc<dyn LocalFile>>) {
        let Some(identity) = &self.identity else { return };
        self.hosting.start(files, choice.context, true);
        let (relay, title, inputs) = (identity.relay.clone(), identity.name.clone(), self.inputs.clone());
        let key = hex(&self.platform.random_bytes::<16>());
        self.platform.spawn.spawn(Box::pin(async move {
            let visible = choice.visible;
            let room = match choice.resume.clone() {
                Some((id, key)) => Ok((RoomName { id, key: Some(key), visible }, None)),
                None => relay.open_room(&title, visible).await.map(|room| {
                    let listing = Listing { owner: room.owner, title, visible };
                    (RoomName { id: room.id, key: Some(key), visible }, Some(listing))
                }),
            };
            inputs.send(Input::RoomReady(Box::new(choice), room));
        }));
    }

    pub(super) fn room_ready(&mut self, choice: HostChoice, room: Result<(RoomName, Option<Listing>), RelayError>) {
        let (room, listing) = match room {
            Ok(room) => room,
            Err(error) => return self.notice(NoticeLevel::Error, error.to_string()),
        };
        let Some(relay) = self.identity.as_ref().map(|identity| identity.relay.clone()) else { return };
        let resumed = choice.resume.is_some();
        let last_epoch = if resumed { epoch_after_reload(&self.platform) } else { Default::default() };
        let command = HostCommand {
            source: choice.model,
            key: room.key.clone().unwrap_or_default(),
            context: choice.context,
            kv_cache: choice.cache,
            sharing: choice.sharing,
            last_epoch,
            in_advance: true,
            hidden: self.hosting.hidden(),
        };
        let options = LineOptions { relay, room: room.id.clone(), create: true, listing };
        self.membership.enter(room);
        self.event(Event::Host(command));
        self.open_line(options);
        if choice.budget > 0 {
            self.contribute(choice.budget);
        }
        self.page.mark_changed();
    }

    pub(super) fn host_alone(&mut self, command: HostCommand, budget: u64, files: Vec<Rc<dyn LocalFile>>) {
        self.hosting.start(files, command.context, false);
        self.event(Event::Host(command));
        self.contribute(budget);
    }

    fn join(&mut self, room: String, key: Option<String>) {
        let Some(relay) = self.identity.as_ref().map(|identity| identity.relay.clone()) else { return };
        self.membership.enter(RoomName { id: room.clone(), key: key.clone(), visible: false });
        self.event(Event::Join { key });
        self.open_line(LineOptions { relay, room, create: false, listing: None });
        self.page.mark_changed();
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
        match serde_json::to_string(&peer.trace()) {
            Ok(json) => self.page.send(ToPage::Trace(json)),
            Err(error) => self.notice(NoticeLevel::Error, format!("The recording cannot be written: {error}.")),
        }
    }
}

/// The epoch that a room continues above when it is hosted again after a reload. Plans are made less often than once a second,
/// so the clock's seconds are above every epoch the room had.
fn epoch_after_reload(platform: &Platform) -> PlanEpoch {
    const SINCE: u64 = 1_767_225_600;
    PlanEpoch(u32::try_from(platform.clock.unix_seconds().saturating_sub(SINCE)).unwrap_or(u32::MAX / 2))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
