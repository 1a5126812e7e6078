//! What the page asked of its node, so that another worker can be told the same.

use potluck_panel::{ContributeChoice, HostChoice, ToNode, ToPage};
use web_sys::File;

/// The wishes that count until they are taken back.
#[derive(Default)]
pub struct Memory {
    start: Option<ToNode>,
    room: Option<(ToNode, Option<File>)>,
    lent: Option<ContributeChoice>,
    hidden: bool,
}

impl Memory {
    /// The page said this.
    pub fn note(&mut self, message: &ToNode, file: Option<&File>) {
        match message {
            ToNode::Start { .. } => self.start = Some(message.clone()),
            ToNode::Host(_) | ToNode::Join { .. } => {
                self.room = Some((message.clone(), file.cloned()));
                self.lent = None;
            }
            ToNode::Contribute(choice) => self.lent = Some(choice.clone()),
            ToNode::StopContributing => self.stop_lending(),
            ToNode::Leave => {
                self.room = None;
                self.lent = None;
            }
            ToNode::Rename(new) => {
                if let Some(ToNode::Start { name, .. }) = &mut self.start {
                    new.clone_into(name);
                }
            }
            ToNode::SetSharing(share) => {
                if let Some((ToNode::Host(choice), _)) = &mut self.room {
                    choice.sharing = *share;
                }
            }
            ToNode::Visibility { hidden } => self.hidden = *hidden,
            _ => {}
        }
    }

    /// The node said this: a hosted room has an id and a key now, and is opened again with them.
    pub fn heard(&mut self, message: &ToPage) {
        let ToPage::Status(status) = message else { return };
        let (Some((ToNode::Host(choice), _)), Some(room)) = (&mut self.room, &status.room) else { return };
        choice.resume = room.key.clone().map(|key| (room.id.clone(), key));
    }

    /// The page has said who it is.
    pub fn started(&self) -> bool {
        self.start.is_some()
    }

    /// What to tell another worker.
    pub fn replay(&self) -> Vec<(ToNode, Option<File>)> {
        let start = self.start.clone().map(|start| (start, None));
        let lent = self.lent.clone().map(|choice| (ToNode::Contribute(choice), None));
        let hidden = self.hidden.then_some((ToNode::Visibility { hidden: true }, None));
        start.into_iter().chain(self.room.clone()).chain(lent).chain(hidden).collect()
    }

    fn stop_lending(&mut self) {
        self.lent = None;
        if let Some((ToNode::Host(HostChoice { budget, .. }), _)) = &mut self.room {
            *budget = 0;
        }
    }
}
