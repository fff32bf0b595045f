//! The kind of an agent program's error: by the HTTP status if it names one, else by the words of its own
//! error record. Ordinary output is never searched.

use liza_core::model::{ClientFault, FaultKind, LimitReset, Seconds, Timestamp};
use liza_core::text::one_line;
use liza_host::local_time::local_clock;

use super::clock_time::clock_time;

const MESSAGE_MAX: usize = 300;

/// Words of error records, in the order in which they decide.
const WORDS: [(FaultKind, &[&str]); 5] = [
    (
        FaultKind::Refused,
        &["usage policy", "usage policies", "content_filter", "prohibited_content", "invalid_prompt"],
    ),
    (
        FaultKind::ContextFull,
        &[
            "prompt_too_long",
            "prompt is too long",
            "context length",
            "context_length",
            "context window",
            "ran out of room",
            "maximum context",
            "context limit",
            "contextoverflow",
            "input token count exceeds",
        ],
    ),
    (
        FaultKind::Quota,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "usage limit",
            "usage_limit",
            "quota",
            "credit balance",
            "insufficient_quota",
            "resource_exhausted",
            "resource exhausted",
            "too many requests",
            "hit your limit",
            "limit reached",
            "billing",
        ],
    ),
    (
        FaultKind::Auth,
        &[
            "unauthorized",
            "authentication",
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api key not found",
            "no api key",
            "missing api key",
            "api key is missing",
            "missing environment variable",
            "not logged in",
            "please run /login",
            "login required",
            "log in",
            "sign in again",
            "refresh token",
            "oauth token",
            "token expired",
            "permission_error",
            "missing bearer",
            "credentials",
            "providerautherror",
            "no provider configured",
            "gh auth login",
        ],
    ),
    (
        FaultKind::Overloaded,
        &[
            "overloaded",
            "service unavailable",
            "temporarily unavailable",
            "internal server error",
            "bad gateway",
            "gateway timeout",
            "server error",
            "server_error",
            "stream disconnected",
            "connection refused",
            "connection reset",
            "connection closed",
            "connection error",
            "error sending request",
            "timed out",
            "fetch failed",
            "network error",
            "socket hang up",
            "at capacity",
            "high demand",
            "connection lost",
            "could not connect",
            "unable to connect",
            "waiting for network",
            "network is unreachable",
            "name resolution",
            "dns error",
            "getaddrinfo",
            "econnre",
        ],
    ),
];

pub(super) fn fault(status: Option<u64>, message: &str) -> ClientFault {
    let kind = of_status(status).or_else(|| of_words(message)).unwrap_or(FaultKind::Crashed);
    of_kind(kind, message)
}

pub(super) fn of_kind(kind: FaultKind, message: &str) -> ClientFault {
    let reset = (kind == FaultKind::Quota).then(|| limit_reset(message, &local_clock())).flatten();
    let message = message.split('|').next().unwrap_or_default();
    ClientFault { kind, message: one_line(message, MESSAGE_MAX), reset }
}

/// The kind of an error with this HTTP status, if the status decides it.
fn of_status(status: Option<u64>) -> Option<FaultKind> {
    match status? {
        401 | 403 => Some(FaultKind::Auth),
        402 | 429 => Some(FaultKind::Quota),
        413 => Some(FaultKind::ContextFull),
        408 | 500..=599 => Some(FaultKind::Overloaded),
        _ => None,
    }
}

/// A status that the message itself names, or words that name the kind.
fn of_words(message: &str) -> Option<FaultKind> {
    let text = message.to_lowercase();
    let named = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    named.map(|(kind, _)| *kind).or_else(|| of_status(named_status(&text)))
}

/// The number after "status" or "error", as in "unexpected status 401" or "API Error: 529".
fn named_status(text: &str) -> Option<u64> {
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut before = "";
    words.find_map(|word| {
        let follows = matches!(before, "status" | "error" | "code" | "http");
        before = word;
        word.parse().ok().filter(|status| follows && (400..600).contains(status))
    })
}

/// The end of a limit in a message: `…|1749924000`, "try again in 2 hours 5 minutes", "reset after 1h2m3s",
/// "try again at 5:24 AM".
fn limit_reset(message: &str, now: &jiff::Zoned) -> Option<LimitReset> {
    let epoch = || message.rsplit_once('|')?.1.trim().parse().ok().map(reset_at);
    let text = message.to_lowercase();
    let phrases = ["try again in ", "reset after ", "resets in ", "reset in ", "retry in ", "retry after "];
    let wait = || {
        let rest = phrases.iter().find_map(|phrase| text.split_once(phrase))?.1;
        duration(rest).map(LimitReset::In)
    };
    epoch().or_else(wait).or_else(|| clock_time(message, now))
}

