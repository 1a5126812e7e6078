#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use crate::routing::recall::tests::text;

#[test]
fn a_trace_is_read_as_it_was_written() {
    for experts in [1, 2, 5, 12, 64, 128, 300] {
        let shape = TraceShape { blocks: 3, experts, used: experts.min(2) as u8 };
        let trace = text(shape, 40, 7);
        let bytes = trace.to_bytes().unwrap();
        assert_eq!(Trace::from_bytes(&bytes).unwrap(), trace, "{experts} experts");
    }
}

#[test]
fn a_trace_is_small() {
    let trace = text(TraceShape { blocks: 12, experts: 64, used: 6 }, 1_000, 1);
    let bytes = trace.to_bytes().unwrap().len();
    assert!(bytes < 2 * 1_000 * 2 * 54 + 64, "54 bytes a token and channel: {bytes}");
}

#[test]
fn what_is_no_whole_trace_is_refused() {
    let shape = TraceShape { blocks: 3, experts: 5, used: 2 };
    let bytes = text(shape, 20, 7).to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(Trace::from_bytes(&bytes[..end]).is_err(), "cut after {end} of {} bytes", bytes.len());
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Trace::from_bytes(&longer), Err(TraceError::Length));
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            // It may still be a trace, but never one with experts that cannot be.
            if let Ok(trace) = Trace::from_bytes(&changed) {
                assert!(trace.to_bytes().is_ok(), "byte {at} changed by {flip:#x}");
            }
        }
    }
    assert_eq!(Trace::from_bytes(b"GGUF\x01"), Err(TraceError::NoTrace));
    assert_eq!(Trace::from_bytes(b"PLRT\x02"), Err(TraceError::Version(2)));
    assert_eq!(Trace::from_bytes(&vec![0; MAX_TRACE_BYTES + 1]), Err(TraceError::TooLarge));
}

#[test]
fn sizes_that_do_not_agree_are_not_written() {
    let shape = TraceShape { blocks: 3, experts: 5, used: 2 };
    let mut trace = text(shape, 20, 7);
    trace.sequences[0].experts[1].pop();
    assert_eq!(trace.to_bytes(), Err(TraceError::Sizes));
    let mut trace = text(shape, 20, 7);
    trace.sequences[0].experts[0][1] = trace.sequences[0].experts[0][0];
    assert_eq!(trace.to_bytes(), Err(TraceError::Expert), "one expert twice");
}
