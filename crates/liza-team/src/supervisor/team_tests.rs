//! The waits of a team, and its step after the machine was suspended.

use liza_agents::providers::Provider;
use liza_core::model::{Role, TaskId};
use liza_core::supervise::{Step, Work, WorkKind};

use crate::channel::{Answer, ServedSession, SessionCall};
use crate::engine::FileLock;
use crate::observe::failing_jobs::failing_jobs;
use crate::supervisor::background::tests::project;
use crate::supervisor::event::JobOutcome;
use crate::supervisor::registration::{Registration, register};

use super::*;

/// These teams start no session.
struct NoCommands;

impl SessionCommands for NoCommands {
    fn execute(&self, _: &ServedSession, _: SessionCall) -> Answer {
        Answer::default()
    }
}

/// A team with one idle coder.
fn team(project: &Project) -> Team<'_> {
    let options = SupervisorOptions::alone("liza".into(), Arc::new(NoCommands));
    let mut team = Team::new(project, options, &|_| ()).unwrap();
    add(&mut team, Role::Coder);
    team
}

fn add(team: &mut Team<'_>, role: Role) {
    let provider = Provider::choose(&Config::default(), role, Some("rehearsal")).unwrap();
    let Registration { agent, generation, liveness } = register(&team.project, role, None).unwrap();
    let identity = Identity {
        index: team.members.len(),
        agent,
        generation,
        provider: provider.clone(),
        interactive: false,
        program: team.program.clone(),
        channels: team.channels.clone(),
    };
    let post = Post { role, agent: None, provider, task: None, once: false, interactive: false };
    let mut member = Member::new(identity, post, liveness, now());
    member.state = MemberState::Idle;
    team.members.push(member);
    team.renewals.at(Instant::now() + Duration::from_secs(3600));
    team.read_blackboard();
}

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

/// Covers: UI-03, AX-25
#[test]
fn a_reviewer_says_that_it_merges_and_not_that_it_waits_for_a_merge() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let said = std::sync::Mutex::new(Vec::new());
    let note = |message: &TeamMessage| {
        if message.level > MessageLevel::Debug {
            said.lock().unwrap().push(message.text.clone());
        }
    };
    let options = SupervisorOptions::alone("liza".into(), Arc::new(NoCommands));
    let mut team = Team::new(&project, options, &note).unwrap();
    add(&mut team, Role::CodeReviewer);
    add(&mut team, Role::CodeReviewer);
    let merge = |task: &str| Step::Work(vec![Work::Merge(task.parse().unwrap())]);
    team.carry_out(0, merge("stock-page"));
    team.carry_out(1, merge("stock-count"));
    assert!(matches!(team.members[1].state, MemberState::Idle));
    // It may review or leave before it merges: what it waits for is no event.
    assert_eq!(said.lock().unwrap().clone(), ["merging stock-page"]);
    // The first one has ended, whatever its result.
    team.job_done(0, Ok(JobOutcome::StatusShown));
    team.carry_out(1, merge("stock-count"));
    assert_eq!(said.lock().unwrap().last().unwrap(), "merging stock-count");
}

/// Covers: AX-01
#[test]
fn a_reviewer_that_would_wait_for_a_merge_takes_a_review() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let options = SupervisorOptions::alone("liza".into(), Arc::new(NoCommands));
    let mut team = Team::new(&project, options, &|_| ()).unwrap();
    add(&mut team, Role::CodeReviewer);
    add(&mut team, Role::CodeReviewer);
    let work = |kind: fn(TaskId) -> Work, task: &str| kind(task.parse().unwrap());
    team.carry_out(0, Step::Work(vec![work(Work::Merge, "one")]));
    team.carry_out(1, Step::Work(vec![work(Work::Merge, "two"), work(Work::Review, "three")]));
    assert!(matches!(team.members[1].state, MemberState::Busy));
    assert_eq!(team.members[1].claiming, "three".parse().ok());
}

