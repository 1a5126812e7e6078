//! Every limit of the relay, with the reason for its value.

use std::time::Duration;

use potluck_relay_api::MemberLimits;

/// What the relay carries, queues and waits for. The program runs with [`Limits::default`]; tests narrow it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest binary message, route included. 16 MiB hold a prefill chunk of any model known today; longer messages
    /// would hold up the small frames behind them.
    pub frame_bytes: usize,
    /// Bytes that a sender may have on the way to one receiver. Over 50 ms to the relay this still carries 80 MB/s, and
    /// with every receiver of a full room it stays below a few hundred megabytes.
    pub window_bytes: usize,
    /// Bytes of control messages that may wait for a member: hundreds of times what a member gets between two reads.
    pub control_bytes: usize,
    /// Bytes of messages, waiting or unfinished, that the relay holds in all. Above it, an address that caused more than
    /// [`Limits::fair_memory_bytes`] of them gets no more.
    pub memory_bytes: usize,
    /// Bytes of messages that an address may cause however full the relay is: a household that loads weights over
    /// several windows at once stays below.
    pub fair_memory_bytes: usize,
    /// How long the relay collects what a receiver took before it reports it to the sender. Short against any round trip
    /// over Wi-Fi; long enough to report many small frames at once.
    pub taken_delay: Duration,
    /// Messages per second from a member. Several hundred tokens per second with one frame per stage stay far below.
    pub frame_rate: Rate,
    /// Parts of messages per second from a member. A block's experts on eight devices take eight parts; a model of 48 such
    /// blocks then decodes 50 tokens per second. Forwarding them takes about a tenth of a core.
    pub part_rate: Rate,
    /// Bytes per second from a member. More than a gigabit, so that it never slows a LAN down.
    pub byte_rate: Rate,
    /// What a visitor may send until the host lets it in.
    pub visits: VisitLimits,
    /// Rooms created from one address.
    pub room_rate: Rate,
    /// Connections to rooms from one address.
    pub join_rate: Rate,
    /// Most members in a room, beside its owner.
    pub members: usize,
    /// Seats of a room that visitors may not take, so that strangers cannot keep those out who have the link.
    pub reserved_seats: usize,
    /// Most visitors in a room whom the host has not let in yet: as many as a host is asked about at a time.
    pub visitors: usize,
    /// Most of them from one address: enough for a household or a few of a class at once; each one that is let in makes room for
    /// the next. To keep others from asking, somebody needs enough networks to fill [`Limits::visitors`].
    pub address_visitors: usize,
    /// Most seats of a room from one address, beside the owner's: a class of 30 behind one router fits, with a second tab here
    /// and there, and a quarter of the room stays for everyone else.
    pub address_seats: usize,
    /// How wrong a clock may be: an invite stays valid this much longer, as long as the host accepts it.
    pub invite_grace: Duration,
    /// Most members in all rooms together.
    pub total_members: usize,
    /// Most members from one address: a school behind one router fits.
    pub address_members: usize,
    /// Most rooms.
    pub rooms: usize,
    /// Most rooms created from one address and still there.
    pub address_rooms: usize,
    /// Most connections. The program lowers it to what the system allows it to open.
    pub connections: usize,
    /// Most connections from one address, whatever they do: members and their downloads, but no flood.
    pub address_connections: usize,
    /// Most connections beyond these two that are told so, each with one answer. Above it they are closed without a word.
    pub refusals: usize,
    /// Most downloads of weights at once. Each holds a file open and a step of it in memory.
    pub downloads: usize,
    /// Most downloads of weights at once from one address: a browser opens six, and a household has several.
    pub address_downloads: usize,
    /// How long a download waits for one of these to end before it is refused.
    pub download_wait: Duration,
    /// Longest title of a room, in characters.
    pub title_chars: usize,
    /// Who hosts in a later term takes the seat of an owner that has sent no control message for so long.
    pub owner_silence: Duration,
    /// Time between two pings.
    pub ping_every: Duration,
    /// Pings without a byte coming back before a member counts as gone. Several, so that a member survives a short loss of
    /// Wi-Fi.
    pub missed_pings: u32,
    /// How long an empty room is kept, so that a host that reloads its page or closes a laptop for a moment finds it again.
    pub room_idle: Duration,
    /// How long a connection may take nothing while bytes wait for it.
    pub stall: Duration,
    /// How long the relay tries to send a member the reason why its connection ends.
    pub close_timeout: Duration,
    /// How long connections may take to finish once the relay stops.
    pub shutdown_grace: Duration,
    /// How long a connection may take to send its first byte and to finish the TLS handshake.
    pub handshake: Duration,
    /// How long a connection may take to send the head of a request; also how long it may stay idle between two.
    pub head: Duration,
    /// How long whoever comes to a room that is not there waits for its owner, who may be on the way to another relay as well.
    pub room_wait: Duration,
    /// How long a connection to a room may take to enter it.
    pub entry: Duration,
    /// Shortest time between two scans of the model folders.
    pub rescan_every: Duration,
    /// Time between two looks at this machine's addresses and at the end of its certificate: a laptop that changes its network is
    /// reached there soon.
    pub refresh_every: Duration,
}

