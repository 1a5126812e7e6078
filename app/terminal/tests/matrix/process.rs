//! The program in a process of its own, until it ends.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Whatever hangs is killed after this time, and the test fails.
const GUARD: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Where standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// To the test.
    Read,
    /// To a disk that is full.
    Full,
    /// To a pipe that nobody reads any more.
    Closed,
}

/// What a process has printed so far.
pub type Printed = Arc<Mutex<String>>;

/// A running program.
pub struct Running {
    child: Child,
    pub out: Printed,
    pub err: Printed,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none if it had to be killed.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Starts the program.
pub fn start(folder: &Path, line: &[String], out: Out) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_potluck-node"));
    // Without a folder for its sockets, a graphics driver complains.
    command.args(line).env("XDG_RUNTIME_DIR", folder).env_remove("POTLUCK_LOG").stdin(Stdio::null());
    command.current_dir(folder).stderr(Stdio::piped());
    match out {
        Out::Read | Out::Closed => command.stdout(Stdio::piped()),
        Out::Full => command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap()),
    };
    let mut child = command.spawn().unwrap();
    let (printed_out, printed_err) = (Printed::default(), Printed::default());
    let mut readers = vec![read(child.stderr.take().unwrap(), printed_err.clone())];
    match out {
        Out::Read => readers.push(read(child.stdout.take().unwrap(), printed_out.clone())),
        Out::Closed => drop(child.stdout.take()),
        Out::Full => {}
    }
    Running { child, out: printed_out, err: printed_err, readers }
}

fn read(mut from: impl Read + Send + 'static, into: Printed) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    })
}

impl Running {
    /// Waits until it has printed this to either output. False if it ends before.
    pub fn until(&mut self, text: &str) -> bool {
        self.until_times(text, 1)
    }

    /// The same, so often to one output.
    pub fn until_times(&mut self, text: &str, times: usize) -> bool {
        let begin = Instant::now();
        loop {
            let has = |printed: &Printed| printed.lock().unwrap().matches(text).count() >= times;
            if has(&self.out) || has(&self.err) {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() || begin.elapsed() > GUARD {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Sends a signal: `INT`, `TERM` or `KILL`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-s", name, &id]).status().unwrap();
    }

    /// Waits until it ends. What does not end is killed.
    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if begin.elapsed() > GUARD => {
                    self.child.kill().unwrap();
                    self.child.wait().unwrap();
                    break None;
                }
                None => std::thread::sleep(LOOK),
            }
        };
        for reader in std::mem::take(&mut self.readers) {
            reader.join().unwrap();
        }
        let printed = |printed: &Printed| printed.lock().unwrap().clone();
        Ended { code, out: printed(&self.out), err: printed(&self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
