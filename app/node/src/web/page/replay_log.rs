//! The commands that must be repeated to a new node worker when one dies.

use potluck_panel::{ContributeChoice, HostChoice, ToNode, ToPage};
use web_sys::File;

/// The page's commands that are still in effect.
#[derive(Default)]
pub struct ReplayLog {
    start: Option<ToNode>,
    access: Option<ToNode>,
    connects: Option<ToNode>,
    room: Option<(ToNode, Option<File>)>,
    contribution: Option<ContributeChoice>,
    hidden: bool,
}

impl ReplayLog {
    /// Records a command of the page.
    pub fn command(&mut self, message: &ToNode, file: Option<&File>) {
        match message {
            ToNode::Start { .. } => self.start = Some(message.clone()),
            ToNode::AccessTokens(_) => self.access = Some(message.clone()),
            ToNode::DirectConnections(_) => self.connects = Some(message.clone()),
            ToNode::Host(_) | ToNode::Join { .. } => {
                self.room = Some((message.clone(), file.cloned()));
                self.contribution = None;
            }
            ToNode::Contribute(choice) => self.contribution = Some(choice.clone()),
            ToNode::StopContributing => self.stop_contributing(),
            ToNode::Leave(_) => {
                self.room = None;
                self.contribution = None;
            }
            ToNode::Rename(new) => {
                if let Some(ToNode::Start { name, .. }) = &mut self.start {
                    new.clone_into(name);
                }
            }
            ToNode::SetSharing(sharing) => {
                if let Some((ToNode::Host(choice), _)) = &mut self.room {
                    choice.sharing = *sharing;
                }
            }
            ToNode::SetDeputy(deputy) => {
                if let Some((ToNode::Host(choice), _)) = &mut self.room {
                    choice.deputy = *deputy;
                }
            }
            ToNode::Visibility { hidden } => self.hidden = *hidden,
            _ => {}
        }
    }

    /// Learns from a message of the node: the keys and the doors of a hosted room, to open it again with.
    pub fn reply(&mut self, message: &ToPage) {
        match message {
            ToPage::TookOver(choice) => self.room = Some((ToNode::Host((**choice).clone()), None)),
            ToPage::SteppedDown { room, key } => {
                self.room = Some((ToNode::Join { room: room.clone(), key: key.clone() }, None));
            }
            _ => {}
        }
        let Some((ToNode::Host(choice), _)) = &mut self.room else { return };
        match message {
            ToPage::Hosting(keys) => choice.resume = Some(keys.clone()),
            ToPage::Doors(doors) => choice.doors = (**doors).clone(),
            _ => {}
        }
    }

    /// True once the page sent `Start`.
    pub fn started(&self) -> bool {
        self.start.is_some()
    }

    /// The commands for a new worker.
    pub fn replay(&self) -> Vec<(ToNode, Option<File>)> {
        let first = self.start.iter().chain(&self.access).chain(&self.connects).map(|message| (message.clone(), None));
        let contribution = self.contribution.clone().map(|choice| (ToNode::Contribute(choice), None));
        let hidden = self.hidden.then_some((ToNode::Visibility { hidden: true }, None));
        first.chain(self.room.clone()).chain(contribution).chain(hidden).collect()
    }

    fn stop_contributing(&mut self) {
        self.contribution = None;
        if let Some((ToNode::Host(HostChoice { budget, .. }), _)) = &mut self.room {
            *budget = 0;
        }
    }
}