/// What a visitor may send until the host lets it in: a handshake, a hello, and a sign of life now and then. Sixteen of them
/// together send a host a megabyte and 320 messages in a second, which a phone takes.
#[derive(Clone, Debug)]
pub struct VisitLimits {
    /// Longest message. The longest of a visitor is a hello, with a few hundred bytes of names.
    pub frame_bytes: usize,
    /// Messages per second. A visitor has one or two, and at its start about ten.
    pub frame_rate: Rate,
    /// Parts of messages per second.
    pub part_rate: Rate,
    /// Bytes per second.
    pub byte_rate: Rate,
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
            window_bytes: 4 * MIB,
            control_bytes: MIB,
            memory_bytes: 1024 * MIB,
            fair_memory_bytes: 64 * MIB,
            taken_delay: Duration::from_millis(10),
            frame_rate: Rate { per_second: 2000.0, burst: 4000.0 },
            part_rate: Rate { per_second: 20_000.0, burst: 40_000.0 },
            byte_rate: Rate { per_second: 256.0 * MIB as f64, burst: 256.0 * MIB as f64 },
            visits: VisitLimits {
                frame_bytes: 16 * KIB,
                frame_rate: Rate { per_second: 20.0, burst: 60.0 },
                part_rate: Rate { per_second: 20.0, burst: 60.0 },
                byte_rate: Rate { per_second: 64.0 * KIB as f64, burst: 128.0 * KIB as f64 },
            },
            room_rate: Rate { per_second: 1.0, burst: 30.0 },
            join_rate: Rate { per_second: 5.0, burst: 100.0 },
            members: 64,
            reserved_seats: 8,
            visitors: 16,
            address_visitors: 4,
            address_seats: 48,
            invite_grace: Duration::from_secs(300),
            total_members: 16_384,
            address_members: 256,
            rooms: 4096,
            address_rooms: 64,
            connections: 20_000,
            address_connections: 512,
            refusals: 1024,
            downloads: 512,
            address_downloads: 64,
            download_wait: Duration::from_secs(10),
            title_chars: 80,
            owner_silence: Duration::from_secs(4),
            ping_every: Duration::from_secs(2),
            missed_pings: 4,
            room_idle: Duration::from_secs(15 * 60),
            stall: Duration::from_secs(10),
            close_timeout: Duration::from_secs(2),
            shutdown_grace: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            room_wait: Duration::ZERO,
            entry: Duration::from_secs(10),
            rescan_every: Duration::from_secs(2),
            refresh_every: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// The limits that a member gets with its welcome.
    pub fn for_members(&self) -> MemberLimits {
        MemberLimits {
            frame_bytes: self.frame_bytes as u64,
            window_bytes: self.window_bytes as u64,
            frames_per_second: self.frame_rate.per_second as u32,
            parts_per_second: self.part_rate.per_second as u32,
            bytes_per_second: self.byte_rate.per_second as u64,
            ping_seconds: self.ping_every.as_secs(),
            silence_seconds: (self.ping_every * (self.missed_pings + 1)).as_secs(),
            members: self.members.try_into().unwrap_or(u32::MAX),
        }
    }

    /// The limits that a visitor gets with its welcome. The window is a member's, because it stays when the host lets it in.
    pub fn for_visitors(&self) -> MemberLimits {
        MemberLimits {
            frame_bytes: self.visits.frame_bytes as u64,
            frames_per_second: self.visits.frame_rate.per_second as u32,
            parts_per_second: self.visits.part_rate.per_second as u32,
            bytes_per_second: self.visits.byte_rate.per_second as u64,
            ..self.for_members()
        }
    }

    /// Longest message that is received at all. One between [`Limits::frame_bytes`] and this is dropped and the sender gets
    /// an error; a longer one ends the connection, because skipping it would mean receiving it.
    pub fn max_message_bytes(&self) -> usize {
        self.frame_bytes.saturating_mul(2)
    }
}
