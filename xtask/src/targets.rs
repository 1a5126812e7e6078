//! Runs the tests of all crates. Cargo runs one target after the other; many of them have one long test, or wait for timers, and
//! leave cores idle. Here two run at a time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, thread};

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;

use crate::shell::{Ended, command, lines_of, output_within};
use crate::test::Closing;
use crate::tools::cargo;
use crate::{build, root};

/// Programs that run at a time. Each has a thread for every core, so more of them would only make tests wait for each other.
const AT_ONCE: usize = 2;

/// How long a program may run. The longest takes five minutes on two cores, and three times as long on busy ones. Tests have
/// limits of their own, but a program may also hang before or after them.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Property tests draw the same cases in every run, so that a run fails because of a change and not by chance. `cargo test` draws
/// new ones, and a seed of one's own wins.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// What takes longest begins first, so that none of it is left to run alone at the end.
const LONG: [&str; 11] = [
    "app/engine unit",
    "app/engine architectures",
    "app/node on_demand_holders",
    "app/engine golden",
    "app/engine experts",
    "app/sim churn",
    "e2e/judge native",
    "app/node shadows",
    "app/node on_demand",
    "app/node spread_experts",
    "app/node tuning",
];

/// Examples that run with the tests, from the repository's folder: the crate's folder and the example, its arguments, and what it
/// prints if it works. The others are tools and measurements; they are compiled.
const EXAMPLES: [(&str, &[&str], &str); 6] = [
    ("app/gguf header", &[BUILT_IN], "quantization Q4_K_M"),
    ("app/engine generate", &[BUILT_IN, "Why is the sky blue?"], "sky"),
    ("app/planner plan", &[], "Everyone takes part: 3 devices share the blocks"),
    ("app/trust session", &[], "host: reads \"why is the sky blue?\""),
    ("app/sim room", &[], "The answer is the undisturbed one."),
    ("relay own_page", &[], "Stopped."),
];

/// The model that lies in the repository.
const BUILT_IN: &str = "public/models/potluck-small-Q4_K_M.gguf";

/// A line of `cargo test --message-format=json`.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A program of tests, or an example.
struct Job {
    /// The crate's folder and the target.
    name: String,
    command: Command,
    /// What it must print.
    prints: Option<&'static str>,
}

impl Job {
    /// The program that a line of Cargo's tells of, if it is one of tests.
    fn read(line: &str) -> Result<Option<Self>> {
        let message: Message = serde_json::from_str(line).with_context(|| format!("Cargo wrote: {line}"))?;
        let Message { manifest_path: Some(manifest), target: Some(target), profile: Some(profile), executable } =
            message
        else {
            return Ok(None);
        };
        let Some(executable) = executable else { return Ok(None) };
        let folder = manifest.parent().context("a manifest lies in a folder")?;
        let place = folder.strip_prefix(root()).unwrap_or(folder).to_string_lossy().replace('\\', "/");
        if target.kind == ["example"] {
            return Ok(Self::example(&format!("{place} {}", target.name), &executable));
        }
        if !profile.test {
            return Ok(None);
        }
        let kind = target.kind.first().filter(|kind| !kind.ends_with("lib")).map_or("unit", |kind| kind);
        let name = match kind {
            "test" => format!("{place} {}", target.name),
            _ => format!("{place} {kind}"),
        };
        // Where Cargo runs it, and with what Cargo tells it.
        let mut command = command(executable);
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        if env::var_os(SEED.0).is_none() {
            command.env(SEED.0, SEED.1);
        }
        Ok(Some(Self { name, command, prints: None }))
    }

    /// An example, if it is one of those that run.
    fn example(name: &str, executable: &Path) -> Option<Self> {
        let (_, arguments, prints) = EXAMPLES.into_iter().find(|(example, ..)| *example == name)?;
        let mut command = command(executable);
        command.args(arguments).current_dir(root());
        Some(Self { name: name.to_owned(), command, prints: Some(prints) })
    }

    /// Runs it and shows what it printed when it has ended, so that outputs are not mixed.
    fn run(mut self) -> Outcome {
        println!("+ {}", self.name);
        let started = Instant::now();
        let (output, failed) = match output_within(PATIENCE, &mut self.command) {
            Ok((output, Ended::Itself(status))) => {
                let missing =
                    self.prints.filter(|text| !output.contains(text)).map(|text| format!("it did not print {text:?}"));
                (output, (!status.success()).then(|| status.to_string()).or(missing))
            }
            Ok((output, Ended::Killed)) => {
                (output, Some(format!("it had not ended after {} minutes", PATIENCE.as_secs() / 60)))
            }
            Err(error) => (format!("{error:#}\n"), Some("it did not run".to_owned())),
        };
        let took = started.elapsed().as_secs_f64();
        println!("\n-- {}: {took:.1} s --\n{output}", self.name);
        Outcome { name: self.name, took, output, failed }
    }
}

struct Outcome {
    name: String,
    took: f64,
    output: String,
    /// How it ended, if that is not well.
    failed: Option<String>,
}

impl Outcome {
    /// The lines for the summary: how it failed, which tests failed, and how many ran. A program may also crash after its tests.
    fn closing(&self) -> Vec<String> {
        let ran = |line: &&str| line.starts_with("test result:") && !line.contains(" 0 passed; 0 failed");
        let failed = |line: &&str| line.starts_with("test ") && line.ends_with("FAILED");
        let mut lines: Vec<String> = self.failed.iter().map(|how| format!("{}: FAILED ({how})", self.name)).collect();
        lines.extend(self.output.lines().filter(failed).map(str::to_owned));
        lines.extend(self.output.lines().filter(ran).map(|line| format!("{:7.1} s  {}: {line}", self.took, self.name)));
        lines
    }
}

