//! The relay as a program.
#![forbid(unsafe_code)]

mod banner;
mod log;
mod options;

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
    let open = options.open;
    let relay = Relay::start(options.config()).await?;
    let local = format!("http://localhost:{}", relay.address().port());
    print!("{}", banner::text(&local, &relay.addresses(), relay.missing()));
    if open {
        banner::open_browser(&local);
    }
    relay.run(stop_signal()).await;
    tracing::info!("stopped");
    println!("Stopped.");
    Ok(())
}

/// Resolves on Ctrl-C and, on Unix, on the signal that stops a service.
async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without a handler the system still ends the program on Ctrl-C.
    if interrupt.await.is_err() {
        std::future::pending::<()>().await;
    }
}
