//! A node in this process, and its messages.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::mpsc;
use potluck_engine::GpuOptions;
use potluck_panel::{
    AnswerPart, AnswerStop, Connection, Doors, HostChoice, KeySeed, Leaving, Message, NoticeLevel, PlanStatus,
    PromptRequest, RequestId, Role, RoomKeys, Sampling, Status, Timings, ToNode, ToPage,
};
use potluck_plan::Arithmetic;

use potluck_text::texts;

use super::Options;
use super::rounds::is_ready;
use super::secret_file::{KeptRoom, device_key, keep_room, read_room};
use super::served::Served;
use crate::events::Inputs;
use crate::native::{Network, platform, random};
use crate::node::{Input, Node, NodeOptions};
use crate::platform::LocalFile;

/// The request of `--prompt`.
pub(super) const REQUEST: RequestId = RequestId(1);

/// Lines of the recording of a whole round.
const RECORDED: usize = 200_000;

/// How often a device that holds experts looks whether a round is over.
const LOOK: Duration = Duration::from_millis(100);

/// A running node.
pub struct Session {
    inputs: Inputs,
    messages: mpsc::UnboundedReceiver<ToPage>,
    task: tokio::task::JoinHandle<()>,
    /// The newest snapshot.
    pub status: Status,
    phase: String,
    /// The keys of the room that it hosts.
    pub room_keys: Option<RoomKeys>,
    doors: Doors,
    /// Where that room is kept.
    kept: Option<PathBuf>,
}

impl Session {
    /// Starts a node in the current `LocalSet`, as a device that nobody knows.
    pub fn start(relay: &str, options: &Options) -> Self {
        Self::start_with(relay, options, None)
    }

    /// The same, as the device that earlier runs with this cache folder were.
    ///
    /// # Errors
    /// A sentence: the file with the device's key cannot be read or written.
    pub fn of_this_device(relay: &str, options: &Options) -> Result<Self, String> {
        let fresh = KeySeed(*potluck_trust::IdentityKeys::generate(random).device);
        let key = device_key(&options.cache.clone().unwrap_or_else(default_cache), fresh)?;
        Ok(Self::start_with(relay, options, Some(key)))
    }

