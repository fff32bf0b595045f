//! Connections to a database: opened when needed, kept for the next use. Sends whole texts of statements, one
//! round trip each: no prepared statements and no session settings, so that a pooler can sit in between.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use liza_store::{Address, DatabaseError, DatabaseReason};
use postgres::config::{ChannelBinding, Host, SslMode, SslNegotiation};
use postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{config_of, ways_in, why_no_password};
use crate::fault::{fault_of, wrong_address};
use crate::proof::OnlyScram;

/// The number of connections kept for the next use.
const KEPT: usize = 2;

/// The rows that one statement returned, or the number that it changed.
#[derive(Debug, Default)]
pub(crate) struct ResultSet {
    rows: Vec<SimpleQueryRow>,
    pub(crate) count: u64,
}

impl ResultSet {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Fields<'_>> {
        self.rows.iter().map(Fields)
    }

    pub(crate) fn first(&self) -> Option<Fields<'_>> {
        self.rows.first().map(Fields)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Fields<'r>(&'r SimpleQueryRow);

impl<'r> Fields<'r> {
    /// A text; empty if there is none.
    pub(crate) fn text(self, at: usize) -> &'r str {
        self.0.try_get(at).ok().flatten().unwrap_or_default()
    }

    /// A whole number; 0 if there is none.
    pub(crate) fn number(self, at: usize) -> i64 {
        self.text(at).parse().unwrap_or(0)
    }

    pub(crate) fn is_true(self, at: usize) -> bool {
        self.text(at) == "t"
    }
}

/// A text as a literal of SQL, whatever the server's settings are.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str("E'");
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('\'');
    out
}

/// A list of texts as literals, for `IN (…)`.
pub(crate) fn quoted_list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let list: Vec<String> = texts.into_iter().map(quoted).collect();
    // An empty list is not allowed; no name is empty.
    if list.is_empty() { "''".to_owned() } else { list.join(", ") }
}

pub(crate) struct Connection {
    client: Client,
    /// A transaction may be open.
    in_transaction: bool,
    /// The server's system identifier; empty if the server doesn't report it.
    system: String,
}

/// The timeline of a server, which a failover changes.
const TIMELINE: &str = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

impl Connection {
    fn open(address: &Address) -> Result<Self, DatabaseError> {
        let config = config_of(address).map_err(|error| wrong_address(address, &error))?;
        let failed = |error: postgres::Error| {
            let mut fault = fault_of(address, &error);
            if fault.reason == DatabaseReason::NotAllowed
                && config.get_password().is_none()
                && let Some(why) = why_no_password(address)
            {
                fault.detail = format!("{}; {why}", fault.detail);
            }
            fault
        };
        let client = connect(&config, || tls(address), failed)?;
        let mut connection = Self { client, in_transaction: false, system: String::new() };
        // Databases that only speak PostgreSQL's language may not have it; a standby has no timeline of its own.
        let probe = format!("SELECT system_identifier, {TIMELINE} FROM pg_control_system()");
        if let Ok(results) = connection.run(&probe) {
            let row = results.first().and_then(ResultSet::first);
            connection.system = row.map(|row| row.text(0).to_owned()).unwrap_or_default();
        }
        Ok(connection)
    }