/// A time in seconds or milliseconds since 1970.
pub(super) fn reset_at(epoch: i64) -> LimitReset {
    let seconds = if epoch > 100_000_000_000 { epoch / 1000 } else { epoch };
    LimitReset::At(Timestamp::from_unix(seconds))
}

/// A duration at the beginning of a text: "2 hours 5 minutes", "1h2m3s", "20.5s", "90" (seconds). Rounded up.
fn duration(text: &str) -> Option<Seconds> {
    let (mut total, mut rest, mut found) = (0.0_f64, text, false);
    loop {
        rest = rest.trim_start_matches([' ', ',']).trim_start_matches("and ");
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { break };
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, remaining) = after.split_at(letters);
        let Some(length) = unit_length(unit) else { break };
        (total, found, rest) = (total + number * length, true, remaining);
    }
    let whole = (found && total.is_finite()).then(|| total.ceil().clamp(1.0, 31_536_000.0))?;
    format!("{whole:.0}").parse().ok().map(Seconds)
}

fn unit_length(unit: &str) -> Option<f64> {
    match unit {
        "d" | "day" | "days" => Some(86_400.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        // A bare number counts seconds.
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "ms" | "millisecond" | "milliseconds" => Some(0.001),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(message: &str) -> FaultKind {
        fault(None, message).kind
    }

    /// Covers: SE-01, AX-31
    #[test]
    fn the_status_decides_and_then_the_words() {
        assert_eq!(fault(Some(429), "authentication").kind, FaultKind::Quota);
        assert_eq!(fault(Some(529), "").kind, FaultKind::Overloaded);
        assert_eq!(fault(Some(400), "prompt is too long: 210000 tokens").kind, FaultKind::ContextFull);
        let cases = [
            ("unexpected status 401 Unauthorized: Missing bearer", FaultKind::Auth),
            ("Invalid API key · Please run /login", FaultKind::Auth),
            ("Missing environment variable: `MY_KEY`.", FaultKind::Auth),
            ("You've hit your usage limit. Try again in 3 hours", FaultKind::Quota),
            ("API Error: 529 overloaded_error", FaultKind::Overloaded),
            ("request failed with status 503", FaultKind::Overloaded),
            ("stream disconnected before completion", FaultKind::Overloaded),
            ("Codex ran out of room in the model's context window", FaultKind::ContextFull),
            ("segmentation fault", FaultKind::Crashed),
            ("We're currently experiencing high demand, which may cause errors.", FaultKind::Overloaded),
            ("Connection lost mid-response", FaultKind::Overloaded),
            ("Network error: Could not connect to 127.0.0.1:9", FaultKind::Overloaded),
            ("waiting for network", FaultKind::Overloaded),
            ("connect ECONNREFUSED 127.0.0.1:9", FaultKind::Overloaded),
            ("No provider configured. Run 'goose configure' first", FaultKind::Auth),
            ("Run 'gh auth login'", FaultKind::Auth),
            ("unable to respond: this appears to violate our Usage Policy", FaultKind::Refused),
            ("line 401 of the file", FaultKind::Crashed),
        ];
        for (message, expected) in cases {
            assert_eq!(kind(message), expected, "{message}");
        }
    }

    /// Covers: SE-01, SE-04
    #[test]
    fn the_end_of_a_limit_is_read_from_the_message() {
        let reset = |message: &str| fault(Some(429), message).reset;
        let cases = [
            ("usage limit reached|1749924000", Some(LimitReset::At(Timestamp::from_unix(1_749_924_000)))),
            ("usage limit reached|1749924000123", Some(LimitReset::At(Timestamp::from_unix(1_749_924_000)))),
            ("Please try again in 20s.", Some(LimitReset::In(Seconds(20)))),
            ("try again in 1 day 2 hours 5 minutes.", Some(LimitReset::In(Seconds(93_900)))),
            ("Your quota will reset after 2h13m5s.", Some(LimitReset::In(Seconds(7_985)))),
            ("retry after 90", Some(LimitReset::In(Seconds(90)))),
            ("try again in 350ms", Some(LimitReset::In(Seconds(1)))),
            ("try again in a while", None),
            ("try again in 1e999s", None),
            ("quota exceeded", None),
        ];
        for (message, expected) in cases {
            assert_eq!(reset(message), expected, "{message}");
        }
        assert_eq!(fault(Some(401), "try again in 20s").reset, None, "only a limit ends by itself");
        assert_eq!(fault(Some(429), "usage limit reached|1749924000").message, "usage limit reached");
    }
}
