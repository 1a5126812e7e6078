//! A node in this process, and its messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use futures::channel::mpsc;
use potluck_node::node::{Input, Inputs, Node};
use potluck_node::platform::LocalFile;
use potluck_panel::{
    AnswerPart, AnswerStop, Channel, Connection, DeviceKind, Doors, Ends, HostChoice, InviteChoice, InviteKind,
    InviteReport, InviteState, KeySeed, Leaving, NoticeLevel, PlanStatus, PromptRequest, RoomKeys, Status, Timings,
    ToNode, ToPage, UnixSeconds,
};
use potluck_text::texts;
use potluck_trust::{OwnerKey, RoomSecret};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::output::say;
use crate::secret_file::{KeptRoom, keep_room, read_room, settle_room, write_log};
use crate::setup::Setup;
use crate::showing::{show_loading, show_reading};
use crate::signals::Stop;
use crate::waiting::{Purpose, Standing, limit, why_it_ends, why_nothing_goes_on};

/// How long an invite is open.
const INVITE_HOURS: u32 = 24;
/// How long leaving may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A whole answer.
pub struct Answer {
    /// What was said, without reasoning and calls.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub stop: AnswerStop,
    /// What it took.
    pub timings: Timings,
}

/// A running node.
pub struct Session {
    inputs: Inputs,
    messages: mpsc::UnboundedReceiver<ToPage>,
    task: tokio::task::JoinHandle<()>,
    /// The newest snapshot.
    pub status: Status,
    phase: String,
    /// Errors that are not printed yet: a snapshot may show that they are final, with a sentence of its own.
    errors: Vec<String>,
    /// Where the relay is.
    relay: String,
    /// Why it did not answer, if that was printed already.
    causes: BTreeSet<String>,
    /// What this node is there for.
    purpose: Purpose,
    /// It has reached the relay once.
    entered: bool,
    /// Who may stop it.
    stop: Stop,
    /// Waiting ends after this long without progress.
    patience: Duration,
    /// How far everything was at the last progress, and when that was.
    standing: (Standing, Instant),
    /// The keys of the room that it hosts.
    pub room_keys: Option<RoomKeys>,
    doors: Doors,
    /// Where the ends of its model may be computed.
    ends: Ends,
    /// Where that room is kept.
    kept: Option<PathBuf>,
    /// Where its log is written.
    log: Option<PathBuf>,
    /// The number of the room's link before it is renewed, if it is to be.
    renew_from: Option<u32>,
}

impl Session {
    /// Starts a node in the current `LocalSet`.
    pub fn start(setup: Setup) -> Self {
        let Setup { relay, name, device_key, platform, node, patience, stop } = setup;
        let keys = potluck_trust::IdentityKeys::generate(platform.random);
        let (sender, messages) = mpsc::unbounded();
        let page = Rc::new(move |message| {
            // Fails if the session has ended.
            let _ = sender.unbounded_send(message);
        });
        let (node, queue, inputs) = Node::new(platform, page, node);
        let session = Self {
            inputs,
            messages,
            task: tokio::task::spawn_local(node.run(queue)),
            status: Status::default(),
            phase: String::new(),
            errors: Vec::new(),
            relay: relay.clone(),
            causes: BTreeSet::new(),
            purpose: Purpose::Watch,
            entered: false,
            stop,
            patience,
            standing: (Standing::default(), Instant::now()),
            room_keys: None,
            doors: Doors::default(),
            ends: Ends::default(),
            kept: None,
            log: None,
            renew_from: None,
        };
        session.page(ToNode::Start {
            build: potluck_panel::BUILD.to_owned(),
            relay,
            device_key: device_key.unwrap_or(KeySeed(*keys.device)),
            tab_key: KeySeed(*keys.tab),
            name,
            kind: DeviceKind::Native,
        });
        session
    }

    /// Ends the node at once, without telling the others, like a closed tab or an empty battery.
    pub fn kill(&self) {
        self.task.abort();
    }

