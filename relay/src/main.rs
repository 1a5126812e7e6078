//! The relay as a program.

mod greeting;
mod options;

use std::process::ExitCode;

use potluck_relay::Relay;

use options::Options;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args_os()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("potluck-relay: {error}\nTry potluck-relay --help.");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("potluck-relay: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(serve(options));
    // Files that are being read for downloads that were cut off need not be waited for.
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
    let relay = Relay::start(options.config).await?;
    let local = format!("http://localhost:{}", relay.address().port());
    print!("{}", greeting::text(&local, relay.addresses()));
    if options.open {
        greeting::open_browser(&local);
    }
    relay.run(stop_signal()).await?;
    println!("Stopped.");
    Ok(())
}

/// Resolves on Ctrl-C, and where there is one on the signal by which a system stops its services.
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
    // Without a handler the program still ends by the system's own way.
    if interrupt.await.is_err() {
        std::future::pending::<()>().await;
    }
}
