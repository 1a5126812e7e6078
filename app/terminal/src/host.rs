//! `potluck-node host`: opens a room.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use potluck_node::open::split_names;
use potluck_node::platform::{LocalFile, Platform};
use potluck_panel::{DeputyChoice, Ends, HostChoice, InviteKind, ModelSource, Sharing};
use potluck_plan::{Arithmetic, Hedging, Pooling, WireType};
use potluck_text::texts;

use crate::failure::Failure;
use crate::link::RoomLink;
use crate::model_link;
use crate::model_path;
use crate::options::{AnswerOptions, Contribution, DeviceOptions, GuessArguments, ModelOptions, NetworkOptions};
use crate::output::{print, say};
use crate::printable::Printable;
use crate::run::source_of;
use crate::session::Session;
use crate::setup::Setup;
use crate::signals::Stop;
use crate::values::{
    parse_deputy, parse_hedging, parse_invite, parse_relay, parse_rooms_arithmetic, parse_sharing, parse_wire,
};
use crate::waiting::Purpose;

/// Options of `host`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct HostOptions {
    /// The model: a GGUF file, the name of a model on the relay, or a link: to a GGUF file, or to a repository of such files, for
    /// example hf.co/OWNER/REPO:Q4_K_M
    pub model: String,
    /// The relay's address, with http:// or https://
    #[arg(long, value_name = "URL", value_parser = parse_relay)]
    pub relay: String,
    /// Keep the room's keys, bans and invites in this file, so that you can open the same room again. If the file already holds a
    /// room, that room is opened
    #[arg(long, value_name = "FILE")]
    pub room_keys: Option<PathBuf>,
    /// Log to this file who came in, who was refused, removed or banned, and who sent wrong results. The log is JSON if the file's
    /// name ends in .json, and text otherwise
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Give the room of --room-keys another link before it opens. Every device then needs the new link, even if it was in the room
    /// before: the earlier link and all invites let in nobody
    #[arg(long, requires = "room_keys")]
    pub replace_link: bool,
    /// List the room on the relay's start page, so that people see that it is open. They still need its link to come in, because
    /// this program lets nobody in from the list
    #[arg(long)]
    pub visible: bool,
    /// Protect a model file that you do not want to give away: other devices get only the experts that they are to hold, some bytes
    /// beside them, and the file's header. This device computes everything else. If the
    /// model has no experts, no other device takes part in computing it
    #[arg(long)]
    pub protect: bool,
    /// Keep the words of conversations on this device: it computes the first and the last block, and other devices get only numbers
    /// from between these blocks, no text. A device that has the whole model, or downloads it, can still compute much or all of the
    /// text from these numbers. If other devices take part, each token passes through this device twice. With --room-keys, the
    /// choice is kept with the room: a room that keeps its words still does so when it is opened again
    #[arg(long)]
    pub keep_words: bool,
    /// How to share the work: fastest (whatever makes tokens come fastest), everyone (each device gets a part) or experts (the
    /// model's experts are spread over as many devices as possible)
    #[arg(long, value_name = "WHO", default_value = "fastest", value_parser = parse_sharing)]
    pub share: Sharing,
    /// Who hosts the room if this program ends or loses its connection: nobody (the room waits for it) or anyone (another device
    /// that takes part fully: answers go on there). That device gets the room's keys and all conversations. The model must be one of
    /// the relay or of a link
    #[arg(long, value_name = "WHO", default_value = "nobody", value_parser = parse_deputy)]
    pub deputy: DeputyChoice,
    /// Also print the link of an invite, which lets in one device within a day: chat (it may ask questions, as `serve` does) or
    /// contribute (it may lend its GPU as well). An invite of --room-keys that is still open is printed again
    #[arg(long, value_name = "WHAT", value_parser = parse_invite)]
    pub invite: Option<InviteKind>,
    /// The model's context.
    #[command(flatten)]
    pub model_options: ModelOptions,
    /// How to compute matrix products: exact (32-bit floats) or packed (vectors quantized to 8 bits, usually faster) [default: packed
    /// on a GPU, otherwise exact]
    #[arg(long, value_name = "HOW", value_parser = parse_rooms_arithmetic, help_heading = "Model")]
    pub arithmetic: Option<Arithmetic>,
    /// How experts are spread over devices.
    #[command(flatten)]
    pub pooling: PoolingOptions,
    /// Who guesses experts.
    #[command(flatten)]
    pub guesses: GuessArguments,
    /// What is asked.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Print the answer's timings as JSON to standard error
    #[arg(long, requires = "prompt", help_heading = "Question")]
    pub bench: bool,
    /// What this device contributes.
    #[command(flatten)]
    pub contribution: Contribution,
    /// This device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Whom this program talks to.
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// How experts are spread over devices, where they are.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Experts on several devices")]
pub struct PoolingOptions {
    /// Number of devices that hold a copy of each expert, as far as their memory allows
    #[arg(long, value_name = "N", default_value_t = Pooling::default().replicas, value_parser = clap::value_parser!(u8).range(1..))]
    pub replicas: u8,
    /// How many holders of an expert are asked.
    #[arg(long, help = hedging_help(), value_name = "HOW", default_value = "adaptive", value_parser = parse_hedging)]
    pub hedging: Hedging,
    /// Number format of vectors to and from devices that hold experts: f32 (exact), or f16, bf16 or int8 (fewer bytes, rounded)
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = parse_wire)]
    pub wire: WireType,
    /// Let devices take part whose memory is too small for all experts that they are to hold: they load an expert when it is needed
    #[arg(long)]
    pub on_demand: bool,
}

