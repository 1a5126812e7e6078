//! `potluck-node pull`: downloads a model to the cache, where `run` and `host` find it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use potluck_node::loader::{Download, LoadError, Progress};
use potluck_node::native::platform;
use potluck_node::open::Opener;
use potluck_node::platform::Platform;
use potluck_panel::{Bytes, LoadPhase, LoadReport, ModelSource};
use potluck_text::texts;
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;
use crate::model_link;
use crate::options::{AccessOptions, CacheOptions, DEFAULT_TIMEOUT};
use crate::output::say;
use crate::showing::show_loading;
use crate::signals::Stop;

/// Options of `pull`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct PullOptions {
    /// The link of a GGUF file, or of a repository of such files, for example hf.co/OWNER/REPO:Q4_K_M. If the model is split into several files,
    /// give the link of the first one
    #[arg(value_name = "LINK")]
    pub link: String,
    /// Where the model is stored.
    #[command(flatten)]
    pub cache: CacheOptions,
    /// Give up after this many seconds without progress
    #[arg(long, value_name = "SECONDS", help_heading = "This device", default_value_t = DEFAULT_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// As whom the file is fetched.
    #[command(flatten)]
    pub access: AccessOptions,
}

/// Downloads what the cache lacks of a model.
///
/// # Errors
/// The link leads to no model, the model cannot be downloaded or stored, or somebody stopped the program.
pub(crate) async fn pull(options: &PullOptions, stop: &Stop) -> Result<(), Failure> {
    let platform = platform(options.cache.made_folder()?, &options.access.network_of_links(&options.link));
    let standing = Standing::new();
    let patience = Duration::from_secs(options.timeout);
    let mut stop = stop.clone();
    let text = &texts().stored;
    let work = async {
        let url = match model_link::address(&options.link, &platform).await? {
            Some(address) => address,
            None if options.link.contains("://") => options.link.clone(),
            None => return Err(Failure::Usage(text.no_link(&options.link))),
        };
        download(url, &options.link, &platform, &standing).await
    };
    tokio::select! {
        biased;
        signal = stop.stopped() => {
            if standing.has_begun() {
                say(text.kept_part());
            }
            Err(Failure::Stopped(signal))
        }
        done = work => done,
        () = standing.until_late(patience) => Err(Failure::Failed(text.no_progress(options.timeout))),
    }
}

async fn download(url: String, given: &str, platform: &Platform, standing: &Standing) -> Result<(), Failure> {
    let failed = |error: LoadError| Failure::Failed(error.to_string());
    let opener = Opener::without_room(platform.clone());
    let seen = standing.clone();
    let listener = Box::new(move |report: LoadReport, _| {
        seen.see(&report);
        show_loading(&report);
    });
    let progress = Rc::new(Progress::new(platform.clone(), listener).counting(opener.traffic.clone()));
    progress.phase(LoadPhase::Find);
    let opening = async { Ok::<_, LoadError>(opener.open(&ModelSource::Link { url }, &[], |_, _| {}).await?) };
    let (model, _) = progress.watch(opening).await.map_err(failed)?;
    let notice = |sentence: String| say(sentence);
    let download = Download { platform, model: &model, progress, notice: &notice };
    let fetched = download.run().await.map_err(failed)?;
    let (text, name) = (&texts().stored, &model.card.name);
    say(match fetched {
        Bytes::ZERO => text.was_there(name, given),
        _ => text.pulled(name, model.card.bytes.0, given),
    });
    Ok(())
}

/// How far a download is, and since when nothing has come of it.
#[derive(Clone)]
struct Standing {
    done: Rc<Cell<(LoadPhase, u64, u16)>>,
    since: Rc<RefCell<Instant>>,
}

impl Standing {
    fn new() -> Self {
        Self { done: Rc::new(Cell::new((LoadPhase::Find, 0, 0))), since: Rc::new(RefCell::new(Instant::now())) }
    }

    /// A server that says how long to wait for it is waited for.
    fn see(&self, report: &LoadReport) {
        let now = (report.phase, report.done.0, report.waits);
        if self.done.replace(now) != now {
            *self.since.borrow_mut() = Instant::now();
        }
    }

    fn has_begun(&self) -> bool {
        self.done.get().0 == LoadPhase::Download
    }

    /// Waits until nothing has come for so long.
    async fn until_late(&self, patience: Duration) {
        loop {
            let late = *self.since.borrow() + patience;
            if late <= Instant::now() {
                return;
            }
            sleep_until(late).await;
        }
    }
}
