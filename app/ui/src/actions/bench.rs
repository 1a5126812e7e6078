//! Starts benchmarks and receives their results.

use leptos::prelude::*;
use potluck_panel::{BenchChoice, BenchEvent, BenchReport, ToNode};
use potluck_text::texts;

use crate::{
    browser,
    state::{BenchProgress, Store},
};

impl Store {
    /// Benchmarks a model on this device.
    pub fn start_bench(self, choice: BenchChoice, file: Option<web_sys::File>) {
        self.bench.begin();
        browser::show_result("benchResult", None::<&BenchReport>);
        self.node.link.with_value(|link| link.send_with_file(ToNode::Bench(choice), file));
    }

    /// Handles an event of a benchmark.
    pub(crate) fn take_bench(self, event: BenchEvent) {
        let state = match event {
            BenchEvent::Loading(loading) => BenchProgress::Loading(loading),
            BenchEvent::Running { what, done, total } => BenchProgress::Running { what, done, total },
            BenchEvent::Done(mut report) => {
                report.device.browser = browser::user_agent();
                browser::show_result("benchResult", Some(&*report));
                self.node.tools.update_value(|calls| calls.end_bench(Ok(&report)));
                return self.bench.finish(*report);
            }
            BenchEvent::Stopped => {
                self.node.tools.update_value(|calls| calls.end_bench(Err(texts().notice.bench_stopped())));
                BenchProgress::Stopped
            }
            BenchEvent::Failed(sentence) => {
                self.node.tools.update_value(|calls| calls.end_bench(Err(&sentence)));
                BenchProgress::Failed(sentence)
            }
        };
        self.bench.progress.set(state);
    }
}
