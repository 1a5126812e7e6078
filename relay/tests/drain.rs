//! What an operator tells a running relay by signals: drain, stop, read the certificate again.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;

use common::{Keys, Program, Running, TIMEOUT, connector, folder, request};
use potluck_relay_api::{Control, Refusal};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_rustls::rustls::pki_types::ServerName;

/// A grace that no test waits for.
const LONG: &str = "3000";

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_relay_that_drains_keeps_its_rooms_and_takes_no_new_ones() {
    let mut program = Program::start(&folder("drain"), &["--local", "--drain", LONG]);
    let relay = Running::at(program.address);
    let (known, new) = (Keys::new(1), Keys::new(2));
    let mut host = relay.own(&known).await;
    assert_eq!(relay.get("/readyz").await.text(), "ready\n");

    program.signal(Signal::TERM);
    until("it is not ready", async || relay.get("/readyz").await.status == 503).await;
    assert_eq!(relay.get("/readyz?draining=404").await.status, 404, "HAProxy asks like this");
    assert_eq!(relay.get("/healthz").await.status, 200, "it lives");
    assert_eq!(relay.refused(&new.id(), |nonce| new.owner(nonce)).await, Refusal::ShuttingDown);
    let mut guest = relay.join(&known).await;
    assert_eq!(host.control().await, Control::Join { route: guest.route, owner: false });

    program.signal(Signal::TERM);
    for member in [&mut host, &mut guest] {
        assert!(matches!(member.control().await, Control::Shutdown { .. }));
        assert_eq!(member.closed().await, 1001);
    }
    assert!(program.ended().success(), "it was asked to");
}

#[tokio::test]
async fn without_a_grace_it_stops_at_once() {
    let mut program = Program::start(&folder("stop"), &["--local"]);
    let mut host = Running::at(program.address).own(&Keys::new(1)).await;
    program.signal(Signal::TERM);
    assert!(matches!(host.control().await, Control::Shutdown { .. }));
    assert!(program.ended().success());
}

#[tokio::test]
async fn a_certificate_is_read_again_and_a_broken_one_is_not_taken() {
    let made = ["reload-a", "reload-b"].map(folder);
    for data in &made {
        // Each makes an authority and a certificate.
        drop(Program::start(data, &[]));
    }
    let data = folder("reload");
    let used = data.join("used.pem");
    let put = |from: &Path| std::fs::copy(from.join("relay.pem"), &used).map(drop).unwrap();
    put(&made[0]);
    let used_name = used.to_str().unwrap();
    let program = Program::start(&data, &["--tls-cert", used_name, "--tls-key", used_name, "--log", "info"]);
    let trusts = async |data: &Path| {
        let authority = std::fs::read(data.join("authority.pem")).unwrap();
        let stream = TcpStream::connect(program.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let Ok(stream) = connector(&authority).connect(name, stream).await else { return false };
        request(stream, "GET", "/readyz", "localhost", &[], "").await.status == 200
    };
    assert!(trusts(&made[0]).await && !trusts(&made[1]).await);
    put(&made[1]);
    program.signal(Signal::HUP);
    until("the new certificate is used", async || trusts(&made[1]).await).await;

    std::fs::write(&used, "nothing of use").unwrap();
    program.signal(Signal::HUP);
    program.until_logged("the certificate before stays in use");
    assert!(trusts(&made[1]).await);
}
