//! Connection options for a database address, and the password from outside. Nothing here shows a password:
//! an address that has one is refused, and messages quote no part of a wrong address.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_store::backend::PASSWORD_FILE_ENV;
use liza_store::{Address, AddressError, STORE_URL_ENV};
use postgres::Config;
use postgres::config::{Host, SslMode};

const DEFAULT_PORT: u16 = 5432;

/// The longest time for a connection, and for sent data to stay unconfirmed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time for a connection that must be refused.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);
const UNCONFIRMED_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn check(text: &str) -> Result<(), AddressError> {
    let config = parsed(text)?;
    if config.get_password().is_some() {
        return Err(AddressError::HasPassword);
    }
    // The password is chosen by the name of the host; it must not be sent to another machine under that name.
    if !config.get_hostaddrs().is_empty() {
        return Err(AddressError::Invalid { reason: "hostaddr is not supported".to_owned() });
    }
    if config.get_hosts().is_empty() {
        return Err(AddressError::Invalid { reason: "it names no host".to_owned() });
    }
    let sockets = config.get_hosts().iter().filter(|host| matches!(host, Host::Unix(_))).count();
    if sockets > 0 && sockets < config.get_hosts().len() {
        return Err(AddressError::Invalid { reason: "it mixes hosts and sockets".to_owned() });
    }
    if config.get_dbname().is_none_or(str::is_empty) {
        return Err(AddressError::Invalid { reason: "it names no database".to_owned() });
    }
    Ok(())
}

/// The ways on which a client without a password could get in: the address, and for a server of this machine, its port.
pub(crate) fn ways_in(address: &Address) -> Result<Vec<Config>, AddressError> {
    let given = parsed(address.as_str())?;
    let mut ways = vec![given.clone()];
    if given.get_hosts().iter().all(is_local) {
        let port = given.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
        for host in ["127.0.0.1", "::1"] {
            let mut way = Config::new();
            way.host(host).port(port);
            if let Some(name) = given.get_dbname() {
                way.dbname(name);
            }
            if let Some(user) = given.get_user() {
                way.user(user);
            }
            ways.push(way);
        }
    }
    for way in &mut ways {
        way.connect_timeout(TRY_TIMEOUT);
    }
    Ok(ways)
}

/// The connection options, with the password of this machine.
pub(crate) fn config_of(address: &Address) -> Result<Config, AddressError> {
    let mut config = parsed(address.as_str())?;
    if let Some(password) = password(&config)? {
        config.password(password);
    }
    // Also on this machine: a session could answer at a port, and hand the proof of the password on to the server.
    let is_port = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
    if is_port && !is_open_by_choice(&config) {
        config.ssl_mode(SslMode::Require);
    }
    if config.get_application_name().is_none() {
        config.application_name("liza");
    }
    config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(UNCONFIRMED_TIMEOUT);
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(3));
    config.keepalives_retries(3);
    Ok(config)
}

fn parsed(text: &str) -> Result<Config, AddressError> {
    let invalid = |reason: &str| AddressError::Invalid { reason: reason.to_owned() };
    if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        return Err(invalid("it does not begin with postgres://"));
    }
    // The error of the parser could quote a password.
    with_known_modes(text).parse().map_err(|_| invalid("it has an unknown option or an invalid value"))
}

/// Replaces modes of TLS that the parser doesn't know: PostgreSQL's `verify-full` is what we always do.
fn with_known_modes(text: &str) -> String {
    let Some((place, options)) = text.split_once('?') else { return text.to_owned() };
    let known = options.split('&').map(|option| match option {
        "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require",
        other => other,
    });
    format!("{place}?{}", known.collect::<Vec<_>>().join("&"))
}

/// True if this machine's own variable also turns off encryption: the project's file alone can't.
fn is_open_by_choice(config: &Config) -> bool {
    let given = env::var(STORE_URL_ENV).ok().and_then(|text| parsed(text.trim()).ok());
    let is_open = |config: &Config| config.get_ssl_mode() == SslMode::Disable;
    is_open(config) && given.is_some_and(|given| is_open(&given) && place(&given) == place(config))
}

/// True if the host is this machine, so that nothing crosses a network.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
    }
}

/// The password from the variable or from a password file.
fn password(config: &Config) -> Result<Option<Vec<u8>>, AddressError> {
    if let Some(text) = env::var_os(STORE_URL_ENV).filter(|text| !text.is_empty()) {
        let given = text.to_str().and_then(|text| parsed(text.trim()).ok());
        let given = given.ok_or(AddressError::InvalidVariable)?;
        // A password must not be sent to another server than the one that it is for.
        if place(&given) != place(config) {
            return Err(AddressError::OtherDatabase);
        }
        if let Some(password) = given.get_password() {
            return Ok(Some(password.to_owned()));
        }
    }
    Ok(password_file().and_then(|file| password_in(&file, config)))
}