    /// Sends the node an input.
    pub fn send(&self, input: Input) {
        self.inputs.send(input);
    }

    /// Sends the node a message of the page.
    pub fn page(&self, message: ToNode) {
        self.send(Input::Page(message, Vec::new()));
    }

    /// What this node is there for decides what its end is.
    pub(crate) fn set_purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    /// The model can answer. From now on, this session waits for whatever comes, until somebody stops it or the room ends.
    pub(crate) fn stay(&mut self) {
        if self.purpose == Purpose::Alone {
            self.purpose = Purpose::Watch;
        }
    }

    /// The node's next message. Keeps snapshots, and prints progress and notices to standard error.
    ///
    /// # Errors
    /// The node has ended, or what it is there for cannot be done any more.
    pub async fn next(&mut self) -> Result<ToPage, Failure> {
        let message = self.messages.next().await;
        self.took(message)
    }

    /// The same for a person at a terminal, who may stop the program and should not wait in vain.
    ///
    /// # Errors
    /// The same, or somebody stopped the program, or nothing went on for too long.
    pub(crate) async fn step(&mut self) -> Result<ToPage, Failure> {
        let patience = limit(self.purpose, &self.status, self.patience);
        let late = self.standing.1 + patience;
        let may_be_late = !self.purpose.may_stay(self.entered);
        let message = tokio::select! {
            biased;
            signal = self.stop.stopped() => return Err(Failure::Stopped(signal)),
            message = self.messages.next() => message,
            () = tokio::time::sleep_until(late), if may_be_late => {
                return Err(why_nothing_goes_on(&self.relay, self.purpose, &self.status, patience));
            }
        };
        self.took(message)
    }

    fn took(&mut self, message: Option<ToPage>) -> Result<ToPage, Failure> {
        let message = message.ok_or_else(|| Failure::Failed(texts().terminal.node_ended().to_owned()))?;
        match &message {
            ToPage::Status(status) => {
                self.status = (**status).clone();
                if matches!(self.status.connection, Connection::Connected | Connection::WaitingForHost) {
                    self.entered = true;
                    self.causes.clear();
                }
                if let Some(failure) = why_it_ends(self.purpose, &self.status) {
                    return Err(failure);
                }
                // What the first call of the relay comes to may be the cause of all.
                if self.status.connection != Connection::Connecting {
                    self.errors.drain(..).for_each(say);
                }
                self.show_progress();
            }
            ToPage::Hosting(keys) => {
                self.room_keys = Some(keys.clone());
                self.keep_room().map_err(Failure::Failed)?;
            }
            ToPage::Doors(doors) => {
                let is_news = self.doors.log != doors.log;
                let are_renewed = self.doors.link != doors.link;
                self.doors = (**doors).clone();
                if is_news {
                    self.write_log().unwrap_or_else(say);
                }
                // The room goes on without; renewed keys, which a restart would not know, are given to nobody.
                let kept = self.keep_room().and_then(|()| if are_renewed { self.settle_room() } else { Ok(()) });
                match kept {
                    Ok(()) => self.page(ToNode::DoorsKept(self.doors.link)),
                    Err(sentence) if self.renews() => return Err(Failure::Failed(sentence)),
                    Err(sentence) => {
                        self.page(ToNode::DoorsLost(self.doors.link));
                        say(sentence);
                    }
                }
            }
            ToPage::TookOver(choice) => {
                self.doors = choice.doors.clone();
                say(texts().terminal.took_over());
            }
            ToPage::SteppedDown { .. } => say(texts().terminal.stepped_down()),
            ToPage::Notice(notice) if notice.level == NoticeLevel::Error => self.errors.push(notice.sentence.clone()),
            ToPage::Notice(notice) => say(&notice.sentence),
            _ => {}
        }
        if self.standing.0.moves(&self.status, &message) {
            self.standing.1 = Instant::now();
        }
        Ok(message)
    }

