//! Running programs, with a line that says which one.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::root;

/// A program, started in the repository's root.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(root());
    command
}

/// The program called `name`, if there is one on the path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|candidate| candidate.is_file())
}

/// Runs a command; an error if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("+ {line}");
    let status = command.status().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}

/// Runs a command beside others: says when it begins and ends, and shows its output only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("+ {line} (in the background)");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start: {line}"))?;
    if !output.status.success() {
        bail!("failed ({}): {line}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    println!("+ {line}: done");
    Ok(())
}

/// Runs a command, shows its output, and gives back the lines that `keep` wants, even if it fails.
pub fn run_keeping(command: &mut Command, keep: impl Fn(&str) -> bool) -> (Vec<String>, Result<()>) {
    let mut kept = Vec::new();
    let result = stream(command, |line| {
        println!("{line}");
        if keep(line) {
            kept.push(line.to_owned());
        }
    });
    (kept, result)
}

fn stream(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let line = line(command);
    println!("+ {line}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start: {line}"))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).split(b'\n') {
            on_line(&String::from_utf8_lossy(&text?));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}

/// Runs a command and gives back what it prints; an error if it fails. Its errors are shown at once.
pub fn lines_of(command: &mut Command) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    stream(command, |line| lines.push(line.to_owned()))?;
    Ok(lines)
}

/// Runs a command and gives back what it printed, errors among the rest, and how it ended.
pub fn output_of(command: &mut Command) -> Result<(String, ExitStatus)> {
    let line = line(command);
    let run = |command: &mut Command| {
        let (mut child, mut reader) = spawn_piped(command)?;
        let mut output = Vec::new();
        reader.read_to_end(&mut output)?;
        std::io::Result::Ok((String::from_utf8_lossy(&output).into_owned(), child.wait()?))
    };
    run(command).with_context(|| format!("cannot run: {line}"))
}

/// How a program ended that was given a time.
#[derive(Debug, PartialEq)]
pub enum Ended {
    Itself(ExitStatus),
    /// Its time was over.
    Killed,
}

/// The same, but the command is killed if its output has not ended after this time.
pub fn output_within(patience: Duration, command: &mut Command) -> Result<(String, Ended)> {
    let line = line(command);
    let run = |command: &mut Command| {
        let (mut child, reader) = spawn_piped(command)?;
        let (parts, until) = (read_beside(reader), Instant::now() + patience);
        let mut output = Vec::new();
        let ended = loop {
            match parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => output.extend(part?),
                Err(RecvTimeoutError::Disconnected) => break Ended::Itself(child.wait()?),
                Err(RecvTimeoutError::Timeout) => {
                    child.kill()?;
                    child.wait()?;
                    break Ended::Killed;
                }
            }
        };
        std::io::Result::Ok((String::from_utf8_lossy(&output).into_owned(), ended))
    };
    run(command).with_context(|| format!("cannot run: {line}"))
}

/// Starts a command; all that it prints can be read in one place.
fn spawn_piped(command: &mut Command) -> std::io::Result<(Child, PipeReader)> {
    let (reader, writer) = std::io::pipe()?;
    let child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command keeps the ends to write to, and the output ends when the last of them is closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((child, reader))
}

/// Reads in a thread of its own, which nobody waits for: what a killed program has started may keep its output open.
fn read_beside(mut reader: PipeReader) -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, parts) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let part = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => Ok(buffer[..bytes].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_over = part.is_err();
            if sender.send(part).is_err() || is_over {
                break;
            }
        }
    });
    parts
}

/// What a command prints, or nothing if it fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn within(patience: Duration, script: &str) -> (String, Ended) {
        output_within(patience, command("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        assert_eq!(within(Duration::ZERO, "exec sleep 600").1, Ended::Killed);
    }

    #[test]
    fn a_program_that_ends_in_time_tells_how() {
        let (output, ended) = within(Duration::from_secs(600), "echo out; echo err >&2; exit 3");
        assert_eq!(output, "out\nerr\n");
        assert!(matches!(ended, Ended::Itself(status) if status.code() == Some(3)), "{ended:?}");
    }
}
