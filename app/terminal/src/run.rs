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
use crate::failure::Failure;
use crate::model_path;
use crate::options::{AnswerOptions, Contribution, DeviceOptions, GuessArguments, ModelOptions};
use crate::session::Session;
use crate::setup::Setup;
use crate::signals::Stop;
use crate::values::parse_arithmetic;
use crate::waiting::Purpose;

/// Options of `run`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct RunOptions {
    /// The model: a GGUF file. If the model is split into several files, name the first one
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
}

impl RunOptions {
    /// How the node of this command is set up.
    ///
    /// # Errors
    /// There is no folder for what it downloads.
    pub fn setup(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::alone(&self.device, self.arithmetic)?;
        setup.guess(&self.guesses, &self.contribution);
        Ok(setup)
    }

    /// Opens the model and waits until it can answer.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn open(&self, session: &mut Session) -> Result<(), Failure> {
        session.set_purpose(Purpose::Alone);
        let files = model_path::open(&self.model)?;
        if let Some(ShadowSource::File(shadow)) = &self.guesses.shadow {
            check_shadow_of(&self.model, shadow).map_err(|error| Failure::Failed(error.to_string()))?;
        }
        send_alone(session, files, &self.model_options, self.arithmetic, self.contribution.budget);
        session.until_up().await
    }
}

/// Opens a model on this device alone.
pub(crate) fn send_alone(
    session: &Session,
    files: Vec<Rc<dyn LocalFile>>,
    options: &ModelOptions,
    arithmetic: Arithmetic,
    budget: u64,
) {
    let of_files = HostCommand::of(source_of(&files), options.context);
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
    let mut session = Session::start(options.setup()?.stopped_by(stop));
    options.open(&mut session).await?;
    match question {
        Some(question) => crate::ask(&mut session, question, options.benchmark.bench).await.map(|_| ()),
        None => chat::chat(&mut session, &options.answer).await,
    }
}
