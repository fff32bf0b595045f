//! How long a team waits, and its step after the machine was suspended.

use liza_core::model::Role;

use super::*;
use crate::channel::{Answer, ServedSession, SessionCall};
use crate::providers::Provider;
use crate::supervisor::background::tests::project;

/// These teams start no session.
struct NoCommands;

impl SessionCommands for NoCommands {
    fn execute(&self, _: &ServedSession, _: SessionCall) -> Answer {
        Answer::default()
    }
}

/// A team with one idle coder.
fn team(project: &Project) -> Team<'_> {
    let mut team =
        Team::new(project, SupervisorOptions::alone("liza".into(), Arc::new(NoCommands)), &|_| ()).unwrap();
    let provider = Provider::choose(&Config::default(), Role::Coder, Some("rehearsal")).unwrap();
    let Registration { agent, generation, liveness } = register(project, Role::Coder, None).unwrap();
    let identity = Identity {
        index: 0,
        agent,
        generation,
        provider: provider.clone(),
        interactive: false,
        program: team.program.clone(),
        channels: team.channels.clone(),
    };
    let post = Post { role: Role::Coder, agent: None, provider, task: None, once: false, interactive: false };
    let mut member = Member::new(identity, post, liveness, now());
    member.state = MemberState::Idle;
    team.members.push(member);
    team.renewals.at(Instant::now() + Duration::from_secs(3600));
    team.read_blackboard();
    team
}

/// Whether the team has looked for work for its agent.
fn has_advanced(team: &Team<'_>) -> bool {
    let member = &team.members[0];
    !matches!(member.state, MemberState::Idle) || member.no_work_in.is_some() || member.wake.is_some()
}

/// Covers: AC-10
#[test]
fn after_a_suspend_the_leases_are_renewed_before_an_agent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut awake = team(&project);
    awake.advance_all((now(), Instant::now()));
    assert!(has_advanced(&awake), "without a suspend it goes on");

    let mut suspended = team(&project);
    let later = now() + Seconds(7200);
    suspended.advance_all((later, Instant::now()));
    assert!(!has_advanced(&suspended));
    let event = suspended.events.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(event, Event::LeasesRenewed(Ok(()))), "{event:?}");
    suspended.handle(event);
    suspended.read_blackboard();
    suspended.advance_all((later, Instant::now()));
    assert!(has_advanced(&suspended));
}

/// Covers: AG-06, AG-07
#[test]
fn without_change_events_a_stop_file_is_seen_within_the_poll_interval() {
    let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
    assert_eq!(at_most(None, hour), hour);
    assert_eq!(at_most(Some(Seconds(30)), hour), Duration::from_secs(30));
    assert_eq!(at_most(Some(Seconds(30)), second), second);
    assert!(at_most(Some(Seconds(0)), hour) > Duration::ZERO, "it never spins");
}
