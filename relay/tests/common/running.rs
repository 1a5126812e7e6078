//! A relay that serves, and how clients reach it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use potluck_relay::{Config, Relay};
use potluck_relay_api::{Control, EntryProof, Nonce, Refusal};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::client_async;

use super::{Keys, Member, Reply, TIMEOUT, request};

/// A relay that serves.
pub struct Running {
    pub address: SocketAddr,
    /// Of a relay that this process started.
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

pub async fn start(config: Config) -> Running {
    let relay = Relay::start(config).await.unwrap();
    let address = (Ipv4Addr::LOCALHOST, relay.address().port()).into();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(relay.run(async { drop(stopped.await) }));
    Running { address, stop: Some(stop), task: Some(task) }
}

impl Running {
    /// A relay that serves elsewhere.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, stop: None, task: None }
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(mut self) {
        self.ask_to_stop();
        self.stopped().await;
    }

    /// Waits until it has stopped.
    pub async fn stopped(mut self) {
        timeout(TIMEOUT, self.task.take().unwrap()).await.expect("the relay stops in time").unwrap();
    }

    pub fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "").await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.request("GET", path, headers, "").await
    }

    /// One HTTP request over a connection of its own.
    pub async fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        request(stream, method, path, &self.address.to_string(), headers, body).await
    }

    /// The value of a metric, by its name with labels.
    pub async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.text();
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until a metric has a value.
    pub async fn until_metric(&self, name: &str, wanted: u64) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let value = self.metric(name).await;
            if value == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{name} is still {value}, not {wanted}");
            tokio::task::yield_now().await;
        }
    }

    /// Connects to a room without reading anything.
    pub async fn connect(&self, room: &str) -> Member {
        self.connect_from(Ipv4Addr::LOCALHOST, room).await
    }

    /// Connects to a room from an address of this machine.
    pub async fn connect_from(&self, from: Ipv4Addr, room: &str) -> Member {
        let stream = self.tcp_from(from).await;
        let url = format!("ws://{}/rooms/{room}", self.address);
        let (socket, _) = timeout(TIMEOUT, client_async(url, stream)).await.unwrap().unwrap();
        Member::new(socket, self.address.to_string())
    }

    /// A TCP connection from an address of this machine: all of 127.0.0.0/8 is.
    pub async fn tcp_from(&self, from: Ipv4Addr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = timeout(TIMEOUT, socket.connect(self.address)).await.unwrap().unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Connects to a room and reads the challenge.
    pub async fn challenged(&self, room: &str) -> (Member, Nonce) {
        let mut member = self.connect(room).await;
        let nonce = member.challenge().await;
        (member, nonce)
    }

    /// Connects to a room and reads the challenge: its nonce as it came.
    pub async fn raw_challenge(&self, room: &str) -> (Member, Nonce) {
        let mut member = self.connect(room).await;
        let Control::Challenge { nonce, .. } = member.control().await else { panic!("a challenge") };
        (member, nonce)
    }

    /// Connects to a room, answers the challenge and reads the welcome.
    pub async fn enter(&self, room: &str, proof: impl FnOnce(&Nonce) -> EntryProof) -> Member {
        let (mut member, nonce) = self.challenged(room).await;
        member.enter(proof(&nonce)).await;
        member.welcomed().await;
        member
    }

    /// Enters as the owner, which creates the room if need be.
    pub async fn own(&self, keys: &Keys) -> Member {
        self.enter(&keys.id(), |nonce| keys.owner(nonce)).await
    }

    /// Enters with the link.
    pub async fn join(&self, keys: &Keys) -> Member {
        self.enter(&keys.id(), |nonce| keys.link(nonce)).await
    }

    /// Tries to enter from an address of this machine: a member, or why not.
    pub async fn enter_from(
        &self,
        from: Ipv4Addr,
        room: &str,
        proof: impl FnOnce(&Nonce) -> EntryProof,
    ) -> Result<Member, Refusal> {
        let mut member = self.connect_from(from, room).await;
        let nonce = member.challenge().await;
        member.enter(proof(&nonce)).await;
        member.answered().await
    }

    /// Tries to enter and reads why not.
    pub async fn refused(&self, room: &str, proof: impl FnOnce(&Nonce) -> EntryProof) -> Refusal {
        let (mut member, nonce) = self.challenged(room).await;
        member.enter(proof(&nonce)).await;
        member.refused().await
    }
}
