//! Posts JSON over HTTP, with timeouts and retries. Only with the feature `webhook`.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustls::crypto::ring;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error};

use super::webhook::{RetryPolicy, masked_url, parts};

struct Failure {
    why: String,
    retry: bool,
}

/// Posts; retries failures that may be temporary.
pub fn post(url: &str, body: &str, policy: &RetryPolicy) -> Result<(), String> {
    let agent = agent(url, policy.timeout)?;
    let mut pauses = policy.pauses.iter();
    let mut tries = 1;
    loop {
        let failure = match try_once(&agent, url, body, policy.timeout) {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match pauses.next().filter(|_| failure.retry) {
            Some(pause) => thread::sleep(*pause),
            None if tries == 1 => return Err(failure.why),
            None => return Err(format!("{} ({tries} tries)", failure.why)),
        }
        tries += 1;
    }
}

fn is_loopback(host: &str) -> bool {
    let name = host.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let name = name.unwrap_or_else(|| host.split(':').next().unwrap_or_default());
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn agent(url: &str, limit: Duration) -> Result<Agent, String> {
    let (scheme, host) = parts(url).ok_or("not an http:// or https:// URL")?;
    let mut config = Agent::config_builder()
        .timeout_global(Some(limit))
        .http_status_as_error(false)
        // A redirected POST would arrive as a GET, if at all.
        .max_redirects(0)
        .user_agent(concat!("liza/", env!("CARGO_PKG_VERSION")));
    if is_loopback(host) {
        config = config.proxy(None);
    }
    if scheme.eq_ignore_ascii_case("https") {
        config = config.tls_config(tls()?);
    }
    Ok(config.build().new_agent())
}

/// TLS with the system's trust store, which includes a company's own certificates.
fn tls() -> Result<TlsConfig, String> {
    static TRUSTED: OnceLock<Arc<Vec<Certificate<'static>>>> = OnceLock::new();
    let trusted = TRUSTED.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs().certs;
        Arc::new(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
    });
    if trusted.is_empty() {
        return Err("this system has no trusted certificates; install the package ca-certificates".to_owned());
    }
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::clone(trusted)))
        .build())
}

fn try_once(agent: &Agent, url: &str, body: &str, limit: Duration) -> Result<(), Failure> {
    let sent = agent.post(url.trim()).content_type("application/json").send(body);
    match sent.map(|response| response.status()) {
        Ok(status) if status.is_success() => Ok(()),
        Ok(status) => {
            let retry = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            let moved = if status.is_redirection() {
                "; set config.escalation_webhook to the URL that it redirects to"
            } else {
                ""
            };
            Err(Failure { why: format!("HTTP status {}{moved}", status.as_u16()), retry })
        }
        Err(Error::Timeout(_)) => {
            Err(Failure { why: format!("no response within {} s", limit.as_secs_f32()), retry: true })
        }
        // Some errors quote the URL.
        Err(error) => {
            Err(Failure { why: error.to_string().replace(url.trim(), &masked_url(url)), retry: true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_without_a_proxy() {
        assert!(
            ["localhost:1", "127.0.0.1", "127.9.9.9:80", "[::1]:80"].iter().all(|host| is_loopback(host))
        );
        assert!(["example.com", "10.0.0.1", "[fe80::1]:80"].iter().all(|host| !is_loopback(host)));
    }

    /// Covers: SP-05
    #[test]
    fn only_http_is_posted_to() {
        assert!(post("ftp://x/s3cr3t", "{}", &RetryPolicy::default()).unwrap_err().contains("not an http"));
    }
}
