//! A client's request to a proxy: its first lines, parsed without touching a connection.

use super::hosts::ModelHost;

/// Fields for a proxy or for one connection; and the host, which is that of the target.
const DROPPED: [&str; 4] = ["proxy-connection", "proxy-authorization", "connection", "host"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub host: ModelHost,
    /// The first bytes to send; empty for a tunnel.
    pub first: Vec<u8>,
}

/// The length of the first lines, with the empty line after them, if they are complete.
pub(super) fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads the first lines of a request.
pub(super) fn parse(head: &[u8]) -> Option<ProxyRequest> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    // Some servers read another line there: a dropped field could hide in it.
    if lines.clone().any(|line| line.starts_with([' ', '\t']) || line.contains(['\r', '\n'])) {
        return None;
    }
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        return Some(ProxyRequest { host: ModelHost::in_authority(target, 443)?, first: Vec::new() });
    }
    let rest = target.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = ModelHost::in_authority(authority, 80)?;
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kept = lines.filter(|line| !line.is_empty() && !DROPPED.contains(&name(line).as_str()));
    // One request for each connection: later ones would not be checked.
    let own = [format!("{method} {path} {version}"), format!("Host: {authority}")];
    let first = own.into_iter().chain(kept.map(str::to_owned));
    let first: String = first.chain(["Connection: close".to_owned()]).map(|line| line + "\r\n").collect();
    Some(ProxyRequest { host, first: (first + "\r\n").into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(request: &str) -> Option<String> {
        parse(request.as_bytes()).map(|request| request.host.to_string())
    }

    /// Covers: IS-06
    #[test]
    fn a_tunnel_and_a_plain_request_name_their_host() {
        let tunnel = parse(b"CONNECT Api.Example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((tunnel.host.to_string().as_str(), tunnel.first.len()), ("api.example.com", 0));
        let plain = "POST http://localhost:8080/v1/x?y=z HTTP/1.1\r\nHost: other.example\r\nhost : x\r\nA: b\r\n\
                     Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\n\r\n";
        let plain = parse(plain.as_bytes()).unwrap();
        assert_eq!(plain.host.to_string(), "localhost:8080");
        let first = "POST /v1/x?y=z HTTP/1.1\r\nHost: localhost:8080\r\nA: b\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(plain.first).unwrap(), first);
        assert_eq!(host("GET http://example.com HTTP/1.0\r\n\r\n").as_deref(), Some("example.com:80"));
    }

    /// Covers: IS-06
    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for request in [
            "",
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "CONNECT example.com:0 HTTP/1.1\r\n\r\n",
            "CONNECT a b HTTP/1.1\r\n\r\n",
            "CONNECT user@example.com:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.com:443 SSH-2.0\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nA: b\nHost: other.example\r\n\r\n",
            "GET http://example.com/\nHost:other.example HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\n Host: other.example\r\n\r\n",
        ] {
            assert_eq!(host(request), None, "{request:?}");
        }
        assert_eq!(head_length(b"GET\r\n\r\nrest"), Some(7));
        assert_eq!(head_length(b"GET\r\n"), None);
    }
}
