//! A server of one file, as links lead to them.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that are sent at a time.
const PIECE: usize = 16 << 10;

/// Headers and samples of weights are less.
const MUCH: usize = 128 << 10;

/// What the server does, and did.
#[derive(Default)]
pub struct Manners {
    /// It sends no parts.
    pub whole: AtomicBool,
    /// Asked for much, it says nothing of what comes after so many bytes of its file; 0: it says everything.
    pub silent_from: AtomicU64,
    /// Bytes of content that it has sent.
    pub sent: AtomicU64,
}

/// Serves a file, and returns its address.
pub fn serve(content: Vec<u8>, manners: &Arc<Manners>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
    let (content, manners) = (Arc::new(content), manners.clone());
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (content, manners) = (content.clone(), manners.clone());
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&connection);
                while answer(&connection, &mut reader, &content, &manners).is_some() {}
            });
        }
    });
    url
}

/// Answers a request; `None` at the end of the connection.
fn answer(mut to: &TcpStream, reader: &mut impl BufRead, content: &[u8], manners: &Manners) -> Option<()> {
    let (mut first, mut part) = (String::new(), None);
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some((start, end)) = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-')) {
            part = Some((start.parse::<usize>().ok()?, content.len().min(end.parse::<usize>().ok()? + 1)));
        }
    }
    let part = part.filter(|_| !manners.whole.load(Ordering::SeqCst));
    let (start, end) = part.unwrap_or((0, content.len()));
    let (status, range) = match part {
        Some(_) => (206, format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, content.len())),
        None => (200, String::new()),
    };
    let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n{range}\r\n", end - start);
    to.write_all(head.as_bytes()).ok()?;
    if first.starts_with("HEAD") {
        return Some(());
    }
    for (index, piece) in content[start..end].chunks(PIECE).enumerate() {
        let offset = (start + index * PIECE) as u64;
        let is_silent = || {
            let from = manners.silent_from.load(Ordering::SeqCst);
            from > 0 && offset >= from && end - start > MUCH
        };
        if is_silent() {
            while is_silent() {
                std::thread::sleep(Duration::from_millis(20));
            }
            return None;
        }
        manners.sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
        to.write_all(piece).ok()?;
    }
    Some(())
}
