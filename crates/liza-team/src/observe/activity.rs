//! The output of sessions, for people: its files, the last action, the whole stream as text. Only reads. The
//! helper that wrote the files has masked them.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use liza_agents::providers::event::{ClientEvent, EventFormat};
use liza_agents::providers::event_format;
use liza_agents::providers::readers::detect_format;
use liza_agents::providers::stream::EventStream;
use liza_core::model::{AgentId, AgentRecord, State, TaskId, Timestamp};
use liza_core::rules::sessions::is_in_session;
use liza_core::text::one_line;
use liza_host::durable::{self, Open};
use liza_status::alarms::SessionActivity;
use liza_store::clock_difference;

use crate::project::Project;
use crate::project::machine::machine_name;
use crate::session::files::{KeptSession, OUTPUTS};

/// The part of the output's end that is searched for the last action.
const TAIL: u64 = 64 << 10;
const ACTION_MAX: usize = 120;

/// The activity of every running session that keeps its output.
pub fn session_activity(project: &Project, state: &State) -> BTreeMap<AgentId, SessionActivity> {
    // A session in a terminal has no client on the blackboard and keeps no output. An old file of an agent
    // that now runs on another machine is not its output.
    let is_running =
        |id: AgentId, entry: &AgentRecord| entry.client.is_some() && is_in_session(&state.board, id, entry);
    let here = LazyCell::new(|| machine_name(project.folder()));
    let runs_here = |entry: &AgentRecord| entry.machine.as_ref().is_none_or(|machine| *machine == *here);
    let runs = |id: AgentId, entry: &AgentRecord| runs_here(entry) && is_running(id, entry);
    let agents = state.board.agents.ready().into_iter().flatten().filter(|(id, entry)| runs(**id, entry));
    let agents: Vec<(AgentId, &AgentRecord)> = agents.map(|(agent, entry)| (*agent, entry)).collect();
    if agents.is_empty() {
        return BTreeMap::new();
    }
    let names = output_names(project);
    let one = |(agent, entry): (AgentId, &AgentRecord)| {
        let path = newest_of(project, &names, agent)?;
        is_of_session(&path, entry).then_some(())?;
        Some((agent, activity_of(&path, format_of(state, agent))?))
    };
    agents.into_iter().filter_map(one).collect()
}

