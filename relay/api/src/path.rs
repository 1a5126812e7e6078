//! Paths of the relay's endpoints.

/// `GET`: answers `ok` while the relay runs.
pub const HEALTH: &str = "/healthz";
/// `GET`: answers `ready` while the relay takes new rooms. While it drains, 503; with `?draining=404`, 404.
pub const READY: &str = "/readyz";
/// `GET`: counters in the Prometheus text format.
pub const METRICS: &str = "/metrics";
/// `GET`: [`Addresses`](crate::http::Addresses).
pub const ADDRESSES: &str = "/addresses";
/// `GET`: a page that helps a device to trust the relay's own authority; also over plain HTTP.
pub const CERTIFICATE: &str = "/certificate";
/// `GET`: the authority's certificate as DER, which phones, Windows and macOS install.
pub const AUTHORITY_DER: &str = "/certificate/potluck.crt";
/// `GET`: the same as PEM, for Linux and Firefox.
pub const AUTHORITY_PEM: &str = "/certificate/potluck.pem";
/// `GET`: a form for the token of those who may open rooms, if the relay asks for one.
pub const ACCESS: &str = "/access";
/// `GET`: what the operator may know of the relay. Below `/rooms`, one path per room, which `DELETE` ends.
pub const OPERATOR: &str = "/operator";
/// `GET`: [`ModelList`](crate::http::ModelList). Below it, one path per file.
pub const MODELS: &str = "/models";
/// `GET`: [`RoomList`](crate::http::RoomList). Below it, one WebSocket per room.
pub const ROOMS: &str = "/rooms";
/// What a file's path ends in when its group hashes are asked for.
pub const GROUPS_SUFFIX: &str = ".b3";

/// The WebSocket path of a room.
pub fn room_socket(room: &str) -> String {
    format!("{ROOMS}/{room}")
}
