//! Starting and stopping a benchmark.

use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};
use potluck_panel::{BenchChoice, BenchEvent, ToPage};

use super::Node;
use crate::bench::Benchmark;
use crate::platform::LocalFile;

impl Node {
    pub(super) fn start_bench(&mut self, choice: BenchChoice, files: Vec<Rc<dyn LocalFile>>) {
        self.stop_bench();
        let Some(opener) = self.opener() else { return };
        let page = self.page.clone();
        let tell = {
            let page = page.clone();
            Rc::new(move |event| page(ToPage::Bench(event))) as Rc<dyn Fn(BenchEvent)>
        };
        let benchmark =
            Benchmark { platform: self.platform.clone(), compute: self.compute.clone(), opener, files, choice, tell };
        let (abort, registration) = AbortHandle::new_pair();
        self.bench = Some(abort);
        self.platform.spawn.spawn(Box::pin(async move {
            let event = match Abortable::new(benchmark.run(), registration).await {
                Ok(Ok(report)) => BenchEvent::Done(Box::new(report)),
                Ok(Err(error)) => BenchEvent::Failed(error.to_string()),
                Err(_) => BenchEvent::Stopped,
            };
            page(ToPage::Bench(event));
        }));
    }

    pub(super) fn stop_bench(&mut self) {
        if let Some(bench) = self.bench.take() {
            bench.abort();
        }
    }
}