/// Compiles and runs all tests. A target runs even if an earlier one failed.
pub fn test() -> (Closing, Result<()>) {
    match jobs() {
        Ok(jobs) => side_by_side(jobs),
        Err(error) => (Vec::new(), Err(error)),
    }
}

/// All programs of tests, compiled, the longest first.
fn jobs() -> Result<VecDeque<Job>> {
    if let Err(error) = remove_old(&build::test_folders(), SystemTime::now() - Duration::from_secs(7200)) {
        println!("folders of earlier tests stay: {error:#}");
    }
    let (mut build, mut documentation) = (cargo(), cargo());
    build.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    documentation.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    let lines = lines_of(&mut build)?;
    let programs = lines.iter().filter_map(|line| Job::read(line).transpose());
    let mut jobs = programs.collect::<Result<Vec<Job>>>()?;
    // Also noticed if Cargo's lines are not understood any more.
    let missing = LONG.iter().find(|name| jobs.iter().all(|job| job.name != **name));
    ensure!(missing.is_none(), "there are no tests {missing:?}: change the list in xtask/src/targets.rs");
    let missing = EXAMPLES.iter().find(|(name, ..)| jobs.iter().all(|job| job.name != *name));
    ensure!(missing.is_none(), "there is no example {missing:?}: change the list in xtask/src/targets.rs");
    jobs.push(Job { name: "documentation".to_owned(), command: documentation, prints: None });
    jobs.sort_by_key(|job| LONG.iter().position(|name| job.name == *name).unwrap_or(LONG.len()));
    Ok(jobs.into())
}

/// Removes what earlier runs of tests have left, gigabytes each. Tests that run beside these keep theirs.
fn remove_old(folders: &Path, before: SystemTime) -> Result<()> {
    let Ok(entries) = fs::read_dir(folders) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.metadata()?.is_dir() && entry.metadata()?.modified()? < before {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn side_by_side(jobs: VecDeque<Job>) -> (Closing, Result<()>) {
    let (waiting, outcomes) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let outcome = job.run();
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What failed comes first: of a long output, somebody may see a part only.
    outcomes.sort_by(|a: &Outcome, b| (a.failed.is_none(), &a.name).cmp(&(b.failed.is_none(), &b.name)));
    let failed: Vec<&str> =
        outcomes.iter().filter(|outcome| outcome.failed.is_some()).map(|outcome| outcome.name.as_str()).collect();
    let result = if failed.is_empty() { Ok(()) } else { Err(anyhow!("tests failed: {}", failed.join(", "))) };
    (outcomes.iter().flat_map(Outcome::closing).collect(), result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The name of the job in a line as Cargo writes it.
    fn name(kind: &str, test: bool, executable: &str) -> Option<String> {
        let manifest = root().join("app/engine/Cargo.toml");
        let line = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": manifest,
            "target": { "kind": [kind], "name": "golden" },
            "profile": { "test": test, "opt_level": "1" },
            "executable": (!executable.is_empty()).then_some(executable),
        });
        Job::read(&line.to_string()).unwrap().map(|job| job.name)
    }

    #[test]
    fn programs_of_tests_are_told_from_what_else_is_compiled() {
        assert_eq!(name("test", true, "/deps/golden-1").as_deref(), Some("app/engine golden"));
        assert_eq!(name("lib", true, "/deps/engine-1").as_deref(), Some("app/engine unit"));
        assert_eq!(name("bin", true, "/deps/engine-2").as_deref(), Some("app/engine bin"));
        assert_eq!(name("bin", false, "/engine"), None, "a program itself");
        assert_eq!(name("lib", false, ""), None, "a library");
        assert_eq!(name("example", false, "/examples/golden"), None, "an example that is only compiled");
        assert!(Job::read(r#"{"reason":"build-finished","success":true}"#).unwrap().is_none());
    }

    #[test]
    fn folders_of_earlier_runs_are_removed_and_new_ones_stay() {
        let folders = env::temp_dir().join(format!("potluck-remove_old-{}", std::process::id()));
        let folder = folders.join("a-1-0");
        fs::create_dir_all(folder.join("cache")).unwrap();
        remove_old(&folders, SystemTime::now() - Duration::from_secs(3600)).unwrap();
        assert!(folder.exists(), "a test may still use it");
        remove_old(&folders, SystemTime::now() + Duration::from_secs(3600)).unwrap();
        assert!(!folder.exists(), "nobody uses it any more");
        fs::remove_dir(&folders).unwrap();
        remove_old(&folders, SystemTime::now()).expect("before the first tests there is no such folder");
    }

    #[test]
    fn the_summary_names_what_failed() {
        let outcome = |output: &str, failed: Option<&str>| {
            let (name, output, failed) = ("a b".into(), output.into(), failed.map(str::to_owned));
            Outcome { name, took: 1.0, output, failed }.closing()
        };
        assert_eq!(
            outcome(
                "test one ... ok\ntest two ... FAILED\ntest result: FAILED. 1 passed; 1 failed",
                Some("exit status: 101")
            ),
            [
                "a b: FAILED (exit status: 101)",
                "test two ... FAILED",
                "    1.0 s  a b: test result: FAILED. 1 passed; 1 failed"
            ]
        );
        assert_eq!(outcome("test one ...", Some("signal: 11")), ["a b: FAILED (signal: 11)"], "it crashed");
        assert_eq!(
            outcome("test result: ok. 2 passed; 0 failed", Some("signal: 11")),
            ["a b: FAILED (signal: 11)", "    1.0 s  a b: test result: ok. 2 passed; 0 failed"],
            "it crashed when all tests had passed"
        );
        assert!(outcome("test result: ok. 0 passed; 0 failed", None).is_empty(), "there was nothing to run");
    }
}
