//! The relay as a program.
#![forbid(unsafe_code)]

mod banner;
mod log;
mod options;
mod settings;
mod signals;

use std::process::ExitCode;

use potluck_relay::{Relay, StartError};

use options::Options;
use settings::SettingsError;

/// The exit code of `clap` for wrong options, used for wrong settings as well.
const WRONG_SETTINGS: u8 = 2;
/// Another relay has the data folder.
const FOLDER_IN_USE: u8 = 3;

fn main() -> ExitCode {
    let mut options = match settings::parse(std::env::args_os().collect(), |name| std::env::var_os(name)) {
        Ok(options) => options,
        Err(SettingsError::Usage(error)) => error.exit(),
        Err(error) => {
            eprintln!("potluck-relay: {error}");
            return ExitCode::from(WRONG_SETTINGS);
        }
    };
    log::start(options.log.take(), options.log_format);
    if options.check {
        return check(options);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("potluck-relay: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(serve(options));
    // Does not wait for reads of files whose downloads were cut off.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("potluck-relay: {error}");
            match error.downcast_ref() {
                Some(StartError::FolderInUse { .. }) => ExitCode::from(FOLDER_IN_USE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Says whether the relay could start.
fn check(options: Options) -> ExitCode {
    match Relay::check(&options.relay_config()) {
        Ok(missing) => {
            missing.iter().for_each(|one| println!("{one}"));
            println!("The options are right.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("potluck-relay: {error}");
            ExitCode::from(WRONG_SETTINGS)
        }
    }
}

async fn serve(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let (open, grace) = (options.open, options.drain_grace());
    let relay = Relay::start(options.relay_config()).await?;
    let local = format!("http://localhost:{}", relay.address().port());
    print!("{}", banner::text(&local, &relay.addresses(), relay.missing()));
    if open {
        banner::open_browser(&local);
    }
    let operator = relay.operator();
    relay.run(signals::until_stop(operator, grace)).await;
    tracing::info!("stopped");
    println!("Stopped.");
    Ok(())
}
