//! Starting and stopping a benchmark.

use std::rc::Rc;

use futures::future::Abortable;
use potluck_panel::{BenchChoice, BenchEvent, ToPage};

use super::Node;
use crate::bench::Benchmark;
use crate::platform::LocalFile;

impl Node {
    pub(super) fn start_bench(&mut self, choice: BenchChoice, files: Vec<Rc<dyn LocalFile>>) {
        self.stop_bench();
        let Some(identity) = &self.identity else { return };
        let opener = self.models.opener(identity.relay.clone());
        let page = self.page.sender();
        let report = {
            let page = page.clone();
            Rc::new(move |event| page(ToPage::Bench(event))) as Rc<dyn Fn(BenchEvent)>
        };
        let benchmark =
            Benchmark { platform: self.platform.clone(), compute: self.compute.clone(), opener, files, choice, report };
        let registration = self.tasks.new_bench();
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
        self.tasks.abort_bench();
    }
}
