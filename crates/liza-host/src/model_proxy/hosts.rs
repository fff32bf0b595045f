//! The hosts that a session may reach: from the agent program, from variables with addresses, from the settings.

use std::fmt;
use std::str::FromStr;

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelHost {
    /// In lower case.
    pub name: String,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not HOST or HOST:PORT")]
pub struct NotAHost(String);

impl FromStr for ModelHost {
    type Err = NotAHost;

    /// Reads `HOST`, `HOST:PORT` or an address such as `https://HOST/path`.
    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let (scheme, rest) = text.trim().split_once("://").unwrap_or(("https", text.trim()));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        let default = if scheme.eq_ignore_ascii_case("http") { HTTP } else { HTTPS };
        Self::in_authority(authority, default).ok_or_else(|| NotAHost(text.to_owned()))
    }
}

impl ModelHost {
    /// Reads `HOST` or `HOST:PORT`; an address of version 6 is in brackets.
    pub(crate) fn in_authority(authority: &str, default: u16) -> Option<Self> {
        let (name, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (name, port) = rest.split_once(']')?;
                (name, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
            }
            None => match authority.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (authority, None),
            },
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let port = port.map_or(Some(default), |port| port.parse().ok().filter(|port| *port != 0))?;
        // A name with a dot at the end is the same name.
        Some(Self { name: name.trim_end_matches('.').to_ascii_lowercase(), port })
    }
}

impl fmt::Display for ModelHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        match (*port == HTTPS, name.contains(':')) {
            (true, _) => f.write_str(name),
            (false, true) => write!(f, "[{name}]:{port}"),
            (false, false) => write!(f, "{name}:{port}"),
        }
    }
}

pub fn hosts_of<'t>(texts: impl Iterator<Item = &'t String>) -> Result<Vec<ModelHost>, NotAHost> {
    let mut hosts = texts.map(|text| text.parse()).collect::<Result<Vec<ModelHost>, _>>()?;
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-06
    #[test]
    fn hosts_are_read_from_names_and_addresses() {
        for (text, expected) in [
            ("api.example.com", "api.example.com"),
            ("API.Example.com.", "api.example.com"),
            ("localhost:11434", "localhost:11434"),
            ("https://api.example.com/v1?x=y", "api.example.com"),
            ("http://user:secret@models.example.com/v1", "models.example.com:80"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(text.parse::<ModelHost>().unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "a b", "host:", "host:0", "host:99999", "[::1", "https:///path", "*.example.com"] {
            assert!(text.parse::<ModelHost>().is_err(), "{text}");
        }
    }
}
