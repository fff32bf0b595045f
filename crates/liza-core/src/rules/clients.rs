//! The hold of a client for the whole team, its length, and the choice of an agent's client.
//!
//! A client is held when it is not logged in, when a limit is reached, when its provider does not answer, when
//! a session ends without a word of its model, or when its sessions fail alike on several tasks. Sessions that fail by its fault count against no task, so
//! this bounds them: while a client is held, one session at a time tries it again, with growing pauses and no
//! more than [`MAX_PROBES`] times.

use crate::model::{
    AlikeFailures, ClientFault, ClientHold, ClientRecord, FaultKind, Repair, Seconds, Sprint, Timestamp,
};

/// After this many failed tries, only the human lets a client continue.
pub const MAX_PROBES: u32 = 20;

/// Sessions in a row that must fail alike before the client is at fault.
const ALIKE_SESSIONS: u32 = 3;
/// The number of tasks on which they must have failed.
const ALIKE_SUBJECTS: usize = 2;
const FIRST_PAUSE: Seconds = Seconds(30);
/// The longest pause, unless the provider names a longer one.
const LONGEST_PAUSE: Seconds = Seconds::minutes(30);
const SIGN_MAX: usize = 80;

/// The pause after that many tries: 30 s, doubling, at most 30 min.
pub fn probe_pause(probes: u32) -> Seconds {
    let doubled = FIRST_PAUSE.0.checked_shl(probes.min(16)).unwrap_or(LONGEST_PAUSE.0);
    Seconds(doubled.min(LONGEST_PAUSE.0))
}

/// The end of a session, as far as its client is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEnd {
    pub fault: Option<ClientFault>,
    /// True if it ended by itself without a result.
    pub failed: bool,
    /// True if its model said nothing.
    pub is_silent: bool,
    /// Its ending, such as `exited 1`.
    pub end: String,
    pub said: Option<String>,
    /// The task, or `plan`.
    pub subject: String,
    pub repair: Option<Repair>,
}

/// The client after a session of it, and true if the client is at fault for the session's failure.
pub fn after_end(before: &ClientRecord, end: &ClientEnd, now: Timestamp) -> (ClientRecord, bool) {
    if let Some(fault) = end.fault.as_ref().filter(|fault| fault.kind.is_of_client()) {
        let hold = hold(before.hold.as_ref(), fault, end.repair.clone(), now);
        return (ClientRecord { hold: Some(hold), failures: None }, true);
    }
    if !end.failed {
        return (ClientRecord::default(), false);
    }
    let said = end.said.as_deref().unwrap_or("it printed nothing");
    if end.is_silent {
        let message = format!("{} without an answer of the model: {said}", end.end);
        let fault = ClientFault { kind: FaultKind::Crashed, message, reset: None };
        let hold = hold(before.hold.as_ref(), &fault, end.repair.clone(), now);
        return (ClientRecord { hold: Some(hold), failures: None }, true);
    }
    let failures = add_failure(before.failures.as_ref(), sign(&end.end, said), &end.subject);
    let alike = failures.count >= ALIKE_SESSIONS && failures.subjects.len() >= ALIKE_SUBJECTS;
    let hold = alike.then(|| {
        let message = format!("{} sessions in a row {}: {said}", failures.count, end.end);
        let fault = ClientFault { kind: FaultKind::Crashed, message, reset: None };
        hold(before.hold.as_ref(), &fault, end.repair.clone(), now)
    });
    (ClientRecord { hold, failures: Some(failures) }, alike)
}

fn add_failure(before: Option<&AlikeFailures>, sign: String, subject: &str) -> AlikeFailures {
    let same = before.filter(|before| before.sign == sign);
    let mut failures = same.cloned().unwrap_or(AlikeFailures { sign, count: 0, subjects: Vec::new() });
    failures.count = failures.count.saturating_add(1);
    if failures.subjects.len() < ALIKE_SUBJECTS && !failures.subjects.iter().any(|known| known == subject) {
        failures.subjects.push(subject.to_owned());
    }
    failures
}

/// The ending of a session, without the digits and the punctuation of its words.
fn sign(end: &str, said: &str) -> String {
    let folded = said.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase);
    let folded: String = folded.take(SIGN_MAX).collect();
    format!("{end}: {folded}")
}

fn hold(
    before: Option<&ClientHold>,
    fault: &ClientFault,
    repair: Option<Repair>,
    now: Timestamp,
) -> ClientHold {
    let probes = before.map_or(0, |before| before.probes);
    let pause = now + probe_pause(probes);
    let until = match fault.kind {
        FaultKind::Auth => None,
        _ if probes >= MAX_PROBES => None,
        // A limit that has ended already, as the provider says, is tried again after the pause.
        FaultKind::Quota => Some(fault.reset.map_or(pause, |reset| reset.time(now).max(pause))),
        FaultKind::Overloaded
        | FaultKind::ContextFull
        | FaultKind::PermissionDenied
        | FaultKind::Refused
        | FaultKind::Crashed => Some(pause),
    };
    let since = before.map_or(now, |before| before.since);
    ClientHold { kind: fault.kind, message: fault.message.clone(), repair, since, until, probes }
}

/// The hold while a session tries the client again: the next try comes later in any case.
pub(crate) fn probing(hold: &ClientHold, now: Timestamp) -> ClientHold {
    let probes = hold.probes.saturating_add(1);
    ClientHold { probes, until: Some(now + probe_pause(probes)), ..hold.clone() }
}

/// The way in which the human lets a held client continue.
#[derive(Debug, Clone, Copy)]
pub struct Continuation<'a> {
    /// A running team tries it again; without one, a start does it.
    pub has_team: bool,
    /// The command that starts the team.
    pub run: &'a str,
}

