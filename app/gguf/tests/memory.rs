//! Memory while parsing: counted by the allocator, whatever a corrupt header claims.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use potluck_gguf::HeaderParser;
use potluck_gguf::synthetic::{Random, Synthetic};

/// The system's allocator, counting what this thread holds and the most it ever held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // While a thread ends its locals are gone; nothing is measured then.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is handed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_corrupt_header_never_takes_more_than_a_few_times_its_bytes() {
    let file = Synthetic { blocks: 1, vocabulary: 300, ..Synthetic::default() }.to_bytes().unwrap();
    let header =
        Synthetic { blocks: 1, vocabulary: 300, ..Synthetic::default() }.header().unwrap().data_offset as usize;
    let mut random = Random::new(3, "corruption");
    let mut refused = 0;
    for _ in 0..3000 {
        let mut bytes = file[..header].to_vec();
        for _ in 0..1 + random.next_u64() % 3 {
            let at = random.next_u64() as usize % bytes.len();
            // Counts and lengths are eight bytes: large values are the dangerous ones.
            bytes[at] = [0xff, 0x7f, 0x01, random.next_u64() as u8][random.next_u64() as usize % 4];
        }
        let before = HELD.with(Cell::get);
        PEAK.with(|peak| peak.set(before));
        // No length is given, so nothing but what arrived bounds the claims.
        let mut parser = HeaderParser::new();
        refused += usize::from(bytes.chunks(97).try_for_each(|piece| parser.push(piece).map(drop)).is_err());
        let used = PEAK.with(Cell::get) - before;
        assert!(used < 16 * header as isize + 65_536, "{used} bytes for a header of {header}");
    }
    assert!(refused > 300, "only {refused} of 3000 corrupt headers were refused");
}
