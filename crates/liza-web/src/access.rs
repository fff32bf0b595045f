//! Access to the pages: a token that works once and for a minute, exchanged for a cookie; and the right Host
//! and Origin.
//!
//! Both secrets are in memory only. All addresses begin with a key that only the person's browser has seen,
//! and the cookie is limited to it: a browser sends cookies to every port of a host, so to other servers on
//! this machine.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, Method, header};
use liza_host::random_text::{is_equal, random_hex};

/// The time for which a token works.
pub(crate) const TOKEN_LIFE: Duration = Duration::from_secs(60);

/// The most browsers in use at once; the oldest one has to get a new address.
const MAX_COOKIES: usize = 16;

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It was sent to another name, which only points here.
    ForeignHost,
    /// A page of another origin sent it.
    ForeignOrigin,
    NoCookie,
    /// The token is wrong, used or old.
    BadToken,
}

pub(crate) struct Access {
    port: u16,
    key: String,
    secrets: Mutex<Secrets>,
}

#[derive(Default)]
struct Secrets {
    tokens: VecDeque<(String, Instant)>,
    cookies: VecDeque<String>,
}

impl Access {
    /// New secrets for a server on that port.
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        Ok(Self { port, key: random_hex(16)?, secrets: Mutex::default() })
    }

    /// The first part of the path of every page.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// A new address that works once, until [`TOKEN_LIFE`] has passed.
    pub(crate) fn new_address(&self, now: Instant) -> io::Result<String> {
        let token = random_hex(32)?;
        let address = format!("http://{}/?token={token}", self.host());
        let mut secrets = self.secrets();
        secrets.tokens.retain(|(_, end)| *end > now);
        secrets.tokens.push_back((token, now + TOKEN_LIFE));
        Ok(address)
    }

    /// The cookie for a token, which cannot be used again.
    pub(crate) fn exchange(&self, token: &str, now: Instant) -> Result<HeaderValue, Denied> {
        let mut secrets = self.secrets();
        secrets.tokens.retain(|(_, end)| *end > now);
        let found = secrets.tokens.iter().position(|(known, _)| is_equal(known, token));
        let found = found.and_then(|place| secrets.tokens.remove(place));
        if found.is_none() {
            return Err(Denied::BadToken);
        }
        let cookie = random_hex(32).map_err(|_| Denied::BadToken)?;
        if secrets.cookies.len() >= MAX_COOKIES {
            secrets.cookies.pop_front();
        }
        secrets.cookies.push_back(cookie.clone());
        let text = format!("liza={cookie}; Path=/{}/; HttpOnly; SameSite=Strict", self.key);
        HeaderValue::from_str(&text).map_err(|_| Denied::BadToken)
    }

    /// Checks that a request was sent to this server, by a page of this server or by the person.
    pub(crate) fn check_source(&self, method: &Method, headers: &HeaderMap) -> Result<(), Denied> {
        if single(headers, header::HOST.as_str()) != Some(self.host().as_str()) {
            return Err(Denied::ForeignHost);
        }
        let own = format!("http://{}", self.host());
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let origin = headers.get_all(header::ORIGIN).iter().count();
        let own_origin = single(headers, header::ORIGIN.as_str()) == Some(own.as_str());
        // A browser sends it with everything that changes something.
        let allowed = own_origin || (reads && origin == 0);
        let site = headers.get("sec-fetch-site");
        let same_site = site.is_none_or(|site| site == "same-origin" || (reads && site == "none"));
        // A link on another page may lead here; without the cookie, which it does not get, it is refused later.
        let navigates = reads && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
        if allowed && (same_site || navigates) { Ok(()) } else { Err(Denied::ForeignOrigin) }
    }

    /// Checks that a request has a cookie of this server.
    pub(crate) fn check_cookie(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let given: Vec<&str> = texts
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().strip_prefix("liza="))
            .collect();
        let secrets = self.secrets();
        let known = given.iter().any(|given| secrets.cookies.iter().any(|known| is_equal(known, given)));
        if known { Ok(()) } else { Err(Denied::NoCookie) }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A header that is there exactly once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(7000).unwrap()
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn token(address: &str) -> &str {
        address.split_once("token=").unwrap().1
    }

    /// Covers: UI-02
    #[test]
    fn a_token_works_once_and_for_a_minute() {
        let (access, now) = (access(), Instant::now());
        let address = access.new_address(now).unwrap();
        assert!(address.starts_with("http://127.0.0.1:7000/?token="), "{address}");
        assert_eq!(access.exchange("", now), Err(Denied::BadToken));
        let cookie = access.exchange(token(&address), now).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(cookie.contains(&format!("; Path=/{}/;", access.key())), "{cookie}");
        assert_eq!(access.exchange(token(&address), now), Err(Denied::BadToken));
        let late = access.new_address(now).unwrap();
        assert_eq!(access.exchange(token(&late), now + TOKEN_LIFE), Err(Denied::BadToken));
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(access.check_cookie(&headers(&[("cookie", &format!("a=b; {pair}"))])), Ok(()));
        assert_eq!(access.check_cookie(&headers(&[("cookie", "liza=")])), Err(Denied::NoCookie));
        assert_eq!(access.check_cookie(&HeaderMap::new()), Err(Denied::NoCookie));
    }

    /// Covers: UI-02
    #[test]
    fn only_this_host_and_this_origin_are_served() {
        let access = access();
        let check =
            |method: Method, all: &[(&'static str, &str)]| access.check_source(&method, &headers(all));
        let host = ("host", "127.0.0.1:7000");
        let origin = ("origin", "http://127.0.0.1:7000");
        assert_eq!(check(Method::GET, &[host]), Ok(()));
        assert_eq!(check(Method::POST, &[host, origin]), Ok(()));
        for foreign in ["evil.example:7000", "127.0.0.1:7001", "localhost:7000", "127.0.0.1"] {
            assert_eq!(check(Method::GET, &[("host", foreign)]), Err(Denied::ForeignHost), "{foreign}");
        }
        assert_eq!(check(Method::GET, &[]), Err(Denied::ForeignHost));
        assert_eq!(check(Method::GET, &[host, host]), Err(Denied::ForeignHost));
        assert_eq!(check(Method::POST, &[host]), Err(Denied::ForeignOrigin));
        for foreign in ["null", "http://127.0.0.1:7001", "http://evil.example", "https://127.0.0.1:7000"] {
            assert_eq!(check(Method::POST, &[host, ("origin", foreign)]), Err(Denied::ForeignOrigin));
            assert_eq!(check(Method::GET, &[host, ("origin", foreign)]), Err(Denied::ForeignOrigin));
        }
        let cross = ("sec-fetch-site", "same-site");
        assert_eq!(check(Method::POST, &[host, origin, cross]), Err(Denied::ForeignOrigin));
        assert_eq!(check(Method::GET, &[host, cross]), Err(Denied::ForeignOrigin));
        assert_eq!(check(Method::GET, &[host, cross, ("sec-fetch-mode", "navigate")]), Ok(()));
    }
}
