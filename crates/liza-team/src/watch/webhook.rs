//! The webhook of `config.escalation_webhook`: its limits, and the part of its URL that may be shown. The URL
//! is a secret: it often contains a token. Only its host may be shown.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The limit of one try, from the DNS lookup to the response.
    pub timeout: Duration,
    /// The pauses before the second try, the third try, and so on.
    pub pauses: Vec<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), pauses: [1, 5].map(Duration::from_secs).to_vec() }
    }
}

impl RetryPolicy {
    /// The longest time that a delivery can take.
    pub fn total(&self) -> Duration {
        let tries = u32::try_from(self.pauses.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.timeout.saturating_mul(tries).saturating_add(self.pauses.iter().sum())
    }

    pub fn once(&self) -> Self {
        Self { timeout: self.timeout, pauses: Vec::new() }
    }
}

/// The scheme and host of a URL; the rest may be secret.
pub(crate) fn masked_url(url: &str) -> String {
    match parts(url) {
        Some((scheme, host)) => format!("{scheme}://{host}/…"),
        None => "the URL in config.escalation_webhook".to_owned(),
    }
}

/// The scheme, and the host with its port.
pub(super) fn parts(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (known && !host.is_empty()).then_some((scheme, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SP-05
    #[test]
    fn only_the_host_of_a_url_is_shown() {
        let cases = [
            ("https://hooks.example.com/services/T0/B1/s3cr3t", "https://hooks.example.com/…"),
            ("http://me:pass@127.0.0.1:8080?token=s3cr3t", "http://127.0.0.1:8080/…"),
            ("https://a@b@c.example#x", "https://c.example/…"),
            ("s3cr3t", "the URL in config.escalation_webhook"),
            ("file:///etc/passwd", "the URL in config.escalation_webhook"),
        ];
        for (url, expected) in cases {
            assert_eq!(masked_url(url), expected);
        }
    }

    #[test]
    fn the_longest_delivery_is_the_sum_of_its_parts() {
        assert_eq!(RetryPolicy::default().total(), Duration::from_secs(36));
        assert_eq!(RetryPolicy::default().once().total(), Duration::from_secs(10));
    }
}
