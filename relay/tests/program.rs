//! The program: what it says at the start, and what stands in its log.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Instant;

use common::{Keys, Program, Running, TIMEOUT, command, folder};
use potluck_relay_api::{Binary, EntryProof, Refusal};

/// It said "Potluck is ready" and nothing else.
#[test]
fn what_is_missing_is_said_at_the_start() {
    let data = folder("program");
    let none = data.join("none");
    let none = none.to_str().unwrap();
    let program = Program::start(&data, &["--local", "--page", none, "--models", none]);
    assert!(!program.said.contains("Potluck is ready"), "{}", program.said);
    assert!(program.said.contains("no page to show") && program.said.contains("cargo xtask run"), "{}", program.said);
    assert!(program.said.contains("none: the folder does not exist"), "{}", program.said);
    assert_eq!(program.end(), "", "the log is quiet unless something fails");
}

#[test]
fn a_check_finds_mistakes_and_starts_nothing() {
    let data = folder("check");
    let file = data.join("relay.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = command().arg("--check").arg("--config").arg(&file).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let folder = data.join("kept");
    let rest = format!("page = \"none\"\ndata = {folder:?}\n");
    let (code, said) = check(&rest);
    assert!(code == Some(0) && said.contains("none") && said.contains("The options are right."), "{said}");
    for (line, complaint) in [
        ("port = 70000", "relay.toml, line 3: port: invalid value '70000'"),
        ("host = \"a b\"", "--host \"a b\" is not a name that a certificate can have"),
        ("tls-cert = \"/no/cert\"\ntls-key = \"/no/key\"", "cannot read /no/cert"),
    ] {
        let (code, said) = check(&format!("{rest}{line}\n"));
        assert!(code == Some(2) && said.contains(complaint), "{code:?} {said}");
    }
    assert!(!folder.exists(), "no certificate was made");
}

/// They would renew the certificate against each other. Without a certificate of its own, a relay shares only hashes.
#[test]
fn a_second_relay_does_not_use_the_same_keys() {
    let data = folder("locked");
    let second =
        |arguments: &[&str]| command().args(["--port", "0", "--data"]).arg(&data).args(arguments).output().unwrap();
    let first = Program::start(&data, &[]);
    let refused = second(&[]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("another relay (process ") && said.contains("with --data"), "{said}");
    Program::start(&data, &["--local"]).end();
    // SIGKILL: nobody unlocks anything.
    first.end();
    Program::start(&data, &[]).end();
}

#[test]
fn a_log_in_json_has_an_object_in_each_line() {
    let data = folder("json");
    let log = Program::start(&data, &["--local", "--log", "info", "--log-format", "json"]).end();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["message"] == "listening" && line["level"] == "INFO"), "{log}");
}

#[tokio::test]
async fn even_the_longest_log_names_no_room_no_key_and_no_client() {
    let (data, models) = (folder("log"), folder("log-models"));
    std::fs::write(models.join("a.gguf"), vec![7; 1000]).unwrap();
    let program = Program::start(&data, &["--log", "trace", "--models", models.to_str().unwrap()]);
    let relay = Running::at(program.address);
    let keys = Keys::listed(1, "Kitchen");
    let mut host = relay.own(&keys).await;
    let guest = relay.join(&keys).await;
    let client = guest.socket.get_ref().local_addr().unwrap();
    host.send(guest.route, b"hello").await;
    let unknown = relay.refused(&Keys::new(2).id(), |nonce| Keys::new(2).link(nonce)).await;
    assert_eq!(unknown, Refusal::NoSuchRoom);
    let deadline = Instant::now() + TIMEOUT;
    while relay.get_with("/models/a.gguf.b3", &[("X-Forwarded-For", "203.0.113.9")]).await.status != 200 {
        assert!(Instant::now() < deadline, "it is hashed in time");
    }
    relay.get("/nothing-of-this-name").await;
    assert_eq!(relay.get("/certificate").await.status, 200, "it has an authority");
    let kept = std::fs::read_to_string(data.join("authority.pem")).unwrap();
    let private = kept.lines().nth(1).unwrap().to_owned();
    let public = match keys.owner(&Binary([0; 32])) {
        EntryProof::Owner { key, .. } => serde_json::to_string(&key).unwrap(),
        other => panic!("{other:?}"),
    };
    drop((host, guest));
    let log = program.end();
    assert!(log.contains("listening") && log.contains("a.gguf is hashed"), "there is a log: {log}");
    let secrets = [keys.id(), Keys::new(2).id(), public.trim_matches('"').to_owned(), client.to_string(), private];
    let others = ["Kitchen", "203.0.113.9", "127.0.0.1", "nothing-of-this-name"].map(str::to_owned);
    for secret in secrets.iter().chain(&others) {
        assert!(!log.contains(secret), "{secret} stands in the log: {log}");
    }
}
