//! The relay as a program.
#![forbid(unsafe_code)]

mod banner;
mod log;
mod options;
mod signals;

use std::process::ExitCode;

use clap::Parser;
use potluck_relay::Relay;

use options::Options;

fn main() -> ExitCode {
    let mut options = Options::parse();
    log::start(options.log.take());
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
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let (open, grace) = (options.open, options.drain_grace());
    let relay = Relay::start(options.config()).await?;
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
