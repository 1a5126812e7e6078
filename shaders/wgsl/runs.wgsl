// Runs: rows of one conversation, one after another in a batch, and the slots of its recurrent state. The first row of
// a run says how many rows it has and which slots it uses, every row whether the state after it is copied.
// The word of a row, from the lowest bit on: live slot (7 bits), slot of the copy + 1 or 0 (7), slot to begin from + 1,
// or 0 to begin from nothing (7), rows of the run or 0 (11).
fn live_slot(word: u32) -> u32 { return word & 127u; }
fn copy_slot(word: u32) -> u32 { return (word >> 7u) & 127u; }
fn first_slot(word: u32) -> u32 { return (word >> 14u) & 127u; }
fn run_rows(word: u32) -> u32 { return word >> 21u; }