    pub(crate) fn timeline(&self) -> &'static str {
        if self.system.is_empty() { "''" } else { TIMELINE }
    }

    /// The server and its timeline; empty if they are not known.
    pub(crate) fn server(&self, timeline: &str) -> String {
        if self.system.is_empty() { String::new() } else { format!("{}/{timeline}", self.system) }
    }

    /// Sends statements in one round trip, and returns the results of each.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Vec<ResultSet>, postgres::Error> {
        let mut results = vec![ResultSet::default()];
        for message in self.client.simple_query(sql)? {
            match message {
                SimpleQueryMessage::Row(row) => {
                    if let Some(last) = results.last_mut() {
                        last.rows.push(row);
                    }
                }
                SimpleQueryMessage::CommandComplete(count) => {
                    if let Some(last) = results.last_mut() {
                        last.count = count;
                    }
                    results.push(ResultSet::default());
                }
                SimpleQueryMessage::RowDescription(_) | _ => {}
            }
        }
        results.pop();
        Ok(results)
    }

    pub(crate) fn begin(&mut self, sql: &str) -> Result<Vec<ResultSet>, postgres::Error> {
        self.in_transaction = true;
        self.run(sql)
    }

    pub(crate) fn end(&mut self, sql: &str) -> Result<Vec<ResultSet>, postgres::Error> {
        let results = self.run(sql)?;
        self.in_transaction = false;
        Ok(results)
    }

    /// The statements have ended the transaction that they began.
    pub(crate) fn ended(&mut self) {
        self.in_transaction = false;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) fn roll_back(&mut self) {
        if std::mem::take(&mut self.in_transaction) && self.client.simple_query("ROLLBACK").is_err() {
            self.in_transaction = true;
        }
    }

    /// Asks for notifications of changes. A pooler may not support it; polling does not need it.
    pub(crate) fn listen(&mut self, channel: &str) {
        let _ = self.client.simple_query(&format!("LISTEN {channel}"));
    }

    /// Waits for a notification, at most this long. Returns at once if the connection is gone.
    pub(crate) fn wait_for_notification(&mut self, at_most: Duration) -> bool {
        use postgres::fallible_iterator::FallibleIterator as _;
        let mut notifications = self.client.notifications();
        let found = notifications.timeout_iter(at_most).next();
        matches!(found, Ok(Some(_)))
    }

    fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.in_transaction
    }
}

/// Connects so that a password goes only to a server that proves that it knows it: over a socket of this machine, by SCRAM bound
/// to the certificate, or, where the person has chosen to use no TLS, by SCRAM.
pub(crate) fn connect(
    config: &Config,
    tls: impl FnOnce() -> Result<MakeRustlsConnect, DatabaseError>,
    failed: impl Fn(postgres::Error) -> DatabaseError,
) -> Result<Client, DatabaseError> {
    if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
        return config.connect(NoTls).map_err(failed);
    }
    let is_open = config.get_ssl_mode() == SslMode::Disable;
    let mut config = config.clone();
    config.ssl_mode(SslMode::Require);
    let connected = match is_open {
        true => config.ssl_negotiation(SslNegotiation::Direct).connect(OnlyScram),
        false => config.channel_binding(ChannelBinding::Require).connect(tls()?),
    };
    connected.map_err(failed)
}

/// True if a client without a password gets in on one of the ways to a server.
pub(crate) fn lets_anyone_in(address: &Address) -> bool {
    ways_in(address).unwrap_or_default().into_iter().any(|mut way| {
        let in_clear = way.ssl_mode(SslMode::Disable).connect(NoTls).is_ok();
        in_clear || tls(address).is_ok_and(|tls| way.ssl_mode(SslMode::Require).connect(tls).is_ok())
    })
}

fn tls(address: &Address) -> Result<MakeRustlsConnect, DatabaseError> {
    let failed = |error: &dyn std::fmt::Display| {
        DatabaseError::new(address, DatabaseReason::Unreachable, format!("TLS: {error}"))
    };
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read is left out; without the right one, the connection fails.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

pub(crate) struct Pool {
    address: Address,
    free: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, free: Mutex::default() }
    }

    /// A free connection or a new one.
    pub(crate) fn take(&self) -> Result<Connection, DatabaseError> {
        loop {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match free {
                Some(connection) if connection.is_usable() => return Ok(connection),
                Some(_) => {}
                None => return Connection::open(&self.address),
            }
        }
    }

    pub(crate) fn put(&self, mut connection: Connection) {
        connection.roll_back();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_usable() && free.len() < KEPT {
            free.push(connection);
        }
    }
}
