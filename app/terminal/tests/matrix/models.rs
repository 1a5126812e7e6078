//! Models in the cache: `pull`, `list` and `rm`, and what `run` makes of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use potluck_gguf::synthetic::{Architecture, Synthetic};

use crate::files::{Manners, serve};
use crate::process::{self, Ended, Out, Running};

/// A folder in which the program runs, and a link.
struct Place {
    folder: PathBuf,
    link: String,
    bytes: u64,
    manners: Arc<Manners>,
}

fn model(seed: u64) -> Vec<u8> {
    Synthetic { architecture: Architecture::Llama, blocks: 4, seed, ..Synthetic::default() }.to_bytes().unwrap()
}

impl Place {
    fn new(test: &str) -> Self {
        Self::with(test, model(5))
    }

    fn with(test: &str, content: Vec<u8>) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (manners, bytes) = (Arc::<Manners>::default(), content.len() as u64);
        Self { folder, link: serve(content, &manners), bytes, manners }
    }

    fn start(&self, line: &[&str]) -> Running {
        let line: Vec<String> = line.iter().copied().chain(["--cache", "cache"]).map(str::to_owned).collect();
        process::start(&self.folder, &line, Out::Read)
    }

    fn ends(&self, line: &[&str]) -> Ended {
        self.start(line).end()
    }

    fn pull(&self) -> Ended {
        self.ends(&["pull", &self.link])
    }

    fn sent(&self) -> u64 {
        self.manners.sent.swap(0, Ordering::SeqCst)
    }

    /// The files of stored weights, and when they were written.
    fn units(&self) -> Vec<(PathBuf, SystemTime)> {
        let id = self.listed()[0]["id"].as_str().unwrap().to_owned();
        let files = std::fs::read_dir(self.folder.join("cache").join(id)).unwrap().map(|file| file.unwrap());
        let weights = files.filter(|file| !["about", "header-0"].contains(&file.file_name().to_str().unwrap()));
        weights.map(|file| (file.path(), file.metadata().unwrap().modified().unwrap())).collect()
    }

    /// The lines of `list --json`.
    fn listed(&self) -> Vec<serde_json::Value> {
        let Ended { code, out, err } = self.ends(&["list", "--json"]);
        assert_eq!(code, Some(0), "{err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn what_is_pulled_is_listed_run_and_deleted() {
    let place = Place::new("pulled");
    let Ended { code, out, err } = place.pull();
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let last = err.lines().last().unwrap();
    assert!(last.contains("is stored") && last.ends_with(&format!("potluck-node run {}", place.link)), "{err}");
    assert!(err.contains("% Downloading: "), "{err}");
    assert!(place.sent() >= place.bytes / 2);

    let again = place.pull();
    assert!(again.code == Some(0) && again.err.contains("was stored already"), "{}", again.err);
    let listed = place.listed();
    assert_eq!(listed.len(), 1);
    let (id, name) = (listed[0]["id"].as_str().unwrap(), listed[0]["name"].as_str().unwrap());
    assert_eq!(listed[0]["link"], place.link.as_str());
    assert_eq!(listed[0]["stored"], listed[0]["weights"]);
    let table = place.ends(&["ls"]).out;
    let row = table.lines().nth(1).unwrap();
    assert!(table.starts_with("NAME") && row.starts_with(name) && row.contains("complete"), "{table}");

    place.sent();
    let question = ["--raw", "--prompt", "once", "--max-tokens", "4", "--context", "256"];
    let answers: Vec<String> = [place.link.as_str(), &name.to_uppercase(), &id[..6], "model"]
        .map(|model| {
            let Ended { code, out, err } = place.ends(&[&["run", model][..], &question].concat());
            assert_eq!(code, Some(0), "{model}: {err}");
            out
        })
        .into();
    assert!(!answers[0].trim().is_empty() && answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert!(place.sent() < place.bytes, "the weights come from the cache");

    let Ended { code, out, err } = place.ends(&["rm", name]);
    assert!(code == Some(0) && out.is_empty() && err.contains(&format!("Deleted {name}")), "{err}");
    assert!(place.listed().is_empty());
    let nothing = place.ends(&["list"]);
    assert!(nothing.out.is_empty() && nothing.err.contains("pull LINK"), "{}", nothing.err);
    let gone = place.ends(&["rm", name]);
    assert!(gone.code == Some(2) && gone.err.contains("potluck-node list"), "{}", gone.err);
}

#[test]
fn a_pull_that_was_stopped_goes_on_where_it_ended() {
    let place = Place::new("resumed");
    place.manners.silent_from.store(place.bytes / 2, Ordering::SeqCst);
    let mut pull = place.start(&["pull", &place.link]);
    assert!(pull.until("Downloading"));
    // What has come is written before the rest is there.
    let mut stored = 0;
    while stored == 0 {
        stored = place.listed().first().map_or(0, |model| model["stored"].as_u64().unwrap());
    }
    pull.signal("INT");
    let Ended { code, out, err } = pull.end();
    assert!(code == Some(130) && out.is_empty() && err.contains("goes on from there"), "{code:?} {err}");
    let part = place.ends(&["list"]).out;
    assert!(part.contains('%'), "{part}");
    place.manners.silent_from.store(0, Ordering::SeqCst);
    let first = place.units().into_iter().min_by_key(|(_, written)| *written).unwrap();
    let Ended { code, err, .. } = place.pull();
    assert_eq!(code, Some(0), "{err}");
    assert!(place.units().contains(&first), "what was stored is not written again");
    assert_eq!(place.listed()[0]["stored"], place.listed()[0]["weights"]);
}

#[test]
fn a_pull_that_cannot_go_on_says_why() {
    let half = model(5);
    let half = half[..half.len() / 2].to_vec();
    for (test, content, whole, says) in [
        ("pull-half", half, false, "truncated"),
        ("pull-page", b"<!doctype html><p>Sign in</p>".to_vec(), false, "GGUF"),
        ("pull-empty", Vec::new(), false, ""),
        ("pull-whole", model(5), true, "parts"),
    ] {
        let place = Place::with(test, content);
        place.manners.whole.store(whole, Ordering::SeqCst);
        let Ended { code, out, err } = place.pull();
        assert!(code == Some(1) && out.is_empty() && err.contains(says), "{test}: {code:?} {err}");
        assert_eq!(err.lines().filter(|line| line.ends_with('.')).count(), 1, "{test}: {err}");
    }
    let place = Place::new("pull-silent");
    place.manners.silent_from.store(place.bytes / 2, Ordering::SeqCst);
    let Ended { code, err, .. } = place.ends(&["pull", &place.link, "--timeout", "2"]);
    assert!(code == Some(1) && err.contains("Nothing has arrived for 2 s"), "{code:?} {err}");
}

#[test]
fn a_full_disk_ends_a_pull_and_what_was_stored_stays() {
    let place = Place::new("pull-full");
    assert_eq!(place.pull().code, Some(0));
    let id = place.listed()[0]["id"].as_str().unwrap().to_owned();
    // A unit that is missing, on a disk that is full.
    let unit = place.folder.join("cache").join(id).join("mixer-1");
    std::fs::remove_file(&unit).unwrap();
    std::os::unix::fs::symlink("/dev/full", &unit).unwrap();
    let Ended { code, err, .. } = place.pull();
    assert!(code == Some(1) && err.contains("free some space"), "{code:?} {err}");
    std::fs::remove_file(&unit).unwrap();
    assert_eq!(place.pull().code, Some(0));
}

#[test]
fn of_two_models_with_one_name_neither_is_taken() {
    let place = Place::new("two");
    let other = Place::with("two-other", model(6));
    for link in [&place.link, &other.link] {
        assert_eq!(place.ends(&["pull", link]).code, Some(0));
    }
    let listed = place.listed();
    let (name, id) = (listed[0]["name"].as_str().unwrap(), listed[0]["id"].as_str().unwrap());
    for line in [&["run", name, "--prompt", "a"][..], &["rm", name]] {
        let Ended { code, err, .. } = place.ends(line);
        assert!(code == Some(2) && err.contains("Several stored models") && err.contains(&id[..12]), "{line:?}: {err}");
    }
    assert_eq!(place.ends(&["rm", &id[..12]]).code, Some(0));
    assert_eq!(place.listed().len(), 1);
}

/// What `show --json` says.
fn shown(place: &Place, line: &[&str]) -> serde_json::Value {
    let Ended { code, out, err } = place.ends(&[&["show"], line, &["--json"]].concat());
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn what_is_shown_of_a_model_is_the_same_for_its_file_its_link_and_its_name() {
    let place = Place::new("shown");
    std::fs::write(place.folder.join("model.gguf"), model(5)).unwrap();
    let Ended { code, out, err } = place.ends(&["show", "model.gguf"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for line in ["name ", "architecture   llama, 4 blocks", "quantization   F32: F32 7.3 MB", "verdict        It fits"]
    {
        assert!(out.lines().any(|shown| shown.starts_with(line)), "{line}: {out}");
    }
    place.sent();
    let file = shown(&place, &["model.gguf"]);
    let link = shown(&place, &[&place.link]);
    place.pull();
    let name = shown(&place, &[file["name"].as_str().unwrap()]);
    for (field, value) in file.as_object().unwrap().iter().filter(|(field, _)| *field != "id") {
        assert_eq!((value, value), (&link[field], &name[field]), "{field}");
    }
    assert_eq!(link["id"], name["id"]);
}

#[test]
fn a_model_runs_in_the_memory_that_is_shown_and_not_in_less() {
    let place = Place::new("memory");
    std::fs::write(place.folder.join("model.gguf"), model(5)).unwrap();
    let needs = shown(&place, &["model.gguf", "--context", "512", "--kv", "f32"])["needs"].as_u64().unwrap();
    for (budget, fits) in [(needs, true), (needs - 4_000_000, false)] {
        let budget = budget.to_string();
        let options = ["model.gguf", "--context", "512", "--kv", "f32", "--budget", &budget];
        assert_eq!(shown(&place, &options)["fits"], fits);
        let question = ["--raw", "--prompt", "a", "--max-tokens", "2"];
        let Ended { code, err, .. } = place.ends(&[&["run"], &options[..], &question].concat());
        assert_eq!(code, Some(if fits { 0 } else { 1 }), "{budget}: {err}");
    }
}

#[test]
fn doctor_examines_this_device() {
    let place = Place::new("doctor");
    let Ended { code, out, err } = place.ends(&["doctor"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for line in ["ok   program", "ok   GPU", "ok   self-test", "ok   cache", "-    relay", "-    clock"] {
        assert!(out.lines().any(|shown| shown.starts_with(line)), "{line}: {out}");
    }
    let test = out.lines().find(|line| line.contains("self-test")).unwrap();
    let kernels: Vec<u32> = test.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(kernels[0] >= 10, "{test}");
    let world = crate::world::World::new("doctor-relay");
    let Ended { code, out, .. } = place.ends(&["doctor", "--relay", &world.plain]);
    assert!(code == Some(0) && out.contains("ok   relay") && out.contains("ok   clock"), "{out}");
}
