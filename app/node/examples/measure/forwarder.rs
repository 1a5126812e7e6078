//! A line with a delay: TCP forwarded byte for byte, each piece so much later. On threads that sleep, because timers of an
//! asynchronous runtime are a millisecond coarse.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Listens on a free port and forwards to `relay`, each direction delayed. Ends with the program.
pub fn start(relay: SocketAddr, delay: Duration) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // Whoever called sees a closed connection if the relay is gone.
            if let Ok(far) = TcpStream::connect(relay) {
                let _ = forward(&near, &far, delay);
            }
        }
    });
    Ok(address)
}

fn forward(near: &TcpStream, far: &TcpStream, delay: Duration) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    one_way(near.try_clone()?, far.try_clone()?, delay);
    one_way(far.try_clone()?, near.try_clone()?, delay);
    Ok(())
}

fn one_way(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (pieces, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if pieces.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
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