/// False for the output of an earlier session: this one is set up, or validates first, and has printed nothing.
fn is_of_session(path: &Path, entry: &AgentRecord) -> bool {
    let kept = path.file_name().and_then(|name| KeptSession::of_output(name.to_str()?));
    kept.is_none_or(|kept| {
        let is_new = entry.session.as_ref().is_none_or(|session| kept.started >= session.began);
        is_new && entry.current_task.as_ref().is_none_or(|task| kept.about == task.as_str())
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputOf {
    Agent(AgentId),
    Task(TaskId),
}

/// The last output of an agent or on a task, and the agent of that session.
pub fn newest_output(project: &Project, of: &OutputOf) -> Option<(AgentId, PathBuf)> {
    let names = output_names(project);
    match of {
        OutputOf::Agent(agent) => Some((*agent, newest_of(project, &names, *agent)?)),
        OutputOf::Task(task) => {
            let sessions = names.iter().filter_map(|name| KeptSession::of_output(name));
            let own = sessions.filter(|session| session.about == task.as_str());
            let path = |session: &KeptSession| session.output(project.folder());
            let last = own.max_by_key(|session| (session.started, modified(&path(session))))?;
            Some((last.agent, path(&last)))
        }
    }
}

fn output_names(project: &Project) -> Vec<String> {
    let entries = fs::read_dir(project.folder().join(OUTPUTS)).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Names have the time first, in seconds; within a second, the one that was written last is the newest.
fn newest_of(project: &Project, names: &[String], agent: AgentId) -> Option<PathBuf> {
    let prefix = format!("{agent}-");
    let time = |name: &str| name.strip_prefix(&prefix)?.split('-').next().map(str::to_owned);
    let newest = names.iter().filter_map(|name| time(name)).max()?;
    let last = names.iter().filter(|name| time(name).as_ref() == Some(&newest));
    last.map(|name| project.folder().join(OUTPUTS).join(name)).max_by_key(|path| modified(path))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// The format of an output, detected from its content, since the agent may use another client now. Without
/// events it is probably that of the agent's client.
pub fn format_of_output(state: &State, agent: AgentId, path: &Path) -> EventFormat {
    let mut head = Vec::new();
    if let Ok(file) = durable::open(Open::Read, path) {
        let _ = file.take(TAIL).read_to_end(&mut head);
    }
    detect_format(&String::from_utf8_lossy(&head), format_of(state, agent))
}

/// The format of a client's output; plain text if it is not known.
fn format_of(state: &State, agent: AgentId) -> EventFormat {
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&agent));
    let last = |entry: &AgentRecord| entry.last_session.as_ref().map(|last| last.client.clone());
    let client = entry.and_then(|entry| entry.client.clone().or_else(|| last(entry)));
    let config = state.board.config.ready();
    client.zip(config).map(|(client, config)| event_format(config, &client)).unwrap_or_default()
}

fn activity_of(path: &Path, format: EventFormat) -> Option<SessionActivity> {
    let mut file = durable::open(Open::Read, path).ok()?;
    let meta = file.metadata().ok()?;
    let last_output = in_project_time(meta.modified().ok()?, clock_difference())?;
    file.seek(SeekFrom::Start(meta.len().saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    Some(SessionActivity { last_action: last_action(&tail, format), last_output })
}

/// A time of this machine's clock as a time of the project, whose clock is that many seconds ahead.
pub(crate) fn in_project_time(time: SystemTime, ahead: i64) -> Option<Timestamp> {
    let age = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_unix(i64::try_from(age.as_secs()).ok()?.saturating_add(ahead)))
}

/// The beginning of Liza's own lines in an output.
pub(crate) const OWN_LINE: &str = "[liza: ";

fn last_action(tail: &[u8], format: EventFormat) -> Option<String> {
    let (mut stream, mut last, mut thinks) = (EventStream::new(format), None, false);
    // Liza's own lines and a program's warnings are not the session's action.
    let said = |event: &ClientEvent| {
        let warns = matches!(event, ClientEvent::Warning(_));
        describe(event).filter(|text| !warns && !text.starts_with(OWN_LINE))
    };
    stream.push(tail, &mut |event| {
        let new = said(event);
        thinks = matches!(event, ClientEvent::Answered(_)) || (thinks && new.is_none());
        last = new.or(last.take());
    });
    // A finished command is not the current action.
    let now = |text: String| if thinks { format!("thinking, after {text}") } else { text };
    last.map(|text| one_line(&without_programs_folder(&now(text)), ACTION_MAX))
}

/// Sessions call this program by its whole path, which would fill the space of a screen.
fn without_programs_folder(text: &str) -> String {
    let words =
        text.split_inclusive(char::is_whitespace).map(|word| match word.trim_end().rsplit_once("/liza") {
            Some((folder, "")) => {
                let quote: String = folder.chars().take_while(|c| "'\"(".contains(*c)).collect();
                format!("{quote}liza{}", &word[word.trim_end().len()..])
            }
            Some(_) | None => word.to_owned(),
        });
    words.collect()
}

/// The action in an event, for a person; the answer of a tool is none.
pub fn describe(event: &ClientEvent) -> Option<String> {
    match event {
        ClientEvent::Text(text) => Some(text.clone()),
        ClientEvent::Tool(name, detail) if detail.is_empty() => Some(name.clone()),
        ClientEvent::Tool(name, detail) => Some(format!("{name}: {detail}")),
        ClientEvent::Note(text) | ClientEvent::Warning(text) => Some(format!("({text})")),
        ClientEvent::Fault(fault) => Some(format!("error, {}: {}", fault.kind.describe(), fault.message)),
        ClientEvent::BudgetReached => Some("(a budget is used up)".to_owned()),
        ClientEvent::Started(_)
        | ClientEvent::Answered(_)
        | ClientEvent::Compacted
        | ClientEvent::Used(_)
        | ClientEvent::Ended => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-03
    #[test]
    fn the_time_of_an_output_is_the_projects_on_a_machine_with_a_wrong_clock() {
        let printed = UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        for ahead in [-600, 0, 600] {
            assert_eq!(in_project_time(printed, ahead), Some(Timestamp::from_unix(1_000_000 + ahead)));
        }
    }

    /// Covers: SE-07, UI-03
    #[test]
    fn the_output_of_an_earlier_session_is_not_that_of_this_one() {
        let entry = |began: &str, task: &str| -> AgentRecord {
            let (task, session) = (serde_json::json!(task), serde_json::json!({ "began": began }));
            let task = Some(task).filter(|task| task != "");
            let entry = serde_json::json!({"role": "code_reviewer", "status": "REVIEWING", "session": session,
                "current_task": task});
            serde_json::from_value(entry).unwrap()
        };
        let of = |began: &str, task: &str| {
            let path = Path::new("agent-outputs/code-reviewer-1-20260117T140000Z-1-sub-v2.log");
            is_of_session(path, &entry(began, task))
        };
        assert!(of("2026-01-17T13:59:58Z", "sub-v2") && of("2026-01-17T14:00:00Z", "sub-v2"));
        assert!(!of("2026-01-17T14:00:01Z", "sub-v2"), "the second review of the task has printed nothing");
        assert!(!of("2026-01-17T14:00:00Z", "mul"), "it has begun with the next task in the same second");
        assert!(of("2026-01-17T13:59:58Z", ""), "its task is submitted, and it has not ended");
        let known = AgentRecord { session: None, ..entry("2026-01-17T14:00:00Z", "") };
        assert!(is_of_session(Path::new("x.log"), &known));
    }

    /// Covers: SE-07
    #[test]
    fn the_last_thing_that_a_session_did_is_found_in_the_tail() {
        let tail = br#"cut off"}}
{"type":"item.started","item":{"type":"command_execution","command":"cargo test"}}
{"type":"turn.completed","usage":{"input_tokens":1}}
"#;
        assert_eq!(last_action(tail, EventFormat::Codex).as_deref(), Some("shell: cargo test"));
        assert_eq!(last_action(b"one\ntwo\n", EventFormat::None).as_deref(), Some("two"));
        let ended = br#"{"type":"item.started","item":{"type":"command_execution","command":"cargo test"}}
{"type":"item.completed","item":{"type":"command_execution","command":"cargo test"}}
"#;
        let after = "thinking, after shell: cargo test";
        assert_eq!(last_action(ended, EventFormat::Codex).as_deref(), Some(after));
        let ended = br#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result"}]}}
"#;
        assert_eq!(last_action(ended, EventFormat::Claude).as_deref(), Some("thinking, after Bash: ls"));
        let called = b"bash -lc '/opt/bin/liza show t1' in /opt/liza-x\n";
        let short = "bash -lc 'liza show t1' in /opt/liza-x";
        assert_eq!(last_action(called, EventFormat::None).as_deref(), Some(short));
        assert_eq!(last_action(b"", EventFormat::Claude), None);
        assert_eq!(last_action(b"[liza: confinement enforced]\n", EventFormat::Codex), None);
        let warning =
            br#"{"type":"item.completed","item":{"type":"error","message":"Model metadata not found"}}
"#;
        assert_eq!(last_action(warning, EventFormat::Codex), None, "a warning is not what a session does");
    }
}