/// Covers: AG-05, UI-03, AX-04
#[test]
fn a_job_that_fails_again_and_again_is_shown_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut team = team(&project);
    let tasks: [TaskId; 2] = ["t1", "t2"].map(|name| name.parse().unwrap());
    let shown = || failing_jobs(project.folder()).into_iter();
    let fail = |team: &mut Team<'_>, kind: WorkKind, task: &TaskId| {
        team.job_done(0, Err(SupervisorError::Panicked.on(kind, Some(task))));
    };
    for _ in 1..=3 {
        assert_eq!(shown().count(), 0, "twice may be chance");
        fail(&mut team, WorkKind::Merge, &tasks[0]);
    }
    fail(&mut team, WorkKind::Review, &tasks[1]);
    let jobs: Vec<_> = shown().map(|job| (job.task, job.count)).collect();
    assert_eq!(jobs, [(Some(tasks[0].clone()), 3)]);
    for times in 1..=4 {
        fail(&mut team, WorkKind::Review, &tasks[1]);
        assert_eq!(shown().count(), if times < 2 { 1 } else { 2 }, "{times}");
    }
    team.job_done(0, Ok(JobOutcome::Merged(tasks[0].clone(), "t1 is MERGED".to_owned())));
    let jobs: Vec<_> = shown().map(|job| (job.kind, job.task)).collect();
    assert_eq!(jobs, [(WorkKind::Review, Some(tasks[1].clone()))]);
    // The next team forgets finished work: there is no such task.
    let _next = self::team(&project);
    assert_eq!(shown().count(), 0);
}

/// Covers: AX-01
#[test]
fn work_that_fails_leaves_its_agent_free_for_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut team = team(&project);
    let task: TaskId = "t1".parse().unwrap();
    for error in [SupervisorError::Panicked, SupervisorError::NothingToClaim] {
        team.members[0].state = MemberState::Busy;
        team.job_done(0, Err(error.on(WorkKind::Merge, Some(&task))));
        assert!(matches!(team.members[0].state, MemberState::Idle));
        assert!(team.members[0].not_before <= Instant::now(), "only the task is put off");
    }
}

/// Covers: AG-09, UI-06
#[test]
fn a_clean_stop_waits_for_a_running_merge_as_long_as_its_test_may_take() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let options = SupervisorOptions::alone("liza".into(), Arc::new(NoCommands));
    let mut team = Team::new(&project, options, &|_| ()).unwrap();
    for _ in 1..=3 {
        add(&mut team, Role::CodeReviewer);
    }
    let merges = FileLock::at(&FileLock::of_merges(project.folder()), Duration::ZERO).unwrap();
    merges.note(&format!("t1 {}", team.members[0].identity.agent)).unwrap();
    let is_busy = |team: &Team<'_>| {
        let busy = |member: &Member| matches!(member.state, MemberState::Busy);
        team.members.iter().map(busy).collect::<Vec<_>>()
    };
    let stop = |team: &mut Team<'_>, seconds: u64, limit: u64, urgent: bool| {
        team.config = Arc::new(Config { integration_test_limit: Seconds(limit), ..Config::default() });
        for member in &mut team.members {
            (member.state, member.merging) = (MemberState::Busy, None);
        }
        // The first one merges, the second one waits for the lock of merges, the third one has another job.
        let merging: Vec<Option<TaskId>> = vec!["t1".parse().ok(), "t2".parse().ok(), None];
        team.members.iter_mut().zip(merging).for_each(|(member, task)| member.merging = task);
        team.stopping = Instant::now().checked_sub(Duration::from_secs(seconds));
        team.urgent = urgent;
        (0..3).for_each(|index| team.advance(index));
        is_busy(team)
    };
    assert_eq!(stop(&mut team, 0, 30, false), [true, true, true]);
    assert_eq!(stop(&mut team, 12, 30, false), [true, false, false], "the test may take 30 s");
    assert_eq!(stop(&mut team, 13, 1, false), [false, false, false], "nothing waits for ever");
    assert_eq!(stop(&mut team, 0, 30, true), [false, false, false], "the second Ctrl-C");
}
