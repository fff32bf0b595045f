//! The caller's identity: the session that this process runs in, whatever its variables say. Every process of
//! a session descends from its helper, which adopts orphans. So a command finds its session by walking up its
//! parents. Without one, the variables count.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use liza_core::model::{Actor, AgentId, Generation, Role};
use liza_sandbox::confine::start::STAGE;
use liza_sandbox::sys::peer::{LineProcess, Silenced, SpeakerRule};
use liza_sandbox::sys::process::{command_lines, command_lines_above};

use crate::project::{actor_from, spoken};

/// The command of the helper, and the option after which its session is named.
pub(crate) const HELPER: &str = "session";
const OF: &str = "--of";

/// The arguments of the helper's process that name its session. The first process of a room has them too: its session
/// does not see the helper.
pub(crate) fn own_session() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip_while(|word| word != OF)
}

/// The command below which code under test runs.
const CHECK: &str = "check";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAround {
    root: PathBuf,
    agent: AgentId,
    generation: Generation,
}

impl SessionAround {
    pub fn agent(&self) -> AgentId {
        self.agent
    }
}

/// The outermost session of the project at `root`: a process can only pretend to be a helper below its own.
pub fn session_in<'s>(root: &Path, sessions: &'s [SessionAround]) -> Option<&'s SessionAround> {
    sessions.iter().find(|session| is_same(root, &session.root))
}

/// The arguments with which a helper is started, so that the commands of its session recognize it.
pub(crate) fn helper_arguments(root: &Path, agent: AgentId, generation: Generation) -> [OsString; 5] {
    [HELPER.into(), OF.into(), root.into(), agent.to_string().into(), generation.to_string().into()]
}

/// The sessions that this process runs in, the outermost first.
pub fn sessions_around() -> Vec<SessionAround> {
    command_lines_above().iter().rev().filter_map(|line| parse(line, &[HELPER, STAGE])).collect()
}

/// The helpers of all sessions that run on this machine, of any project.
pub fn session_helpers() -> Vec<u32> {
    command_lines()
        .into_iter()
        .filter(|(_, line)| parse(line, &[HELPER]).is_some())
        .map(|(pid, _)| pid)
        .collect()
}

/// The arguments with which `liza check` starts itself, so that it is recognized; the command follows.
pub fn check_arguments(root: &Path) -> [OsString; 3] {
    [CHECK.into(), OF.into(), root.into()]
}

/// True for the command line of `liza check`, below which code under test runs.
pub(crate) fn is_check(line: &[OsString]) -> bool {
    matches!(line, [_, check, of, ..] if check == CHECK && of == OF)
}

/// The processes of a session that speak for its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speakers {
    /// All but code under test.
    All,
    /// `liza`, run by the agent program itself or in a shell of it. Other programs, such as git and build
    /// tools, take settings from the commit under review, and may run its code.
    Spoken,
}

impl Speakers {
    pub fn of(role: Role) -> Self {
        match role {
            Role::CodeReviewer => Speakers::Spoken,
            Role::Coder | Role::Planner => Speakers::All,
        }
    }

    pub fn rule(self) -> SpeakerRule {
        match self {
            Speakers::All => |line, _, _| no_test(line),
            Speakers::Spoken => |line, helper, client| {
                no_test(line)?;
                spoken::is_spoken(line, helper, client).then_some(()).ok_or(Silenced::NotSpoken)
            },
        }
    }
}

fn no_test(line: &[LineProcess]) -> Result<(), Silenced> {
    let is_test = line.iter().any(|process| is_check(&process.command));
    if is_test { Err(Silenced::UnderTest) } else { Ok(()) }
}

fn parse(line: &[OsString], commands: &[&str]) -> Option<SessionAround> {
    let [_, command, of, root, agent, generation, ..] = line else { return None };
    if !commands.iter().any(|known| command == known) || of != OF {
        return None;
    }
    let agent = agent.to_str()?.parse().ok()?;
    let generation = Generation(generation.to_str()?.parse().ok()?);
    Some(SessionAround { root: PathBuf::from(root), agent, generation })
}

