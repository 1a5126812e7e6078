//! Starting, accepting connections, stopping.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use potluck_relay_api::http::Addresses;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, info, warn};

use crate::access::{Access, AccessConfig};
use crate::error::StartError;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::missing::Missing;
use crate::models::origin::OriginConfig;
use crate::models::{HashCache, Library};
use crate::net::hosts::Hosts;
use crate::net::names::{Machine, Names, could_be_top_level};
use crate::net::proxy::Proxies;
use crate::net::tls::decide::Wanted;
use crate::net::tls::{self, FolderLock, Identity};
use crate::net::{Client, Door, HttpStream, Opened, Reach, Refused, listen, machine_name, wanted};
use crate::operator::Operator;
use crate::page::Page;
use crate::peers;
use crate::quotas::{Quotas, Resource};
use crate::rooms::Rooms;
use crate::routes::{refusal, routes};

/// Longest request head. Browsers send less than 2 KB; the rest is for long cookies of other services of the same host.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Pause after `accept` fails, usually because file handles ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a relay is to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on: loopback, or all (`[::]` takes IPv4 too).
    pub ip: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The folder with the built page.
    pub page: Option<PathBuf>,
    /// Folders with GGUF files. If two files have the same name, the folder named first wins.
    pub models: Vec<PathBuf>,
    /// Weights that come from elsewhere.
    pub origin: OriginConfig,
    /// The folder where hashes are stored.
    pub cache: PathBuf,
    /// The certificate; `None` serves plain HTTP only.
    pub identity: Option<Identity>,
    /// This machine's names and addresses on the LAN, for the page and the certificate.
    pub machine: Machine,
    /// Other names under which the relay is reached.
    pub hosts: Vec<String>,
    /// The proxies that are trusted.
    pub proxies: Proxies,
    /// Other relays behind the same proxy.
    pub peers: Vec<Authority>,
    /// Who may open rooms, and who operates it.
    pub access: AccessConfig,
    /// Whether `/metrics` is shown to everyone.
    pub public_metrics: bool,
    /// The limits.
    pub limits: Limits,
}

/// What all endpoints share.
pub struct Shared {
    /// The limits.
    pub limits: Arc<Limits>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// What each address uses.
    pub quotas: Arc<Quotas>,
    /// The models.
    pub library: Arc<Library>,
    /// The rooms.
    pub rooms: Arc<Rooms>,
    /// The built page.
    pub page: Arc<Page>,
    /// Where this and other devices reach it.
    pub reach: Arc<Reach>,
    /// The names under which it answers.
    pub hosts: Arc<Hosts>,
    /// The proxies that are trusted.
    pub proxies: Proxies,
    /// Who may open rooms, and who operates it.
    pub access: Access,
    /// Whether `/metrics` is shown to everyone.
    pub public_metrics: bool,
}

/// A relay that listens but does not serve yet.
pub struct Relay {
    listener: TcpListener,
    address: SocketAddr,
    door: Arc<Door>,
    shared: Arc<Shared>,
    missing: Vec<Missing>,
    peers: Vec<Authority>,
    /// Held while it runs.
    lock: Option<FolderLock>,
}

