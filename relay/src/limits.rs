//! Every limit of the relay, with the reason for its value.

use std::time::Duration;

use potluck_relay_api::MemberLimits;

/// What the relay carries, queues and waits for. The program runs with [`Limits::default`]; tests narrow it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest binary message, route included. 16 MiB hold a prefill chunk of any model known today; longer messages
    /// would hold up the small frames behind them.
    pub frame_bytes: usize,
    /// Bytes that may wait for one receiver. Peers pace bulk data among themselves by credits; this bound only catches
    /// those that do not.
    pub queue_bytes: usize,
    /// Bytes that may wait for all receivers together. Above it, a receiver with more than [`Limits::fair_queue_bytes`] is
    /// evicted.
    pub total_queue_bytes: usize,
    /// Bytes that may wait for a receiver however full the relay is.
    pub fair_queue_bytes: usize,
    /// Messages per second from a member. Several hundred tokens per second with one frame per stage stay far below.
    pub frame_rate: Rate,
    /// Bytes per second from a member. More than a gigabit, so that it never slows a LAN down.
    pub byte_rate: Rate,
    /// Rooms opened from one address.
    pub room_rate: Rate,
    /// Connections to rooms from one address.
    pub join_rate: Rate,
    /// Most members in a room.
    pub members: usize,
    /// Most members in all rooms together.
    pub total_members: usize,
    /// Most rooms.
    pub rooms: usize,
    /// Longest title of a room, in characters.
    pub title_chars: usize,
    /// Time between two pings.
    pub ping_every: Duration,
    /// Pings without a byte coming back before a member counts as gone. Several, so that a member survives a short loss of
    /// Wi-Fi.
    pub missed_pings: u32,
    /// How long an empty room is kept, so that a host that reloads its page or closes a laptop for a moment finds it again.
    pub room_idle: Duration,
    /// How long the relay tries to send a member the reason why its connection ends.
    pub close_timeout: Duration,
    /// How long connections may take to finish once the relay stops.
    pub shutdown_grace: Duration,
    /// How long a connection may take to send its first byte and to finish the TLS handshake.
    pub handshake: Duration,
    /// Shortest time between two scans of the model folders.
    pub rescan_every: Duration,
}

/// The rate of a token bucket.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Tokens added per second.
    pub per_second: f64,
    /// Tokens in a full bucket: how many may be taken at once after a pause.
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
            close_timeout: Duration::from_secs(2),
            shutdown_grace: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            rescan_every: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// The limits that a member gets with its welcome.
    pub fn for_members(&self) -> MemberLimits {
        MemberLimits {
            frame_bytes: self.frame_bytes as u64,
            queue_bytes: self.queue_bytes as u64,
            frames_per_second: self.frame_rate.per_second as u32,
            bytes_per_second: self.byte_rate.per_second as u64,
            ping_seconds: self.ping_every.as_secs(),
            silence_seconds: (self.ping_every * (self.missed_pings + 1)).as_secs(),
            members: self.members.try_into().unwrap_or(u32::MAX),
        }
    }

    /// Longest message that is received at all. One between [`Limits::frame_bytes`] and this is dropped and the sender gets
    /// an error; a longer one ends the connection, because skipping it would mean receiving it.
    pub fn max_message_bytes(&self) -> usize {
        self.frame_bytes.saturating_mul(2)
    }
}
