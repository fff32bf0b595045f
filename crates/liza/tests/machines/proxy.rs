//! A proxy between a machine and the database, which can cut the machine off.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::server::Server;

/// The way of one machine to the database.
pub(crate) struct DatabaseProxy {
    /// The folder of its socket.
    folder: tempfile::TempDir,
    cut: Arc<AtomicBool>,
    target: Arc<Mutex<PathBuf>>,
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl DatabaseProxy {
    pub(crate) fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (cut, open): (Arc<AtomicBool>, Arc<Mutex<Vec<UnixStream>>>) = Default::default();
        let target = Arc::new(Mutex::new(server.socket()));
        let (is_cut, connections, leads_to) = (Arc::clone(&cut), Arc::clone(&open), Arc::clone(&target));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let socket = leads_to.lock().unwrap().clone();
                let Ok(server) = UnixStream::connect(socket) else { continue };
                if !is_cut.load(Ordering::SeqCst) {
                    connections.lock().unwrap().push(client.try_clone().unwrap());
                    pass(client, server);
                }
            }
        });
        Self { folder, cut, target, open }
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres:///liza?host={}&user=liza", self.folder.path().display())
    }

    /// Leads to another server from now on: what a failover behind one address does.
    pub(crate) fn fail_over(&self, server: &Server) {
        self.partition(true);
        *self.target.lock().unwrap() = server.socket();
        self.partition(false);
    }

    /// Cuts all connections, or lets new ones through again.
    pub(crate) fn partition(&self, on: bool) {
        self.cut.store(on, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..).filter(|_| on) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(client: UnixStream, server: UnixStream) {
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (mut from_server, mut to_client) = (server, client);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
}