impl Relay {
    /// Loads or makes the certificate, scans for models and opens the port.
    ///
    /// # Errors
    /// The port, the certificate or its folder cannot be used, or a thread cannot be started.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let access = Access::new(&config.access)?;
        let limits = Arc::new(config.limits);
        let metrics = Arc::new(Metrics::default());
        let quotas = Quotas::new(limits.clone());
        let found = (config.machine.addresses)();
        let names = config.hosts.iter().chain(&config.machine.names);
        let hosts = Arc::new(Hosts::new(found.iter().copied(), names));
        if config.identity.as_ref().is_some_and(Identity::is_own) {
            check_hosts(&config.hosts, &config.machine)?;
        }
        let lock = config.identity.as_ref().map(Identity::lock).transpose()?.flatten();
        let wanted = wanted(&config.hosts, &config.machine, &found);
        let machine = machine_name(&config.machine);
        let tls = config.identity.as_ref().map(|identity| identity.load(tls::now(), &wanted, machine)).transpose()?;
        let failed = |source| StartError::Listen { port: config.port, source };
        let listener = listen(config.ip, config.port).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (acceptor, certificate) = tls.map_or((None, None), |tls| (Some(tls.acceptor), Some(tls.certificate)));
        let reach = Reach::new(config.machine, config.hosts, address.port(), config.ip.is_loopback(), certificate);
        let door = Door {
            tls: acceptor,
            proxies: config.proxies.clone(),
            quotas: quotas.clone(),
            metrics: metrics.clone(),
            refusals: Arc::new(Semaphore::new(limits.refusals)),
            handshake: limits.handshake,
            stall: limits.stall,
        };
        let missing = Missing::find(config.page.as_deref(), &config.models);
        for one in &missing {
            info!("{one}");
        }
        info!(port = address.port(), "listening");
        let page = Arc::new(Page::new(config.page));
        let shared = Shared {
            library: Library::open(config.models, HashCache::new(config.cache), config.origin)?,
            rooms: Arc::new(Rooms::new(limits.clone(), metrics.clone())),
            page: page.clone(),
            limits,
            metrics,
            quotas,
            reach: Arc::new(reach),
            hosts,
            proxies: config.proxies,
            access,
            public_metrics: config.public_metrics,
        };
        // Not awaited: a file that is asked for before its turn is compressed then.
        tokio::task::spawn_blocking(move || page.compress_all());
        Ok(Self {
            listener,
            address,
            door: Arc::new(door),
            shared: Arc::new(shared),
            missing,
            peers: config.peers,
            lock,
        })
    }

    /// Whether a relay could start like this, as far as that shows without making anything.
    ///
    /// # Errors
    /// A name or the owner's certificate cannot be used.
    pub fn check(config: &Config) -> Result<Vec<Missing>, StartError> {
        Access::new(&config.access)?;
        match &config.identity {
            Some(Identity::Own { .. }) => check_hosts(&config.hosts, &config.machine)?,
            Some(given @ Identity::Files { .. }) => {
                given.load(tls::now(), &Wanted::default(), "")?;
            }
            None => {}
        }
        Ok(Missing::find(config.page.as_deref(), &config.models))
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where this and other devices reach it.
    pub fn addresses(&self) -> Addresses {
        self.shared.reach.addresses()
    }

    /// What it was told to serve and did not find.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// What its operator may ask of it while it runs.
    pub fn operator(&self) -> Operator {
        Operator::new(self.shared.clone())
    }

    /// Serves until `stop` resolves, then notifies the rooms and gives connections a moment to finish.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) {
        let Self { listener, door, shared, peers, lock: _lock, .. } = self;
        let limits = &shared.limits;
        let app = routes(shared.clone());
        let (draining, drain) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut watches = JoinSet::new();
        for peer in peers {
            watches.spawn(peers::watch(peer, shared.rooms.clone()));
        }
        let mut expire_rooms = interval(limits.room_idle / 16);
        let mut refresh = interval(limits.refresh_every);
        // A machine that slept looks once, not once for each time that it missed.
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The last look: while it lasts, there is no other.
        let mut looking: Option<JoinHandle<()>> = None;
        let mut stop = pin!(stop);
        let mut is_stuck = false;
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = expire_rooms.tick() => shared.rooms.expire(Instant::now()),
                _ = refresh.tick() => {
                    if looking.as_ref().is_none_or(JoinHandle::is_finished) {
                        let reach = shared.reach.clone();
                        // Not awaited: connections go on meanwhile. What cannot be written is tried again at the next look.
                        looking = Some(tokio::task::spawn_blocking(move || reach.refresh(tls::now())));
                    }
                }
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    // In its own task: a client that connects and sends nothing holds up nobody.
                    Ok((stream, address)) => {
                        is_stuck = false;
                        let (door, app, mut drain, head) = (door.clone(), app.clone(), drain.clone(), limits.head);
                        connections.spawn(async move {
                            let opened = tokio::select! {
                                opened = door.open(stream, address) => opened,
                                _ = drain.changed() => None,
                            };
                            match opened {
                                Some(Opened::Served(stream, client)) => serve(stream, client, app, head, drain).await,
                                Some(Opened::Refused(stream, client, refused)) => {
                                    refuse(stream, client, &refused, head, drain).await;
                                }
                                None => {}
                            }
                        });
                    }
                    Err(error) => {
                        if !is_stuck {
                            warn!("cannot accept connections; will keep trying: {error}");
                        }
                        is_stuck = true;
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
        drop((listener, watches));
        shared.rooms.shut_down();
        let _ = draining.send(true);
        let finished = async {
            while connections.join_next().await.is_some() {}
            // WebSockets run in tasks of their own: let the members get their shutdown message.
            while shared.quotas.used(Resource::Member) > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(limits.shutdown_grace, finished).await;
    }
}

/// Refuses names that no certificate can have, and warns of those that this relay's does not get.
fn check_hosts(hosts: &[String], machine: &Machine) -> Result<(), StartError> {
    for host in hosts {
        let mut names = Names::default();
        names.add(host);
        if names == Names::default() {
            return Err(StartError::Host(host.clone()));
        }
        if names.dns.iter().any(|name| name != "localhost" && could_be_top_level(name) && !machine.names.contains(name))
        {
            warn!(
                "--host {host:?} could be a top-level domain, so the certificate does not name it: choose a name with a dot"
            );
        }
    }
    Ok(())
}

/// Serves the requests of one connection. When the relay stops, the current one is the last.
async fn serve(stream: HttpStream, client: Client, app: Router, head: Duration, mut drain: watch::Receiver<bool>) {
    let service = with_client(app, client);
    let mut connection = pin!(http(head).serve_connection(TokioIo::new(stream), service).with_upgrades());
    let is_draining = tokio::select! {
        // A connection that breaks concerns nobody else.
        _ = connection.as_mut() => false,
        _ = drain.changed() => true,
    };
    if is_draining {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Answers one request of a connection over a limit with a sentence, and closes it.
async fn refuse(
    stream: HttpStream,
    client: Client,
    refused: &Refused,
    head: Duration,
    mut drain: watch::Receiver<bool>,
) {
    debug!(limit = ?refused.exhausted, "a connection is over a limit");
    let service = with_client(refusal(refused.exhausted), client);
    let mut http = http(head);
    http.keep_alive(false);
    tokio::select! {
        // Whoever does not read the answer in time goes without.
        _ = timeout(head, http.serve_connection(TokioIo::new(stream), service)) => {}
        _ = drain.changed() => {}
    }
}

fn http(head: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(MAX_HEAD_BYTES);
    http
}

type Answer<S> = <S as hyper::service::Service<Request>>::Future;

/// Passes a connection's requests on, with who sent them.
fn with_client(
    app: Router,
    client: Client,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = Answer<TowerToHyperService<Router>>,
> {
    let app = TowerToHyperService::new(app);
    service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(client.clone());
        hyper::service::Service::call(&app, request)
    })
}

#[cfg(test)]
mod tests;