fn hedging_help() -> String {
    format!(
        "How many of the devices that hold an expert to ask: off (one, and another only if it is very late), adaptive (another one \
         if the first takes longer than usual), or a number from 1 to {} (that many at once)",
        Hedging::MAX_COPIES
    )
}

/// What is hosted: where it comes from, and the files on this disk.
struct Hosted {
    source: ModelSource,
    files: Vec<Rc<dyn LocalFile>>,
}

impl HostOptions {
    /// How the node of this command is set up.
    ///
    /// # Errors
    /// The file with the device's key cannot be read or written.
    pub fn setup(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::of_this_device(&self.network, &self.relay, &self.device)?;
        setup.guess(&self.guesses, &self.contribution);
        setup.node.on_demand = self.pooling.on_demand;
        Ok(setup)
    }

    /// Opens the room and prints its link.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn open(&self, session: &mut Session) -> Result<(), Failure> {
        session.set_purpose(if self.answer.prompt.is_some() { Purpose::HostAndAsk } else { Purpose::Host });
        let Hosted { source, files } = self.hosted()?;
        if self.deputy != DeputyChoice::Nobody && !files.is_empty() {
            return Err(Failure::Usage(texts().terminal.deputy_needs_source().to_owned()));
        }
        if self.protect && files.is_empty() {
            return Err(Failure::Usage(texts().terminal.protect_needs_file().to_owned()));
        }
        let PoolingOptions { replicas, hedging, wire, on_demand: _ } = self.pooling;
        let choice = HostChoice {
            model: source,
            budget: self.contribution.budget,
            context: self.model_options.context,
            cache: self.model_options.cache_type,
            arithmetic: self.arithmetic,
            sharing: self.share,
            ends: if self.keep_words { Ends::OnHost } else { Ends::Anywhere },
            visible: self.visible,
            resume: None,
            doors: Default::default(),
            protect: self.protect,
            guesser: Default::default(),
            pooling: Pooling { replicas, hedging, wire },
            deputy: self.deputy,
            term: Default::default(),
        };
        session.host(choice, files, self.room_keys.as_deref())?;
        session.write_log_to(self.log.as_deref())?;
        if self.replace_link {
            session.renew_link();
        }
        let path = session.link().await?;
        if self.visible {
            say(texts().terminal.visible_admits_nobody());
        }
        self.print_link(&path)?;
        match self.invite {
            Some(kind) => self.print_link(&session.invite(kind).await?),
            None => Ok(()),
        }
    }

    /// The whole of a link that has this path and fragment.
    fn print_link(&self, path: &str) -> Result<(), Failure> {
        let link = format!("{}{path}", self.relay.trim_end_matches('/'));
        match (link.parse::<RoomLink>(), self.network.relay_fingerprint) {
            (Ok(link), fingerprint @ Some(_)) => {
                print(&Printable::lines(&format!("{}\n", RoomLink { fingerprint, ..link })))
            }
            _ => print(&Printable::lines(&format!("{link}\n"))),
        }
    }

    /// The same options with the address of a file where the model is a link as people have them.
    ///
    /// # Errors
    /// It is the link of a repository whose files cannot be listed, or of which one is to be chosen.
    async fn with_link_read(self, platform: &Platform) -> Result<Self, Failure> {
        let model =
            if Path::new(&self.model).exists() { None } else { model_link::address(&self.model, platform).await? };
        Ok(Self { model: model.unwrap_or(self.model.clone()), ..self })
    }

    fn hosted(&self) -> Result<Hosted, Failure> {
        if model_path::is_path(&self.model) {
            let files = model_path::open(Path::new(&self.model))?;
            if split_names(&self.model).len() > 1 {
                return Err(Failure::Failed(texts().terminal.split_file().to_owned()));
            }
            return Ok(Hosted { source: source_of(&files), files });
        }
        let source = if self.model.contains("://") {
            ModelSource::Link { url: self.model.clone() }
        } else {
            ModelSource::Relay { name: self.model.clone() }
        };
        Ok(Hosted { source, files: Vec::new() })
    }
}

/// Opens the room and stays in it.
///
/// # Errors
/// What failed.
pub(crate) async fn host(options: &HostOptions, stop: &Stop) -> Result<(), Failure> {
    let setup = options.setup()?.stopped_by(stop);
    let options = &options.clone().with_link_read(&setup.platform).await?;
    let mut session = Session::start(setup);
    let opened = options.open(&mut session).await;
    crate::stay(&mut session, opened, options.answer.question(), options.bench).await
}