fn password_file() -> Option<PathBuf> {
    let file = env::var_os(PASSWORD_FILE_ENV).map(PathBuf::from);
    file.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass")))
}

/// The reason why the password file gave no password; `None` if it has one, or no file was made.
pub(crate) fn why_no_password(address: &Address) -> Option<String> {
    let (file, config) = (password_file()?, parsed(address.as_str()).ok()?);
    let name = file.display();
    if !file.exists() {
        return env::var_os(PASSWORD_FILE_ENV).map(|_| format!("the password file {name} does not exist"));
    }
    if !is_private(&file) {
        return Some(format!(
            "the password file {name} is not used, since others can read it: chmod 600 {name}"
        ));
    }
    let has_none = password_in(&file, &config).is_none();
    has_none.then(|| format!("the password file {name} has no line for this address"))
}

fn place(config: &Config) -> (Vec<String>, Vec<u16>, Option<&str>, Option<&str>) {
    let ports = if config.get_ports().is_empty() { vec![DEFAULT_PORT] } else { config.get_ports().to_vec() };
    (host_names(config), ports, config.get_dbname(), config.get_user())
}

fn host_names(config: &Config) -> Vec<String> {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.to_string_lossy().into_owned(),
    };
    config.get_hosts().iter().map(name).collect()
}

/// The password in a file with lines `host:port:database:user:password`, where `*` matches anything.
fn password_in(file: &Path, config: &Config) -> Option<Vec<u8>> {
    if !is_private(file) {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT).to_string();
    let hosts = host_names(config);
    let user = config.get_user().unwrap_or_default();
    let found = text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split_fields(line);
        let [host, line_port, database, line_user, password] = fields.as_slice() else { return None };
        let is = |field: &str, value: &str| field == "*" || field == value;
        let matches =
            hosts.iter().any(|name| is(host, name) || (host == "localhost" && name.starts_with('/')))
                && is(line_port, &port)
                && is(database, config.get_dbname().unwrap_or_default())
                && is(line_user, user);
        matches.then(|| password.clone())
    });
    found.map(String::into_bytes)
}

/// True if only its owner can read the file, as PostgreSQL's own programs require.
fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 == 0)
}

/// The fields of a line; a backslash makes the next character part of its field.
fn split_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, fields.last_mut()) {
            ('\\', Some(field)) => field.extend(chars.next()),
            (':', _) => fields.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-01
    #[test]
    fn an_address_has_a_host_and_a_database_and_no_password() {
        for valid in
            ["postgres://liza@db.example:5433/team", "postgresql:///team?host=/run/postgresql&user=liza"]
        {
            assert_eq!(address(valid).unwrap().as_str(), valid);
        }
        for secret in ["postgres://liza:hunter2@db/team", "postgres://db/team?user=liza&password=hunter2"] {
            let error = address(secret).unwrap_err();
            assert_eq!(error, AddressError::HasPassword);
            assert!(!error.to_string().contains("hunter2"));
        }
        for invalid in [
            "db/team",
            "postgres://",
            "postgres://db",
            "postgres://a:hunter2@db:x/team",
            "postgres://db.example/team?hostaddr=10.0.0.5",
            "postgres://db.example/team?host=/run/postgresql",
        ] {
            let error = address(invalid).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    /// Covers: MM-01
    #[test]
    fn a_port_is_reached_only_with_tls() {
        let mode = |text: &str| parsed_config(text).get_ssl_mode();
        assert_eq!(mode("postgres://liza@db.example/team"), SslMode::Require);
        // Only together with the variable of this machine.
        assert_eq!(mode("postgres://liza@db.example/team?sslmode=disable"), SslMode::Require);
        for local in ["127.0.0.1/team", "localhost/team?sslmode=prefer", "[::1]/team?sslmode=disable"] {
            assert_eq!(mode(&format!("postgres://liza@{local}")), SslMode::Require, "{local}");
        }
        for verified in ["verify-full", "verify-ca", "require"] {
            let address = format!("postgres://liza@127.0.0.1/team?sslmode={verified}&connect_timeout=3");
            assert_eq!(mode(&address), SslMode::Require, "{verified}");
        }
    }

    fn parsed_config(text: &str) -> Config {
        config_of(&address(text).unwrap()).unwrap()
    }

    fn address(text: &str) -> Result<Address, AddressError> {
        crate::install();
        text.parse()
    }

    /// Covers: MM-01
    #[test]
    fn a_line_of_a_password_file_is_split_at_its_colons() {
        assert_eq!(split_fields(r"h:1:d:u:a\:b\\c"), ["h", "1", "d", "u", r"a:b\c"]);
    }
}
