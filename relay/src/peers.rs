//! Other relays behind the same proxy. When one comes back, its rooms are at home there again, but proxies leave open connections
//! where they are: so this relay's members connect again, and the proxy leads each to its room's home.

use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::Authority;
use potluck_relay_api::path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::info;

use crate::rooms::Rooms;

/// Time between two looks, and the longest that one may take. Proxies look as often.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So many failures in a row mean that a relay is away. One can be bad luck.
const FAILURES: u32 = 2;
/// So many good looks in a row mean that it is back. A proxy that wants two knows it by then.
const SUCCESSES: u32 = 3;

/// What was seen of another relay.
#[derive(Debug, Default)]
struct Sight {
    is_away: bool,
    /// Looks in a row that showed the opposite.
    contrary: u32,
}

impl Sight {
    /// After another look; true if the relay is back.
    fn look(&mut self, is_ready: bool) -> bool {
        if is_ready != self.is_away {
            self.contrary = 0;
            return false;
        }
        self.contrary += 1;
        if self.contrary < if self.is_away { SUCCESSES } else { FAILURES } {
            return false;
        }
        *self = Self { is_away: !self.is_away, contrary: 0 };
        is_ready
    }
}

/// Watches another relay as long as this one runs.
pub async fn watch(peer: Authority, rooms: Arc<Rooms>) {
    let mut sight = Sight::default();
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let is_ready = timeout(LOOK_EVERY, is_ready(&peer)).await.is_ok_and(|answer| answer.unwrap_or_default());
        if sight.look(is_ready) {
            info!(%peer, rooms = rooms.count(), "another relay is back: members connect again");
            rooms.send_home();
        }
    }
}

/// Whether it takes new rooms.
async fn is_ready(peer: &Authority) -> std::io::Result<bool> {
    const GOOD: &[u8] = b"HTTP/1.1 200";
    let mut stream = TcpStream::connect(peer.as_str()).await?;
    // A relay answers to this name always.
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path::READY);
    stream.write_all(request.as_bytes()).await?;
    let mut start = [0; GOOD.len()];
    stream.read_exact(&mut start).await?;
    Ok(start == GOOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_back_once_it_was_away() {
        let mut sight = Sight::default();
        let mut back = |looks: &str| -> Vec<bool> { looks.chars().map(|look| sight.look(look == '+')).collect() };
        assert!(!back("+++++-+-+").contains(&true), "it was never away");
        assert!(!back("--++-++-").contains(&true), "it does not stay");
        assert_eq!(back("+++++"), [false, false, true, false, false], "once");
        assert_eq!(back("--+++"), [false, false, false, false, true], "and again");
    }
}
