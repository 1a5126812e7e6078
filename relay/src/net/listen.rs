//! Opens the port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens on an address. `[::]` also takes IPv4, whatever the system's default is; without IPv6 it is `0.0.0.0`.
///
/// # Errors
/// The port is taken or not allowed.
pub fn listen(ip: IpAddr, port: u16) -> io::Result<TcpListener> {
    let every = ip.is_unspecified();
    match open(SocketAddr::new(ip, port)) {
        // The port may be taken by IPv4 alone, which is no reason to do without IPv6.
        Err(error) if every && ip.is_ipv6() && error.kind() != io::ErrorKind::AddrInUse => {
            open(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
        }
        opened => opened,
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A relay that starts again at once finds its port; on Windows the option would let two programs share it.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv6Addr;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn one_port_takes_both_kinds_of_addresses() {
        let listener = listen(Ipv6Addr::UNSPECIFIED.into(), 0).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("IPv4");
        // A machine without IPv6 has no such address.
        if std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.expect("IPv6");
        }
        let taken = listen(Ipv6Addr::UNSPECIFIED.into(), port).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
