//! What the system tells the program: to stop, to drain, to read its certificate again.

use std::time::Duration;

use potluck_relay::Operator;

/// Resolves when the relay is to stop: on Ctrl-C at once, and on the signal that stops a service after it has drained for `grace`.
/// Until then it reloads when it is asked to.
#[cfg(unix)]
pub async fn until_stop(operator: Operator, grace: Duration) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        // Without a handler the system still ends the program.
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => return,
            _ = terminate.recv() => break,
            _ = hangup.recv() => reload(operator.clone()).await,
        }
    }
    if grace.is_zero() {
        return;
    }
    operator.drain();
    tokio::select! {
        () = tokio::time::sleep(grace) => {}
        // Whoever asks twice does not want to wait.
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(unix)]
async fn reload(operator: Operator) {
    match tokio::task::spawn_blocking(move || operator.reload()).await {
        Ok(Ok(true)) => tracing::info!("the certificate was read again"),
        Ok(Ok(false)) => tracing::info!("there is no certificate of the owner's to read again"),
        Ok(Err(error)) => tracing::error!("the certificate before stays in use: {error}"),
        Err(_) => {}
    }
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
pub async fn until_stop(_: Operator, _: Duration) {
    // Without a handler the system still ends the program on Ctrl-C.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
