//! The relay in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Mutex;

/// A relay in a process of its own.
pub struct Program {
    child: Child,
    /// What it said at the start.
    pub said: String,
    pub address: SocketAddr,
    log: Mutex<BufReader<ChildStderr>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program without any variables that are meant for it.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_potluck-relay"));
    command.env_remove("RUST_LOG");
    command
}

impl Program {
    /// Starts it on a free port.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::run(command().args(["--port", "0", "--data"]).arg(data).args(arguments))
    }

    /// Waits until it says where it listens.
    pub fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Mutex::new(BufReader::new(child.stderr.take().unwrap()));
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !said.contains("Ctrl-C") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        // What it says at its end has a place to go.
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        let port = said.split("http://localhost:").nth(1).and_then(|rest| rest.lines().next());
        let port = port.unwrap().parse().unwrap();
        Self { child, said, address: (Ipv4Addr::LOCALHOST, port).into(), log }
    }

    /// Ends it; its log.
    pub fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut text = String::new();
        self.log.lock().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Reads on in its log until a line has these words.
    pub fn until_logged(&self, words: &str) {
        let mut text = String::new();
        while !text.contains(words) {
            assert!(self.log.lock().unwrap().read_line(&mut text).unwrap() > 0, "{words:?} in {text}");
        }
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}