    fn start_with(relay: &str, options: &Options, device_key: Option<KeySeed>) -> Self {
        let network = Network {
            relay: relay.to_owned(),
            relay_fingerprint: options.relay_fingerprint,
            allow_private_links: options.allow_private_links,
            delay: options.delay,
        };
        let platform = platform(options.cache.clone().unwrap_or_else(default_cache), &network);
        let keys = potluck_trust::IdentityKeys::generate(platform.random);
        let (sender, messages) = mpsc::unbounded();
        let gpu = GpuOptions {
            adapter_name: options.gpu.clone(),
            adapter_index: options.gpu_index,
            tier: options.tier,
            matrix_units: options.arithmetic == Arithmetic::Matrix,
            ..GpuOptions::default()
        };
        let page = Rc::new(move |message| {
            // Fails if the session has ended.
            let _ = sender.unbounded_send(message);
        });
        let pooling = options.pooling();
        let options_of_node = NodeOptions {
            gpu,
            page,
            slow: options.slow,
            hesitation: options.hesitate.map(|delay| delay.hesitation(options.hesitate_until.clone())),
            hidden: options.hidden.clone(),
            pooling,
            on_demand: options.on_demand,
            hints: (&options.guesses).into(),
            guesses: options.guesses.clone().into(),
            recorded: options.rounds.several().then_some(RECORDED),
        };
        let (node, queue, inputs) = Node::new(platform, options_of_node);
        let task = tokio::task::spawn_local(node.run(queue));
        let session = Self {
            inputs,
            messages,
            task,
            status: Status::default(),
            phase: String::new(),
            room_keys: None,
            doors: Doors::default(),
            kept: None,
        };
        session.page(ToNode::Start {
            build: potluck_panel::BUILD.to_owned(),
            relay: relay.to_owned(),
            device_key: device_key.unwrap_or(KeySeed(*keys.device)),
            tab_key: KeySeed(*keys.tab),
            name: options.name.clone(),
            kind: Options::KIND,
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

    /// The node's next message. Keeps snapshots, and prints progress and notices to standard error.
    ///
    /// # Errors
    /// A sentence: the node has ended, or the room was closed.
    pub async fn next(&mut self) -> Result<ToPage, String> {
        let message = self.messages.next().await.ok_or("The node has ended.")?;
        match &message {
            ToPage::Status(status) => {
                self.status = (**status).clone();
                self.show_progress();
                if let Connection::Closed { reason } = &self.status.connection {
                    return Err(reason.clone());
                }
            }
            ToPage::Hosting(keys) => {
                self.room_keys = Some(keys.clone());
                self.keep_room()?;
            }
            ToPage::Doors(doors) => {
                self.doors = (**doors).clone();
                // The room goes on without.
                self.keep_room().unwrap_or_else(|sentence| eprintln!("{sentence}"));
            }
            ToPage::Notice(notice) if notice.level != NoticeLevel::Info => eprintln!("{}", notice.sentence),
            _ => {}
        }
        Ok(message)
    }

    /// Opens a room. With a file for its keys, the room that is kept there is opened again, with its bans and invites.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or holds something else.
    pub fn host(
        &mut self,
        mut choice: HostChoice,
        files: Vec<Rc<dyn LocalFile>>,
        keys: Option<&Path>,
    ) -> Result<(), String> {
        if let Some(room) = keys.map(read_room).transpose()?.flatten() {
            choice.resume = Some(room.keys);
            choice.doors = room.doors;
        }
        self.doors = choice.doors.clone();
        self.kept = keys.map(Path::to_path_buf);
        self.send(Input::Page(ToNode::Host(choice), files));
        Ok(())
    }

    fn keep_room(&self) -> Result<(), String> {
        let (Some(path), Some(keys)) = (&self.kept, &self.room_keys) else { return Ok(()) };
        keep_room(path, &KeptRoom { keys: keys.clone(), doors: self.doors.clone() })
    }

    fn show_progress(&mut self) {
        let phase = match &self.status.loading {
            _ if matches!(self.status.connection, Connection::Connecting) => "Calling the relay.".to_owned(),
            _ if matches!(self.status.connection, Connection::Reconnecting { .. }) => {
                "The relay does not answer; trying again.".to_owned()
            }
            _ if self.status.connection == Connection::WaitingForHost => "Waiting for the host.".to_owned(),
            Some(loading) if loading.total.0 > 0 => format!("{} {}", texts().phase.of(loading.phase), loading.total),
            Some(loading) => texts().phase.of(loading.phase).to_owned(),
            None => self.status.plan.as_ref().map(|plan| plan.reason.clone()).unwrap_or_default(),
        };
        if phase != self.phase {
            // The expected time changes with every token, so it is printed only with a new phase.
            match self.status.plan.as_ref().filter(|plan| plan.reason == phase && plan.token_ms > 0.0) {
                Some(plan) => eprintln!("{phase} About {:.0} ms a token expected.", plan.token_ms),
                None => eprintln!("{phase}"),
            }
            self.phase = phase;
        }
    }

    /// Waits until the room can answer.
    ///
    /// # Errors
    /// A sentence on why it cannot.
    pub async fn until_up(&mut self) -> Result<(), String> {
        loop {
            match self.next().await? {
                ToPage::Notice(notice) if notice.level == NoticeLevel::Error => return Err(notice.sentence),
                ToPage::Status(status) => {
                    let Some(plan) = status.plan else { continue };
                    if plan.state == PlanStatus::Up {
                        return Ok(());
                    }
                    let lent = status.peers.iter().any(|member| member.lent.is_some());
                    if let Some(waiting) = plan.waiting.filter(|_| lent && status.peers.len() == 1) {
                        return Err(waiting.sentence);
                    }
                }
                _ => {}
            }
        }
    }

    /// Waits until the relay has the room, and returns its link: nobody could enter by it before.
    ///
    /// # Errors
    /// The relay's sentence on why it does not open a room.
    pub async fn link(&mut self) -> Result<String, String> {
        loop {
            match self.next().await? {
                ToPage::Notice(notice) if notice.level == NoticeLevel::Error => return Err(notice.sentence),
                ToPage::Status(status) => {
                    if let (Some(room), Connection::Connected) = (status.room, status.connection) {
                        return Ok(room.link);
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends the prompt of the options and prints the answer as it arrives.
    ///
    /// # Errors
    /// A sentence on why the answer failed.
    pub async fn ask(&mut self, options: &Options) -> Result<(), String> {
        if options.rounds.several() {
            return self.rounds(&prompt(options), options).await;
        }
        let (text, tokens, timings) = self.chat(REQUEST, prompt(options), true).await?;
        println!();
        if options.bench {
            eprintln!("{}", bench(&text, &tokens, &timings));
            self.report_on_demand()?;
        }
        Ok(())
    }

    /// Prints what experts on demand cost, if this device loads any.
    fn report_on_demand(&self) -> Result<(), String> {
        if let Some(report) = &self.status.on_demand {
            eprintln!("{}", serde_json::to_string(report).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Sends a prompt and waits for the whole answer: text, tokens, timings.
    ///
    /// # Errors
    /// A sentence on why the answer failed.
    pub async fn chat(
        &mut self,
        request: RequestId,
        prompt: PromptRequest,
        print: bool,
    ) -> Result<(String, Vec<u32>, Timings), String> {
        self.page(ToNode::Prompt(PromptRequest { request, ..prompt }));
        let (mut text, mut all) = (String::new(), Vec::new());
        loop {
            match self.next().await? {
                ToPage::Answer { request: of, event } if of == request => match event {
                    AnswerPart::Text { delta, tokens, .. } => {
                        if print {
                            print!("{delta}");
                            // The next print reports a closed pipe.
                            let _ = std::io::stdout().flush();
                        }
                        text.push_str(&delta);
                        all.extend(tokens);
                    }
                    AnswerPart::Recovering(reason) => eprintln!("{reason}"),
                    AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                        return Err(sentence);
                    }
                    AnswerPart::End { timings, .. } => return Ok((text, all, timings)),
                    AnswerPart::Unknown => return Err(texts().answer.question_lost.to_owned()),
                    AnswerPart::Queued(_) | AnswerPart::Reading(..) => {}
                },
                _ => {}
            }
        }
    }

    /// Stays in the room until Ctrl-C, or until the prompt of the options is answered.
    ///
    /// # Errors
    /// A sentence: the room ended, or the answer failed.
    pub async fn stay(&mut self, options: &Options) -> Result<(), String> {
        if options.prompt.is_some() {
            while !is_ready(&self.status, &options.rounds) {
                self.next().await?;
            }
            self.ask(options).await?;
            return self.leave().await;
        }
        let mut served = Served::default();
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                message = self.next() => drop(message?),
                _ = look.tick(), if options.bench => {
                    if let Some(line) = self.status.on_demand.and_then(|report| served.round(report, Instant::now())) {
                        println!("{line}");
                    }
                }
                _ = tokio::signal::ctrl_c() => {
                    if options.bench {
                        self.report_on_demand()?;
                    }
                    return self.leave().await;
                }
            }
        }
    }

    /// Leaves the room and tells the others.
    async fn leave(&mut self) -> Result<(), String> {
        // Without a file for them, a room's keys end with this program.
        let leaving = if self.kept.is_some() { Leaving::ForNow } else { Leaving::ForGood };
        self.page(ToNode::Leave(leaving));
        while self.status.connection != Connection::Idle {
            self.next().await?;
        }
        // Lets the last messages be sent.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}

fn prompt(options: &Options) -> PromptRequest {
    let sampling = Sampling { temperature: options.temperature, seed: options.seed, ..Sampling::default() };
    let content = options.prompt.clone().unwrap_or_default();
    PromptRequest {
        request: REQUEST,
        conversation: "terminal".to_owned(),
        messages: vec![Message { role: Role::User, content }],
        raw: options.raw,
        max_tokens: options.max_tokens,
        sampling,
    }
}

fn bench(text: &str, tokens: &[u32], timings: &Timings) -> String {
    let per_second = |count: u32, millis: f64| if millis > 0.0 { f64::from(count) * 1000.0 / millis } else { 0.0 };
    serde_json::json!({
        "text": text,
        "tokens": tokens,
        "timings": timings,
        "prefill_per_second": per_second(timings.prompt_tokens - timings.reused_tokens, timings.first_token_ms),
        "decode_per_second": per_second(timings.answer_tokens.saturating_sub(1), timings.decode_ms),
    })
    .to_string()
}

/// The default folder for downloaded weights.
fn default_cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME")
        .or_else(|| variable("LOCALAPPDATA"))
        .or_else(|| variable("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("potluck")
}
