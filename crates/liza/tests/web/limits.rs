//! What one client can use up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::fixture::Web;
use crate::support::TestProject;

/// Covers: UI-02
#[test]
fn bodies_headers_and_silent_connections_are_limited() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let (port, visitor) = (web.port(), web.visitor());
    let long = "x".repeat(70 << 10);
    assert_eq!(visitor.act(&[("action", "note-all"), ("text", &long)]).status, 413);
    let header = visitor.get("").with("X-Long", &long).send(port);
    assert_ne!(header.status, 200, "{header:?}");
    assert!(!project.state().contains("xxxx"));

    // More silent connections than there are places: they are closed, and a person is served.
    let began = Instant::now();
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let mut partial = TcpStream::connect(("127.0.0.1", port)).unwrap();
    partial.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    assert!(visitor.page("").contains("Retry everything"));
    for mut stream in silent.into_iter().chain([partial]) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
}
