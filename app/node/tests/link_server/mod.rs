//! A server of one file with the manners of real ones.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a server does besides sending parts of its file. The default is none of it.
#[derive(Clone, Default)]
pub struct Manners {
    /// It gives its file only to requests with this access token, in small letters.
    pub knows: Option<&'static str>,
    /// Every address leads to one that is signed anew, on another server, which knows only `GET`.
    pub signs: bool,
    /// The address leads, by this status, to the path `/there` of the same server.
    pub leads: Option<u16>,
    /// How replies are written.
    pub form: Form,
    /// Header lines of replies with content.
    pub lines: &'static str,
    /// It sends no parts.
    pub whole: bool,
    /// It says nothing of ranges: a browser hides it.
    pub hides_range: bool,
    /// A part has at most so many bytes.
    pub most: Option<u64>,
    /// Connections break after so many bytes of content.
    pub breaks_after: Option<u64>,
    /// The first requests for content, with these numbers, get this status, header lines and content.
    pub instead: Option<(Range<usize>, u16, &'static str, &'static str)>,
    /// Requests in a window of time.
    pub limit: Option<Limit>,
}

/// How a server writes its replies.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// As most do: with the length, and the connection stays.
    #[default]
    Usual,
    /// HTTP/1.0: the connection ends with the reply.
    Old,
    /// The connection ends with the reply, although the server does not say so.
    HangsUp,
    /// In chunks, without a length.
    Chunks,
    /// Parts say where they are, but not how long the file is.
    NoTotal,
    /// Parts have a byte too many: the server takes the end of a range for the byte behind it.
    OneMore,
}

/// A limit of requests.
#[derive(Clone, Copy)]
pub struct Limit {
    pub requests: usize,
    pub window: Duration,
    /// It says when the window ends.
    pub says: bool,
}

#[derive(Default)]
struct Seen {
    /// Requests for content so far, refused ones included.
    requests: usize,
    /// Requests with `HEAD`, which many servers refuse.
    heads: usize,
    refused: usize,
    /// Access tokens that came to a server that asked for none.
    stray_tokens: usize,
    /// Bytes of content that were sent.
    sent: u64,
    window: Option<(Instant, usize)>,
}

/// The content of a file.
pub enum Content {
    Bytes(Vec<u8>),
    /// So many zeros.
    Zeros(u64),
}

pub struct LinkServer {
    pub url: String,
    seen: Arc<Mutex<Seen>>,
}

struct Served {
    content: Content,
    manners: Manners,
    seen: Arc<Mutex<Seen>>,
    /// Where the signed addresses are.
    signed: Option<String>,
}

impl LinkServer {
    pub fn start(content: Content, manners: Manners) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (signs, knows) = (manners.signs, manners.knows);
        let served = |signed| Served { content, manners, seen: seen.clone(), signed };
        if !signs {
            let url = serve(served(None));
            return Self { url, seen };
        }
        let mut files = served(None);
        files.manners.knows = None;
        let files = serve(files);
        let manners = Manners { knows, ..Manners::default() };
        let leads = Served { content: Content::Zeros(0), manners, seen: seen.clone(), signed: Some(files) };
        Self { url: serve(leads), seen }
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }

    pub fn heads(&self) -> usize {
        self.seen.lock().unwrap().heads
    }

    pub fn refused(&self) -> usize {
        self.seen.lock().unwrap().refused
    }

    pub fn stray_tokens(&self) -> usize {
        self.seen.lock().unwrap().stray_tokens
    }

    pub fn sent(&self) -> u64 {
        self.seen.lock().unwrap().sent
    }
}

fn serve(served: Served) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
    let served = Arc::new(served);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(socket), served) = (socket, served.clone()) else { continue };
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&socket);
                while served.answer_one(&socket, &mut reader).is_some() {}
            });
        }
    });
    url
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(len) => *len,
        }
    }
}

