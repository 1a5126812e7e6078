//! Every limit of the relay in one place, with the reason for its value.

use std::time::Duration;

use crate::protocol::StatedLimits;

/// What the relay will carry, hold and wait for. [`Limits::default`] is what the program runs with; tests narrow it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest binary message, route included. 16 MiB carry a prefill chunk of any model known today; longer ones would
    /// hold up the small frames behind them.
    pub frame_bytes: usize,
    /// Bytes that may wait for one receiver. Peers pace bulk data among themselves by credits; this bound only catches
    /// those who do not.
    pub queue_bytes: usize,
    /// Bytes that may wait for all receivers together. Above it, a receiver goes that holds more than
    /// [`Limits::fair_queue_bytes`].
    pub total_queue_bytes: usize,
    /// What a receiver may always hold, however full the relay is.
    pub fair_queue_bytes: usize,
    /// Messages a member may send, a second. Several hundred tokens a second with one frame per stage stay far below.
    pub frame_rate: Rate,
    /// Bytes a member may send, a second. More than a gigabit, so that a LAN is never the slower for it.
    pub byte_rate: Rate,
    /// Rooms one address may open.
    pub room_rate: Rate,
    /// Connections to rooms one address may open.
    pub join_rate: Rate,
    /// Members a room takes.
    pub members: usize,
    /// Members the relay takes over all rooms.
    pub total_members: usize,
    /// Rooms the relay takes.
    pub rooms: usize,
    /// Longest title of a room, in characters.
    pub title_chars: usize,
    /// Time between two pings.
    pub ping_every: Duration,
    /// Pings without a byte coming back before a member counts as gone. Several, so that a pause of the Wi-Fi is no death.
    pub missed_pings: u32,
    /// How long an empty room is kept: a host that reloads its page, or closes a laptop for a moment, finds it again.
    pub room_idle: Duration,
    /// How long the relay tries to tell a member why its connection ends.
    pub farewell: Duration,
    /// How long connections have to finish once the relay stops.
    pub shutdown_grace: Duration,
    /// How long a connection may take to show its first byte and to finish the TLS handshake.
    pub handshake: Duration,
    /// Ranges in one request for weights. An expert is three; a prefill may ask for all experts of a block at once.
    pub ranges: usize,
    /// How often the folders with models may be looked through again.
    pub rescan_every: Duration,
}

/// A token bucket's size and filling.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Units that come back each second.
    pub per_second: f64,
    /// Units that may be used at once after a pause.
    pub burst: f64,
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 16 * MIB,
            queue_bytes: 64 * MIB,
            total_queue_bytes: 1024 * MIB,
            fair_queue_bytes: 4 * MIB,
            frame_rate: Rate { per_second: 2000.0, burst: 4000.0 },
            byte_rate: Rate { per_second: 256.0 * MIB as f64, burst: 256.0 * MIB as f64 },
            room_rate: Rate { per_second: 1.0, burst: 30.0 },
            join_rate: Rate { per_second: 5.0, burst: 100.0 },
            members: 64,
            total_members: 2048,
            rooms: 1024,
            title_chars: 80,
            ping_every: Duration::from_secs(2),
            missed_pings: 4,
            room_idle: Duration::from_secs(15 * 60),
            farewell: Duration::from_secs(2),
            shutdown_grace: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            ranges: 512,
            rescan_every: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// The part that members are told.
    pub fn stated(&self) -> StatedLimits {
        StatedLimits {
            frame_bytes: self.frame_bytes,
            queue_bytes: self.queue_bytes,
            frames_per_second: self.frame_rate.per_second as u32,
            bytes_per_second: self.byte_rate.per_second as u64,
            ping_seconds: self.ping_every.as_secs(),
            silence_seconds: (self.ping_every * (self.missed_pings + 1)).as_secs(),
            members: self.members,
        }
    }

    /// Longest message that is read at all. Between [`Limits::frame_bytes`] and this one is dropped with a word to the
    /// sender; beyond it the connection ends, because skipping it would mean receiving it.
    pub fn readable_bytes(&self) -> usize {
        self.frame_bytes.saturating_mul(2)
    }
}