    /// Opens a room. With a file for its keys, the room that is kept there is opened again, with its bans and invites.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn host(
        &mut self,
        mut choice: HostChoice,
        files: Vec<Rc<dyn LocalFile>>,
        keys: Option<&Path>,
    ) -> Result<(), Failure> {
        if let Some(room) = keys.map(read_room).transpose().map_err(Failure::Failed)?.flatten() {
            choice.ends = room.ends(choice.ends);
            choice.resume = Some(room.keys);
            choice.doors = room.doors;
        }
        self.ends = choice.ends;
        self.doors = choice.doors.clone();
        self.kept = keys.map(Path::to_path_buf);
        self.send(Input::Page(ToNode::Host(choice), files));
        Ok(())
    }

    /// Writes the log of the room's doors to this file from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_log_to(&mut self, path: Option<&Path>) -> Result<(), Failure> {
        self.log = path.map(Path::to_path_buf);
        self.write_log().map_err(Failure::Failed)
    }

    fn write_log(&self) -> Result<(), String> {
        self.log.as_ref().map_or(Ok(()), |path| write_log(path, &self.doors.log))
    }

    fn keep_room(&self) -> Result<(), String> {
        let (Some(path), Some(keys)) = (&self.kept, &self.room_keys) else { return Ok(()) };
        keep_room(path, &KeptRoom { keys: keys.clone(), doors: self.doors.clone(), ends: self.ends })
    }

    fn settle_room(&self) -> Result<(), String> {
        self.kept.as_ref().map_or(Ok(()), |path| settle_room(path))
    }

    /// Renews the link of the room that was opened: [`Session::link`] returns the new one.
    pub fn renew_link(&mut self) {
        self.renew_from = Some(self.doors.link);
        self.page(ToNode::RenewLink);
    }

    /// The room's link is to be renewed, and is still the one before.
    fn renews(&self) -> bool {
        let Some(before) = self.renew_from else { return false };
        let key = self.status.room.as_ref().and_then(|room| room.key.clone());
        self.doors.link == before || key != self.newest_key()
    }

    /// The key of the link with the number in the doors.
    fn newest_key(&self) -> Option<String> {
        let RoomKeys { owner, secret } = self.room_keys.as_ref()?;
        let first = RoomSecret::parse(secret)?;
        Some(OwnerKey::from_seed(owner.0).link(&first, self.doors.link).text())
    }

    fn show_progress(&mut self) {
        let terminal = &texts().terminal;
        let phase = match (&self.status.connection, self.status.loading.or(self.status.checking), &self.status.plan) {
            (Connection::Connecting, ..) => terminal.calling_relay().to_owned(),
            (Connection::Reconnecting { cause, .. }, ..) if self.causes.insert(cause.clone()) => {
                terminal.relay_silent(cause)
            }
            (Connection::Reconnecting { .. } | Connection::SocketsRefused { .. }, ..) => return,
            (Connection::WaitingForHost, ..) => terminal.waiting_for_host().to_owned(),
            (_, Some(loading), _) => return show_loading(&loading),
            // The expected time changes with every token, so it is printed only with a new phase.
            (.., Some(plan)) if plan.reason == self.phase => return,
            (.., Some(plan)) => plan.reason.clone(),
            _ => return,
        };
        if phase == self.phase || phase.is_empty() {
            return;
        }
        match self.status.plan.as_ref().filter(|plan| plan.reason == phase && plan.token_ms > 0.0) {
            Some(plan) => say(terminal.token_expected(&phase, plan.token_ms)),
            None => say(&phase),
        }
        self.phase = phase;
    }

    /// Waits until the room can answer.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn until_up(&mut self) -> Result<(), Failure> {
        // A caller that waits for this needs nothing else from the session.
        let purpose = if self.purpose == Purpose::Watch { Purpose::Alone } else { self.purpose };
        while self.status.plan.as_ref().is_none_or(|plan| plan.state != PlanStatus::Up) {
            self.step().await?;
            if let Some(failure) = why_it_ends(purpose, &self.status) {
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Waits until the relay has the room, and returns its link: nobody could enter by it before.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn link(&mut self) -> Result<String, Failure> {
        loop {
            if let (Some(room), Connection::Connected) = (&self.status.room, &self.status.connection)
                && !self.renews()
            {
                return Ok(room.link.clone());
            }
            self.step().await?;
        }
    }

    /// Path and fragment of the link of an invite to the room that this node hosts: one that is still open, or a new one.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn invite(&mut self, kind: InviteKind) -> Result<String, Failure> {
        let mut is_made = false;
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let now = UnixSeconds(u32::try_from(now).unwrap_or(u32::MAX));
            let is_open = |report: &&InviteReport| {
                report.invite.kind == kind && !report.invite.ask && report.state(now) == InviteState::Open
            };
            if let Some(report) = self.status.doors.iter().flat_map(|doors| &doors.invites).find(is_open) {
                return Ok(report.link.clone());
            }
            if !is_made {
                self.page(ToNode::Invite(InviteChoice { kind, ask: false, hours: INVITE_HOURS, uses: 1 }));
                is_made = true;
            }
            self.step().await?;
        }
    }

    /// Sends a prompt and waits for the whole answer. `show` gets each piece of its texts; if it fails, the answer is stopped.
    ///
    /// # Errors
    /// Why the answer failed.
    pub async fn chat(
        &mut self,
        prompt: PromptRequest,
        mut show: impl FnMut(Channel, &str) -> Result<(), Failure>,
    ) -> Result<Answer, Failure> {
        let (request, began) = (prompt.request, Instant::now());
        self.page(ToNode::Prompt(prompt));
        let (mut text, mut tokens) = (String::new(), Vec::new());
        loop {
            let message = self.step().await.inspect_err(|_| self.page(ToNode::Stop(request)))?;
            let ToPage::Answer { request: of, event } = message else { continue };
            if matches!(event, AnswerPart::Doubtful { .. }) {
                say(texts().answer.earlier_doubtful());
            }
            if of != request {
                continue;
            }
            match event {
                AnswerPart::Text { channel, delta, tokens: more, .. } => {
                    show(channel, &delta).inspect_err(|_| self.page(ToNode::Stop(request)))?;
                    if channel == Channel::Answer {
                        text.push_str(&delta);
                    }
                    tokens.extend(more);
                }
                AnswerPart::Recovering(reason) => say(reason),
                AnswerPart::Void { .. } => {
                    say(texts().answer.void());
                    text.clear();
                    tokens.clear();
                }
                AnswerPart::Doubtful { .. } => {}
                // Of a room that ended, too.
                AnswerPart::End { stop: AnswerStop::Failed(sentence), .. } if self.purpose == Purpose::Ask => {
                    return Err(Failure::Room(sentence));
                }
                AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                    return Err(Failure::Failed(sentence));
                }
                AnswerPart::End { stop, timings, .. } => return Ok(Answer { text, tokens, stop, timings }),
                AnswerPart::Unknown => return Err(Failure::Room(texts().answer.question_lost().to_owned())),
                AnswerPart::Queued(place) if place > 1 => say(texts().terminal.queued(place)),
                AnswerPart::Queued(_) => {}
                AnswerPart::Reading(done, all) => show_reading(done, all, began.elapsed()),
            }
        }
    }

    /// Leaves the room and tells the others.
    pub async fn leave(&mut self) {
        // Without a file for them, a room's keys end with this program.
        let leaving = if self.kept.is_some() { Leaving::ForNow } else { Leaving::ForGood };
        self.page(ToNode::Leave(leaving));
        let left = async {
            while !matches!(self.status.connection, Connection::Idle | Connection::Closed { .. }) {
                match self.messages.next().await {
                    Some(ToPage::Status(status)) => self.status = *status,
                    Some(_) => {}
                    None => return,
                }
            }
            // Lets the last messages be sent.
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        // Who does not hear of it notices the silence.
        _ = tokio::time::timeout(FAREWELL, left).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