/// The caller in the project at `root`. In a session of that project it is the session's agent, even if the
/// variables are unset or name another one.
pub fn actor_in(
    root: Option<&Path>,
    sessions: &[SessionAround],
    variables: (Option<&str>, Option<&str>),
) -> Result<Actor, String> {
    if let Some(session) = root.and_then(|root| session_in(root, sessions)) {
        return Ok(Actor::Agent(session.agent, session.generation));
    }
    // In another project, such as one that a test makes, the variables of the session around mean nothing.
    let inherited = |session: &SessionAround| {
        let (id, generation) = (session.agent.to_string(), session.generation.to_string());
        variables == (Some(id.as_str()), Some(generation.as_str()))
    };
    match sessions.iter().any(inherited) {
        true => Ok(Actor::Human),
        false => actor_from(variables.0, variables.1),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    bytes(one) == bytes(other)
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use liza_sandbox::sys::peer::Image;

    use super::*;

    fn session(root: &str, agent: &str, generation: u64) -> SessionAround {
        SessionAround { root: root.into(), agent: agent.parse().unwrap(), generation: Generation(generation) }
    }

    fn coder(generation: u64) -> Actor {
        Actor::Agent("coder-1".parse().unwrap(), Generation(generation))
    }

    /// Covers: IS-02
    #[test]
    fn a_helper_is_recognized_by_its_arguments() {
        let arguments = helper_arguments(Path::new("/p q"), "coder-1".parse().unwrap(), Generation(7));
        let line: Vec<OsString> = [OsString::from("/bin/liza")].into_iter().chain(arguments).collect();
        let known = Some(session("/p q", "coder-1", 7));
        assert_eq!(parse(&line, &[HELPER]), known);
        assert_eq!(parse(&line[..4], &[HELPER]), None);
        let shell: Vec<OsString> = ["sh", "session", "x", "/p", "coder-1", "7"].map(OsString::from).into();
        assert_eq!(parse(&shell, &[HELPER]), None);
        // In a room, the first process has the same arguments.
        let room: Vec<OsString> =
            line.iter().map(|word| if word == HELPER { STAGE.into() } else { word.clone() }).collect();
        assert_eq!((parse(&room, &[HELPER, STAGE]), parse(&room, &[HELPER])), (known, None));
    }

    /// Covers: IS-13
    #[test]
    fn nothing_below_a_check_speaks() {
        let process = |words: &str| {
            let command: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let image = Image { file: Some(PathBuf::from(&command[0])), start: None };
            LineProcess { pid: 10, image, command, ..LineProcess::default() }
        };
        let tested = ["liza x", concat!("liza", " check --of /p"), "node claude"].map(process);
        for role in [Role::Coder, Role::CodeReviewer, Role::Planner] {
            assert_eq!(Speakers::of(role).rule()(&tested, 1, Some(10)), Err(Silenced::UnderTest));
        }
        assert_eq!(Speakers::of(Role::Coder).rule()(&tested[..1], 1, None), Ok(()));
    }

    /// Covers: IS-02
    #[test]
    fn in_a_session_no_variable_changes_who_calls() {
        let sessions = [session("/p", "coder-1", 7), session("/p", "code-reviewer-1", 9)];
        let here = Some(Path::new("/p"));
        for variables in
            [(None, None), (Some("code-reviewer-1"), Some("9")), (Some("bob"), None), (Some(""), Some("x"))]
        {
            assert_eq!(actor_in(here, &sessions, variables), Ok(coder(7)), "{variables:?}");
        }
        assert_eq!(actor_in(here, &[], (None, None)), Ok(Actor::Human));
    }

    /// Covers: IS-02
    #[test]
    fn in_another_project_liza_works_as_usual() {
        let sessions = [session("/p", "coder-1", 7)];
        let other = Some(Path::new("/tmp/other"));
        assert_eq!(actor_in(other, &sessions, (Some("coder-1"), Some("7"))), Ok(Actor::Human));
        assert_eq!(actor_in(None, &sessions, (None, None)), Ok(Actor::Human));
        assert_eq!(actor_in(other, &sessions, (Some("coder-1"), Some("3"))), Ok(coder(3)));
    }
}
