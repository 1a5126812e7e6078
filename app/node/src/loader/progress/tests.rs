//! Tests of `progress.rs`.

use super::*;

#[test]
fn the_rate_follows_a_change_within_seconds() {
    let mut rate = Rate::default();
    let mut done = 0;
    for tick in 0..50 {
        done += 100_000;
        rate.add(Millis(f64::from(tick) * 100.0), done);
    }
    assert!((rate.mean - 1e6).abs() < 1e3, "a steady million a second");
    for tick in 50..150 {
        done += 10_000;
        rate.add(Millis(f64::from(tick) * 100.0), done);
    }
    assert!(rate.mean < 1.2e5, "ten seconds later it is about a tenth: {}", rate.mean);
}

/// A progress, and what it has reported.
fn reported() -> (Progress, Rc<RefCell<Vec<LoadReport>>>) {
    let reported: Rc<RefCell<Vec<LoadReport>>> = Rc::default();
    let sink = reported.clone();
    let platform = crate::native::platform(std::env::temp_dir(), &crate::native::Network::default());
    (Progress::new(platform, Box::new(move |report, _| sink.borrow_mut().push(report))), reported)
}

fn done(reported: &RefCell<Vec<LoadReport>>) -> Vec<u64> {
    reported.borrow().iter().map(|report| report.done.0).collect()
}

#[tokio::test]
async fn bytes_are_done_as_they_arrive_and_only_once() {
    let (progress, reported) = reported();
    progress.start(LoadPhase::Download, Bytes(100), Bytes(0));
    let (first, second) = (progress.arriving(60), progress.arriving(40));
    for (arriving, bytes) in [(&first, 10), (&second, 20), (&first, 50)] {
        arriving.count.add(bytes);
        progress.look();
        progress.look();
    }
    assert_eq!(done(&reported), [0, 10, 30, 80], "each byte is reported, and nothing where none has come");
    progress.done(60, Some(&first));
    drop(first);
    progress.look();
    assert_eq!(progress.report.borrow().done, Bytes(80), "what is uploaded had arrived");
    second.count.add(90);
    progress.look();
    progress.done(40, Some(&second));
    assert_eq!(progress.report.borrow().done, Bytes(100), "groups around a piece are not the piece's");
}

#[tokio::test]
async fn what_came_too_soon_for_a_report_is_reported_later() {
    let (progress, reported) = reported();
    progress.start(LoadPhase::Download, Bytes(100), Bytes(0));
    progress.last_report.set(f64::MAX);
    progress.done(60, None);
    assert_eq!(done(&reported), [0], "there was a report just now");
    progress.look();
    progress.look();
    assert_eq!(done(&reported), [0, 60]);
}

#[tokio::test]
async fn what_is_fetched_again_is_neither_lost_nor_counted_twice() {
    let (progress, reported) = reported();
    progress.start(LoadPhase::Download, Bytes(100), Bytes(0));
    let arriving = progress.arriving(100);
    for bytes in [70, 30, 50] {
        arriving.count.restart();
        arriving.count.add(bytes);
        progress.look();
    }
    arriving.count.add(40);
    progress.look();
    assert_eq!(done(&reported), [0, 70, 90]);
}

#[tokio::test]
async fn pieces_of_one_read_are_done_one_after_the_other() {
    let (progress, _) = reported();
    progress.start(LoadPhase::Upload, Bytes(100), Bytes(0));
    let arriving = progress.arriving(100);
    arriving.count.add(100);
    progress.done(30, Some(&arriving));
    assert_eq!(progress.uploaded.get() + progress.arrived(), 100);
    progress.done(70, Some(&arriving));
    assert_eq!((progress.uploaded.get(), progress.arrived()), (100, 0));
}

#[tokio::test]
async fn headers_and_hashes_are_counted_while_a_model_is_looked_for() {
    let (progress, reported) = reported();
    let traffic = Traffic::default();
    let progress = progress.counting(traffic.clone());
    traffic.add(1_000);
    progress.phase(LoadPhase::Find);
    traffic.add(5);
    progress.look();
    assert_eq!(done(&reported), [0, 5], "what came before is not counted");
    progress.phase(LoadPhase::Kernels);
    traffic.add(5);
    progress.look();
    assert_eq!(done(&reported), [0, 5, 0], "kernels do not arrive");
}

#[tokio::test]
async fn a_wait_for_the_server_is_reported_until_it_ends() {
    let (progress, reported) = reported();
    let traffic = Traffic::default();
    let progress = progress.counting(traffic.clone());
    progress.start(LoadPhase::Download, Bytes(100), Bytes(0));
    let now = progress.platform.clock.now();
    traffic.wait_until(Millis(now.0 + 90e3));
    progress.look();
    progress.look();
    traffic.end_wait(Millis(now.0 + 90e3));
    progress.look();
    let waits: Vec<bool> = reported.borrow().iter().map(|report| report.waits > 0).collect();
    assert_eq!((waits[0], waits[1], waits.last()), (false, true, Some(&false)), "{waits:?}");
}

#[tokio::test]
async fn a_watched_work_is_reported_before_it_ends() {
    let (progress, reported) = reported();
    progress.start(LoadPhase::Download, Bytes(100), Bytes(0));
    let arriving = progress.arriving(100);
    arriving.count.add(10);
    let work = async {
        while done(&reported).last() != Some(&10) {
            tokio::task::yield_now().await;
        }
    };
    progress.watch(work).await;
}

#[tokio::test]
async fn a_parallel_phase_is_reported_once_the_transfer_is_complete() {
    let (progress, reported) = reported();
    let phases = || reported.borrow().iter().map(|report| report.phase).collect::<Vec<_>>();
    progress.start(LoadPhase::Upload, Bytes(10), Bytes(10));
    progress.beside(LoadPhase::Kernels);
    assert_eq!(phases(), [LoadPhase::Upload], "the transfer says more");
    progress.complete();
    progress.beside(LoadPhase::SelfTest);
    assert_eq!(phases(), [LoadPhase::Upload, LoadPhase::Kernels, LoadPhase::SelfTest]);
}
