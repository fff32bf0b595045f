//! The server: accepts connections of this machine's browser, within limits, and runs until it is asked to end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::access::Access;
use crate::actions::ActionTurns;
use crate::hub::Hub;
use crate::links::Links;
use crate::routes::{self, Site};
use crate::seat::Seat;
use crate::snapshot::TeamReading;

const MAX_CONNECTIONS: usize = 256;

/// The longest time for the headers of a request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// The most bytes of a request's headers.
const HEADER_BYTES: usize = 32 << 10;

/// The longest life of a connection, whatever it does.
const CONNECTION_LIFE: Duration = Duration::from_secs(30 * 60);

/// The longest time that the end waits for an action that runs.
const LAST_ACTION: Duration = Duration::from_secs(10);

/// The most commands and pages that are made at once outside the loop of the server.
const BLOCKING_THREADS: usize = 8;

/// The most slow pages among them. The rest is for actions, one in each lane, and for new connections.
const SLOW_PAGES: usize = 4;

/// A server that listens, but does not serve yet.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    handle: ServerHandle,
}

/// Controls a server from other threads.
#[derive(Clone)]
pub struct ServerHandle {
    pub(crate) site: Arc<Site>,
    end: Arc<Notify>,
}

impl ServerHandle {
    /// A new address that works once, within a minute.
    pub fn new_address(&self) -> io::Result<String> {
        self.site.access.new_address(Instant::now())
    }

    pub fn publish(&self, reading: TeamReading) {
        self.site.hub.publish(reading);
    }

    pub fn end(&self) {
        self.end.notify_one();
    }
}

impl WebServer {
    /// Listens on the loopback address; on any free port if that is 0.
    pub fn bind(port: u16, seat: Arc<dyn Seat>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let access = Access::new(address.port())?;
        let hub = Arc::new(Hub::new(seat, Links::new(access.key())));
        let slow_pages = Arc::new(Semaphore::new(SLOW_PAGES));
        let site = Arc::new(Site { access, hub, turns: ActionTurns::default(), slow_pages });
        Ok(Self { listener, address, handle: ServerHandle { site, end: Arc::default() } })
    }

    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Serves until [`ServerHandle::end`], then waits for an action that runs, but not for ever.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(BLOCKING_THREADS)
            .build()?;
        let served = runtime.block_on(async {
            let served = match select(Box::pin(self.serve()), Box::pin(self.handle.end.notified())).await {
                Either::Left((served, _)) => served,
                Either::Right(_) => Ok(()),
            };
            let _ = timeout(LAST_ACTION, self.handle.site.turns.close()).await;
            served
        });
        runtime.shutdown_background();
        served
    }

    async fn serve(&self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let router = routes::router(&self.handle.site);
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            // Without a free place, connections wait in the queue of the system.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // Too many open files, or a connection that is gone already: the next one may work.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (router, seat, server) =
                (router.clone(), Arc::clone(&self.handle.site.hub.seat), self.address);
            tokio::spawn(async move {
                let admitted = tokio::task::spawn_blocking(move || seat.admits(peer, server)).await;
                if admitted.unwrap_or(false) {
                    let _ = timeout(CONNECTION_LIFE, connection(stream, router)).await;
                }
                drop(place);
            });
        }
    }
}

async fn connection(stream: TcpStream, router: Router) -> Result<(), hyper::Error> {
    // Events are small, and late ones are useless.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}
