//! The command line of `potluck-node`.

mod bench;
mod guesses;
mod holder_changes;
mod options;
mod recording;
mod rounds;
mod secret_file;
mod served;
mod session;
mod study;
mod values;

use std::path::Path;
use std::process::ExitCode;

use potluck_panel::{Bytes, ContributeChoice, DeviceKind, HostChoice, ModelSource, ToNode};
use potluck_swarm::HostCommand;

pub use guesses::{GuessArguments, ShadowFrom};
pub use options::{Command, Options, UsageError, help, parse};
pub use session::Session;
pub use values::{link_fingerprint, parse_bytes, parse_link, with_fingerprint};

use super::open_model_files;
use super::study::check_shadow_of;
use crate::node::Input;
use crate::open::split_names;

/// Runs the program. Errors go to standard error.
pub fn main() -> ExitCode {
    let command = match parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(UsageError::Arguments(error)) => {
            // Fails if the output was closed; nothing can be said then.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
        Err(error) => {
            eprintln!("{error}\n\n{}", help());
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("The program cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let tasks = tokio::task::LocalSet::new();
    let done = tasks.block_on(&runtime, perform(command));
    // Does not wait for blocking reads of files and HTTP.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

async fn perform(command: Command) -> Result<(), String> {
    match command {
        Command::Run { model, options } if options.prompt.is_none() => bench::bench(&model, &options).await,
        Command::Run { model, options } => run(&model, options).await,
        Command::Host { model, relay, keys, visible, options } => {
            host(&model, &relay, keys.as_deref(), visible, options).await
        }
        Command::Join { link, contribute, options } => join(&link, contribute, options).await,
        Command::Trace { model, prompts, out, trace, options } => {
            study::trace(&model, &prompts, &out, &trace, &options).await
        }
        Command::Requantize { input, output, kind } => study::requantize(&input, &output, kind),
    }
}

/// One peer is coordinator, worker and guest, without any network.
async fn run(model: &Path, options: Options) -> Result<(), String> {
    if let Some(ShadowFrom::File(shadow)) = &options.guesses.shadow {
        check_shadow_of(model, shadow).map_err(|error| error.to_string())?;
    }
    let files = open_model_files(model)?;
    let source = ModelSource::File {
        name: files.first().map(|file| file.name()).unwrap_or_default(),
        bytes: Bytes(files.first().map_or(0, |file| file.len())),
    };
    let mut session = Session::start("http://localhost", &options);
    let command = HostCommand {
        source,
        context: options.context,
        kv_cache: options.cache_type,
        arithmetic: options.arithmetic,
        sharing: options.share,
        last_epoch: Default::default(),
        in_advance: true,
        hidden: Vec::new(),
        doors: Default::default(),
        pooling: options.pooling(),
        on_demand: true,
        protect: false,
    };
    session.send(Input::Alone(command, options.budget, files));
    session.until_up().await?;
    session.ask(&options).await
}

async fn host(model: &str, relay: &str, keys: Option<&Path>, visible: bool, options: Options) -> Result<(), String> {
    let path = Path::new(model);
    let (source, files) = if path.is_file() {
        if split_names(model).len() > 1 {
            return Err(
                "A split model on this disk cannot be sent to others. Put it in the relay's models folder.".to_owned()
            );
        }
        let files = open_model_files(path)?;
        let name = files.first().map(|file| file.name()).unwrap_or_default();
        (ModelSource::File { name, bytes: Bytes(files.first().map_or(0, |file| file.len())) }, files)
    } else if model.contains("://") {
        (ModelSource::Link { url: model.to_owned() }, Vec::new())
    } else {
        (ModelSource::Relay { name: model.to_owned() }, Vec::new())
    };
    if options.protect && files.is_empty() {
        return Err(
            "--protect is for a file on this device: everybody can fetch what a relay or a link has.".to_owned()
        );
    }
    let mut session = Session::of_this_device(relay, &options)?;
    let choice = HostChoice {
        model: source,
        budget: options.budget,
        context: options.context,
        cache: options.cache_type,
        arithmetic: options.arithmetic,
        sharing: options.share,
        visible,
        resume: None,
        doors: Default::default(),
        protect: options.protect,
        guesser: Default::default(),
    };
    session.host(choice, files, keys)?;
    let link = session.link().await?;
    let link = format!("{}{link}", relay.trim_end_matches('/'));
    println!("{}", with_fingerprint(link, options.relay_fingerprint));
    session.stay(&options).await
}

async fn join(link: &str, contribute: bool, mut options: Options) -> Result<(), String> {
    let (relay, room, key) = parse_link(link).ok_or_else(|| format!("\"{link}\" is not a room's link."))?;
    let of_link = link_fingerprint(link).map_err(|error| format!("The link's fingerprint is not valid: {error}."))?;
    options.relay_fingerprint = options.relay_fingerprint.or(of_link);
    let mut session = Session::of_this_device(&relay, &options)?;
    session.page(ToNode::Join { room, key });
    if contribute {
        session.page(ToNode::Contribute(ContributeChoice { budget: options.budget }));
    }
    session.stay(&options).await
}

impl Options {
    /// The kind of device this program is.
    pub const KIND: DeviceKind = DeviceKind::Native;
}
