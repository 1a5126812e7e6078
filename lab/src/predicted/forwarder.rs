//! A line with a delay and a rate: TCP forwarded byte for byte, each piece so much later. On threads that sleep, because
//! timers of an asynchronous runtime are a millisecond coarse.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// A device's line to the relay, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Of every byte.
    pub delay: Duration,
    /// Bytes a second; none: as quick as this machine.
    pub rate: Option<f64>,
}

/// Listens on a free port and forwards to `relay`. Ends with the program.
pub fn start(relay: SocketAddr, line: Line) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // Whoever called sees a closed connection if the relay is gone.
            if let Ok(far) = TcpStream::connect(relay) {
                let _ = forward(&near, &far, line);
            }
        }
    });
    Ok(address)
}

fn forward(near: &TcpStream, far: &TcpStream, line: Line) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    one_way(near.try_clone()?, far.try_clone()?, line);
    one_way(far.try_clone()?, near.try_clone()?, line);
    Ok(())
}

fn one_way(mut from: TcpStream, mut to: TcpStream, line: Line) {
    let (pieces, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        // The last byte of the piece before is through then.
        let mut free = Instant::now();
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let passing = line.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(length as f64 / rate));
            free = free.max(Instant::now()) + passing;
            if pieces.send((free + line.delay, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (at, piece) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // The other side may have closed it already.
        let _ = to.shutdown(Shutdown::Write);
    });
}