impl Served {
    /// Answers a request; `None` at the end of the connection.
    fn answer_one(&self, mut socket: &TcpStream, reader: &mut impl BufRead) -> Option<()> {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
        let (mut range, mut token) = (None, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(bytes) = line.strip_prefix("range: bytes=") {
                let (start, end) = bytes.split_once('-')?;
                range = Some(start.parse::<u64>().ok()?..end.parse::<u64>().ok()? + 1);
            }
            token = token.or_else(|| line.strip_prefix("authorization: bearer ").map(str::to_owned));
        }
        let mut short = |status: u16, lines: &str, content: &str| {
            let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n{lines}\r\n{content}", content.len());
            socket.write_all(head.as_bytes()).ok()
        };
        match self.manners.knows {
            None => self.seen.lock().unwrap().stray_tokens += usize::from(token.is_some()),
            Some(known) if token.as_deref() == Some(known) => {}
            Some(_) => return short(401, "", ""),
        }
        if let Some(signed) = &self.signed
            && !first.starts_with("HEAD")
        {
            let location = format!("Location: {signed}?expires=9&signature=GET-only\r\n");
            return short(302, &location, "");
        }
        if let Some(status) = self.manners.leads
            && !first.contains("/there")
        {
            return short(status, "Location: /there\r\n", "");
        }
        if first.starts_with("HEAD") {
            self.seen.lock().unwrap().heads += 1;
            return short(403, "", "");
        }
        if let Some((status, lines, content)) = self.refusal() {
            return short(status, &lines, content);
        }
        let (all, form) = (self.content.len(), self.manners.form);
        let (status, part, range) = match range.filter(|_| !self.manners.whole) {
            Some(range) => {
                let asked = range.end + u64::from(form == Form::OneMore);
                let end = asked.min(all).min(range.start.saturating_add(self.manners.most.unwrap_or(u64::MAX)));
                let total = if form == Form::NoTotal { "*".to_owned() } else { all.to_string() };
                let says = format!("Content-Range: bytes {}-{}/{total}\r\n", range.start, end - 1);
                (206, range.start..end, if self.manners.hides_range { String::new() } else { says })
            }
            None => (200, 0..all, String::new()),
        };
        let version = if form == Form::Old { "HTTP/1.0" } else { "HTTP/1.1" };
        let length = match form {
            Form::Chunks => "Transfer-Encoding: chunked\r\n".to_owned(),
            _ => format!("Content-Length: {}\r\n", part.end - part.start),
        };
        let head = format!("{version} {status} OK\r\n{length}{range}{}\r\n", self.manners.lines);
        socket.write_all(head.as_bytes()).ok()?;
        self.send(socket, part)?;
        matches!(form, Form::Usual | Form::Chunks | Form::NoTotal | Form::OneMore).then_some(())
    }

    fn refusal(&self) -> Option<(u16, String, &'static str)> {
        let mut seen = self.seen.lock().unwrap();
        let number = seen.requests;
        seen.requests += 1;
        if let Some((numbers, status, lines, content)) = &self.manners.instead
            && numbers.contains(&number)
        {
            return Some((*status, (*lines).to_owned(), content));
        }
        let limit = self.manners.limit?;
        let (began, count) =
            seen.window.filter(|(began, _)| began.elapsed() < limit.window).unwrap_or((Instant::now(), 0));
        seen.window = Some((began, count + 1));
        if count < limit.requests {
            return None;
        }
        seen.refused += 1;
        let left = limit.window.saturating_sub(began.elapsed()).as_secs() + 1;
        Some((429, if limit.says { format!("Retry-After: {left}\r\n") } else { String::new() }, ""))
    }

    fn send(&self, mut socket: &TcpStream, part: Range<u64>) -> Option<()> {
        let breaks = self.manners.breaks_after.unwrap_or(u64::MAX);
        let zeros = [0; 64 << 10];
        let mut sent = 0;
        while sent < part.end - part.start {
            let len = (part.end - part.start - sent).min(zeros.len() as u64);
            let at = (part.start + sent) as usize;
            let piece = match &self.content {
                Content::Bytes(bytes) => &bytes[at..at + len as usize],
                Content::Zeros(_) => &zeros[..len as usize],
            };
            if self.manners.form == Form::Chunks {
                write!(socket, "{len:x}\r\n").ok()?;
            }
            socket.write_all(piece).ok()?;
            if self.manners.form == Form::Chunks {
                socket.write_all(b"\r\n").ok()?;
            }
            sent += len;
            self.seen.lock().unwrap().sent += len;
            if sent >= breaks && sent < part.end - part.start {
                // It ends without the rest.
                let _ = socket.shutdown(std::net::Shutdown::Both);
                return None;
            }
        }
        if self.manners.form == Form::Chunks {
            socket.write_all(b"0\r\n\r\n").ok()?;
        }
        Some(())
    }
}
