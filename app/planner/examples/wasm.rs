//! The rooms of `benches/search.rs` as functions that a JavaScript engine calls: see `benches/search.mjs`.

#[path = "../benches/random/mod.rs"]
mod random;
#[path = "../benches/rooms/mod.rs"]
mod rooms;

/// How many rooms there are.
#[unsafe(no_mangle)]
pub extern "C" fn potluck_cases() -> u32 {
    rooms::CASES.len() as u32
}

/// Searches a room; what it returns is what [`rooms::search`] found, NaN if there is no such room.
#[unsafe(no_mangle)]
pub extern "C" fn potluck_search(case: u32) -> f64 {
    rooms::CASES.get(case as usize).map_or(f64::NAN, rooms::search)
}

/// Address of a room's name.
#[unsafe(no_mangle)]
pub extern "C" fn potluck_name(case: u32) -> *const u8 {
    rooms::CASES.get(case as usize).map_or(std::ptr::null(), |case| case.name.as_ptr())
}

/// Bytes of a room's name.
#[unsafe(no_mangle)]
pub extern "C" fn potluck_name_length(case: u32) -> u32 {
    rooms::CASES.get(case as usize).map_or(0, |case| case.name.len() as u32)
}
