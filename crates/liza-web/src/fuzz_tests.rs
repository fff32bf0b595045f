//! Requests come from anything that can connect: none makes the server fail, and none without the cookie reaches the seat.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use liza_core::model::{State, Status, Timestamp};
use liza_status::alarms::Observations;
use liza_status::view::view;
use liza_testkit::fuzz::fuzz;
use liza_testkit::team::{now, state_with};

use crate::routes::router;
use crate::{CommandResult, LogLine, OutputLine, SavedSession, Seat, TeamReading, WebServer};

/// Counts the commands.
#[derive(Default)]
struct CountingSeat(AtomicUsize);

impl Seat for CountingSeat {
    fn execute(&self, words: &[String]) -> CommandResult {
        assert!(!words.is_empty());
        self.0.fetch_add(1, Ordering::Relaxed);
        CommandResult { succeeded: true, text: words.join(" ") }
    }

    fn admits(&self, _peer: SocketAddr, _server: SocketAddr) -> bool {
        true
    }

    fn sessions(&self) -> Vec<SavedSession> {
        let agent = "coder-1".parse().unwrap();
        vec![SavedSession { name: "one-coder-1".into(), agent, about: "one".into(), started: now() }]
    }

    fn prompt(&self, _session: &SavedSession) -> Option<String> {
        Some("the prompt".to_owned())
    }

    fn output(&self, _session: &SavedSession) -> Vec<OutputLine> {
        Vec::new()
    }

    fn log(&self) -> Vec<LogLine> {
        Vec::new()
    }

    fn full_time(&self, time: Timestamp) -> String {
        time.to_string()
    }

    fn time_of_day(&self, time: Timestamp) -> String {
        time.to_string()
    }
}

/// The request in a text like that of HTTP; `None` if no server would take it for one.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let end = text.windows(2).position(|pair| pair == b"\n\n").unwrap_or(text.len());
    let (head, body) = (text.get(..end)?, text.get(end + 2..).unwrap_or_default());
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut words = lines.next()?.splitn(3, |byte| *byte == b' ');
    let mut request = Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
    }
    request.body(Body::from(body.to_vec())).ok()
}

/// Replaces the names of the secrets after the mutation, so that many requests still have them.
fn filled(bytes: &[u8], values: &[(&str, String)]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    for (name, value) in values {
        while let Some(at) = text.windows(name.len()).position(|part| part == name.as_bytes()) {
            text.splice(at..at + name.len(), value.bytes());
        }
    }
    text
}

/// Covers: PV-05
#[test]
fn fuzz_requests() {
    let seat = Arc::new(CountingSeat::default());
    let server = WebServer::bind(0, Arc::<CountingSeat>::clone(&seat)).unwrap();
    let site = Arc::clone(&server.handle().site);
    let state: Arc<State> = Arc::new(state_with(Status::Claimed));
    let team = Ok((Arc::clone(&state), view(&state, &Observations::default(), now())));
    server.handle().publish(TeamReading { team, log: Vec::new() });
    let address = server.handle().new_address().unwrap();
    let (host, token) = address.split_once("//").unwrap().1.split_once("/?token=").unwrap();
    let cookie = site.access.exchange(token, Instant::now()).unwrap();
    let cookie = cookie.to_str().unwrap().split_once(';').unwrap().0.split_once('=').unwrap().1.to_owned();
    let known = [("{key}", site.access.key().to_owned()), ("{host}", host.to_owned()), ("{cookie}", cookie)];
    let service = TowerToHyperService::new(router(&site));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    fuzz("requests", move |bytes, _| {
        let Some(request) = request(&filled(bytes, &known)) else { return };
        let (before, has_cookie) =
            (seat.0.load(Ordering::Relaxed), site.access.check_cookie(request.headers()).is_ok());
        let answer: Response<Body> = runtime.block_on(service.call(request)).unwrap();
        assert!(!answer.status().is_server_error(), "{answer:?}");
        let executed = seat.0.load(Ordering::Relaxed) - before;
        assert!(has_cookie || executed == 0, "a command without the cookie");
    });
}