impl<'a> Continuation<'a> {
    fn command(self) -> &'a str {
        if self.has_team { "liza resume" } else { self.run }
    }
}

/// The first verb for a running team: it keeps the variables of its start, so it may have to end first.
pub fn first_verb(hold: &ClientHold) -> &'static str {
    if variable_to_set(hold).is_some() { "stop" } else { "resume" }
}

/// The repair of a hold that only the human ends, and the command that lets the client continue.
pub fn repair_command(hold: &ClientHold, then: Continuation<'_>) -> String {
    let (command, run) = (then.command(), then.run);
    match (hold.until, &hold.repair) {
        (None, Some(Repair::Set { variable, .. })) if then.has_team => {
            format!("liza stop, export {variable}=KEY, then: {run}")
        }
        (None, Some(Repair::Set { variable, .. })) => format!("export {variable}=KEY, then: {command}"),
        (None, Some(Repair::Run(login))) => format!("{login}, then: {command}"),
        (Some(_), _) | (None, None) => command.to_owned(),
    }
}

/// The environment variable that has to be set, or set to something else.
fn variable_to_set(hold: &ClientHold) -> Option<&str> {
    match &hold.repair {
        Some(Repair::Set { variable, .. }) => Some(variable),
        Some(Repair::Run(_)) | None => None,
    }
}

/// The environment variable that an error names as missing: "Missing environment variable: `KEY`."
pub(crate) fn missing_variable(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("issing environment variable:")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = rest.trim_start_matches(|c| !is_part(c)).split(|c| !is_part(c)).next()?;
    (!name.is_empty()).then_some(name)
}

/// True if only the human lets it continue.
pub fn waits_for_human(client: &ClientRecord) -> bool {
    client.hold.as_ref().is_some_and(|hold| hold.until.is_none())
}

/// The sentence for a team without a client: those that only the human lets continue, each with its reason.
pub fn no_client_left(sprint: &Sprint) -> String {
    let held = sprint.clients.iter().filter(|(_, client)| waits_for_human(client));
    let why = held.filter_map(|(name, client)| {
        let hold = client.hold.as_ref()?;
        let is_auth = hold.kind == FaultKind::Auth;
        Some(match (missing_variable(&hold.message), variable_to_set(hold)) {
            (Some(variable), _) => format!("{name}: {variable} is not set"),
            (None, Some(variable)) if is_auth => format!("{name} refuses the key in {variable}"),
            (None, _) if is_auth => format!("{name} has no valid login"),
            (None, _) => format!("{name}: {}", hold.kind.describe()),
        })
    });
    format!("no agent program can be used ({})", why.collect::<Vec<_>>().join("; "))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientChoice {
    /// A client of its list, by position.
    Use(usize),
    /// The same, but held: one session tries it again.
    Probe(usize),
    /// All of them are held.
    Held {
        /// The client that is free first.
        client: String,
        hold: ClientHold,
    },
}

/// Chooses the first of the agent's clients that is not held.
pub fn choose_client(sprint: &Sprint, clients: &[String], now: Timestamp) -> ClientChoice {
    let hold_of = |name: &String| sprint.clients.get(name).and_then(|client| client.hold.as_ref());
    let mut first: Option<(&String, &ClientHold)> = None;
    for (index, name) in clients.iter().enumerate() {
        let Some(hold) = hold_of(name) else { return ClientChoice::Use(index) };
        if hold.until.is_some_and(|until| until <= now) {
            return ClientChoice::Probe(index);
        }
        let earlier = |(_, other): &(&String, &ClientHold)| comes_first(hold, other);
        if first.as_ref().is_none_or(earlier) {
            first = Some((name, hold));
        }
    }
    match first {
        Some((name, hold)) => ClientChoice::Held { client: name.clone(), hold: hold.clone() },
        None => ClientChoice::Use(0),
    }
}

fn comes_first(one: &ClientHold, other: &ClientHold) -> bool {
    match (one.until, other.until) {
        (Some(one), Some(other)) => one < other,
        (one, _) => one.is_some(),
    }
}

/// One line about a session that has ended: `claude exited 1: Invalid API key. Run claude /login`.
pub fn session_line(client: &str, end: &str, said: Option<&str>, repair: Option<&Repair>) -> String {
    let said = said.map(str::trim).filter(|said| !said.is_empty());
    let mut line = format!("{client} {end}");
    if let Some(said) = said {
        line.push_str(": ");
        line.push_str(said);
    }
    if let Some(repair) = repair {
        let ends = line.ends_with(['.', '!', '?']);
        line.push_str(if ends { " " } else { ". " });
        line.push_str(&repair.to_string());
    }
    line
}

/// The reason and the end of a hold, with the next step.
pub fn describe_hold(hold: &ClientHold, then: Continuation<'_>, now: Timestamp) -> String {
    let what = hold.kind.describe();
    let said = match hold.message.as_str() {
        "" => String::new(),
        said => format!(" ({said})"),
    };
    match hold.until {
        // The next step comes first: a narrow screen cuts the end.
        None => format!("{what}. {}{said}", way_forward(hold, then)),
        Some(until) if until <= now => format!("{what}; tried again now{said}"),
        Some(until) => format!("{what}; tried again in {}{said}", until.since(now)),
    }
}

fn way_forward(hold: &ClientHold, then: Continuation<'_>) -> String {
    let command = then.command();
    match (variable_to_set(hold), &hold.repair) {
        (Some(name), _) if then.has_team => {
            format!("Stop the team, set {name}, then continue: {}", then.run)
        }
        (_, Some(repair)) => format!("{repair}, then continue: {command}"),
        (_, None) => format!("continue: {command}"),
    }
}
