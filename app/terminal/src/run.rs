//! `potluck-node run`: one device, without a network.

use std::path::PathBuf;
use std::rc::Rc;

use potluck_node::compute::ShadowSource;
use potluck_node::native::check_shadow_of;
use potluck_node::node::Input;
use potluck_node::platform::LocalFile;
use potluck_panel::{Bytes, ModelSource};
use potluck_plan::Arithmetic;
use potluck_swarm::HostCommand;

use crate::bench::BenchOptions;
use crate::chat;
use crate::chosen_model::ChosenModel;
use crate::failure::Failure;
use crate::options::{AccessOptions, AnswerOptions, Contribution, DeviceOptions, GuessArguments, ModelOptions};
use crate::session::Session;
use crate::setup::Setup;
use crate::signals::Stop;
use crate::values::parse_arithmetic;
use crate::waiting::Purpose;

/// Options of `run`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct RunOptions {
    /// The model: a GGUF file (of a split model the first one), a link to such a file or to a repository of them, for example
    /// hf.co/OWNER/REPO:Q4_K_M, or the name of a stored model, as list shows it
    pub model: PathBuf,
    /// What is asked.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// What is measured.
    #[command(flatten)]
    pub benchmark: BenchOptions,
    /// The model's context.
    #[command(flatten)]
    pub model_options: ModelOptions,
    /// How to compute matrix products: exact (32-bit floats), packed (vectors quantized to 8 bits, usually faster) or matrix
    /// (prompts in 16-bit floats, on the matrix units that some GPUs have)
    #[arg(long, value_name = "HOW", default_value_t, value_parser = parse_arithmetic, help_heading = "Model")]
    pub arithmetic: Arithmetic,
    /// Who guesses experts.
    #[command(flatten)]
    pub guesses: GuessArguments,
    /// What the model may take of this device.
    #[command(flatten)]
    pub contribution: Contribution,
    /// This device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// As whom a link's file is fetched.
    #[command(flatten)]
    pub access: AccessOptions,
}

impl RunOptions {
    /// How the node of this command is set up.
    ///
    /// # Errors
    /// There is no folder for what it downloads.
    pub fn setup(&self) -> Result<Setup, Failure> {
        self.setup_for(&self.model.to_string_lossy())
    }

    /// The same for a model of this link.
    fn setup_for(&self, link: &str) -> Result<Setup, Failure> {
        let network = self.access.network_of_links(link);
        let mut setup = Setup::alone(&network, &self.device, self.arithmetic)?;
        setup.guess(&self.guesses, &self.contribution);
        Ok(setup)
    }

    /// What the model's text means, and how the node is set up for it.
    ///
    /// # Errors
    /// It means nothing, or there is no folder for what is downloaded.
    pub(crate) async fn chosen(&self) -> Result<(Setup, ChosenModel), Failure> {
        let setup = self.setup()?;
        let chosen = ChosenModel::of_path(&self.model, &setup.platform).await?;
        Ok(match &chosen {
            ChosenModel::File(_) => (setup, chosen),
            ChosenModel::Link(url) => (self.setup_for(url)?, chosen),
        })
    }

    /// Opens a model's file and waits until it can answer.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn open(&self, session: &mut Session) -> Result<(), Failure> {
        self.open_chosen(session, ChosenModel::File(self.model.clone())).await
    }

    async fn open_chosen(&self, session: &mut Session, chosen: ChosenModel) -> Result<(), Failure> {
        session.set_purpose(Purpose::Alone);
        if let (ChosenModel::File(base), Some(ShadowSource::File(shadow))) = (&chosen, &self.guesses.shadow) {
            check_shadow_of(base, shadow).map_err(|error| Failure::Failed(error.to_string()))?;
        }
        let (source, files) = chosen.open()?;
        send_alone(session, source, files, &self.model_options, self.arithmetic, self.contribution.budget);
        session.until_up().await
    }
}

/// Opens a model on this device alone.
pub(crate) fn send_alone(
    session: &Session,
    source: ModelSource,
    files: Vec<Rc<dyn LocalFile>>,
    options: &ModelOptions,
    arithmetic: Arithmetic,
    budget: u64,
) {
    let of_files = HostCommand::of(source, options.context);
    let command = HostCommand { kv_cache: options.cache_type, arithmetic, ..of_files };
    session.send(Input::Alone(command, budget, files));
}

/// The source of a model in these files.
pub(crate) fn source_of(files: &[Rc<dyn LocalFile>]) -> ModelSource {
    ModelSource::File {
        name: files.first().map(|file| file.name()).unwrap_or_default(),
        bytes: Bytes(files.first().map_or(0, |file| file.len())),
    }
}

/// Answers the prompt, measures the model, or chats with whoever is at the terminal.
///
/// # Errors
/// What failed.
pub(crate) async fn run(options: &RunOptions, stop: &Stop) -> Result<(), Failure> {
    let question = match options.answer.question() {
        None if options.benchmark.bench => return crate::bench::bench(options, stop).await,
        None if !chat::is_at_terminal() => Some(chat::question_of_input(&options.answer, stop).await?),
        question => question,
    };
    let (setup, chosen) = options.chosen().await?;
    let mut session = Session::start(setup.stopped_by(stop));
    options.open_chosen(&mut session, chosen).await?;
    match question {
        Some(question) => crate::ask(&mut session, question, options.benchmark.bench).await.map(|_| ()),
        None => chat::chat(&mut session, &options.answer).await,
    }
}
