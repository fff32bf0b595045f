//! Selects the scene that fits a session, and plays it step by step. A coder or code reviewer plays one
//! scene; the planner one for each trigger. If none fits, the role's default is played.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use crate::arguments::Arguments;
use crate::error::{RehearsalError, StepResult};
use crate::playbook::{Playbook, Scene, Step, When, matches_pattern};
use crate::prompt::{Job, PlanningJob, Trigger};
use crate::protocol::{EXIT_STOP, TriggerKind};
use crate::session::Session;
use crate::{coder, common, misbehaviour, planner, reviewer};

/// The facts that a scene's `when` is compared with.
struct Situation {
    subject: String,
    agent: String,
    iteration: Option<u32>,
    cycle: Option<u32>,
    fix: bool,
    trigger: Option<TriggerKind>,
    session: u32,
}

impl Situation {
    fn new(session: &Session, number: u32) -> Self {
        let (mut iteration, mut cycle, mut fix) = (None, None, false);
        match &session.prompt.job {
            Job::Code(job) => (iteration, fix) = (Some(job.iteration), job.merge_head.is_some()),
            Job::Review(job) => (cycle, fix) = (Some(job.cycle), job.fix),
            Job::Plan(_) => {}
        }
        let (subject, agent) = (session.task().to_owned(), session.prompt.agent.clone());
        Self { subject, agent, iteration, cycle, fix, trigger: None, session: number }
    }

    fn fits(&self, when: &When) -> bool {
        let text = |wanted: &Option<String>, is: &str| {
            wanted.as_ref().is_none_or(|pattern| matches_pattern(pattern, is))
        };
        let number = |wanted: Option<u32>, is: Option<u32>| wanted.is_none_or(|wanted| Some(wanted) == is);
        text(&when.task, &self.subject)
            && text(&when.agent, &self.agent)
            && number(when.iteration, self.iteration)
            && number(when.cycle, self.cycle)
            && number(when.session, Some(self.session))
            && when.fix.is_none_or(|fix| fix == self.fix)
            && when.trigger.is_none_or(|kind| Some(kind) == self.trigger)
    }
}

pub(crate) fn play(session: &Session, playbook: &Playbook) -> StepResult<u8> {
    match &session.prompt.job {
        Job::Code(job) => match find_scene(session, &playbook.coder)? {
            Some(scene) => play_scene(session, scene),
            None => coder::play_default(session, job).map(|()| EXIT_STOP),
        },
        Job::Review(_) => match find_scene(session, &playbook.reviewer)? {
            Some(scene) => play_scene(session, scene),
            None => reviewer::play_default(session).map(|()| EXIT_STOP),
        },
        Job::Plan(job) => plan(session, &playbook.planner, job),
    }
}

fn find_scene<'p, const R: usize>(
    session: &Session,
    scenes: &'p [Scene<R>],
) -> StepResult<Option<&'p Scene<R>>> {
    let situation = Situation::new(session, session_number(session, scenes)?);
    Ok(scenes.iter().find(|scene| situation.fits(&scene.when)))
}

/// Plays a scene for each trigger; a scene that fits several is played once.
fn plan<const R: usize>(session: &Session, scenes: &[Scene<R>], job: &PlanningJob) -> StepResult<u8> {
    let mut situation = Situation::new(session, session_number(session, scenes)?);
    let mut played: Vec<usize> = Vec::new();
    let mut unmatched: Vec<&Trigger> = Vec::new();
    let mut code = EXIT_STOP;
    for trigger in &job.triggers {
        situation.subject.clone_from(&trigger.subject);
        situation.trigger = Some(trigger.kind);
        match scenes.iter().enumerate().find(|(_, scene)| situation.fits(&scene.when)) {
            Some((at, _)) if played.contains(&at) => {}
            Some((at, scene)) => {
                played.push(at);
                code = play_scene(session, scene)?;
            }
            None => unmatched.push(trigger),
        }
    }
    if !unmatched.is_empty() || job.triggers.is_empty() {
        planner::play_default(session, job, &unmatched)?;
    }
    Ok(code)
}

fn play_scene<const R: usize>(session: &Session, scene: &Scene<R>) -> StepResult<u8> {
    for step in &scene.steps {
        perform(session, &step.0)?;
    }
    session.say(&format!("the scene is over, exit {}", scene.exit));
    Ok(scene.exit)
}

fn perform(session: &Session, step: &Step) -> StepResult {
    match step {
        Step::Say(text) => session.say(&session.expand(text)),
        Step::Wait(milliseconds) => common::wait(*milliseconds),
        Step::WaitFor(it) => common::wait_for(session, it),
        Step::Usage(usage) => session.transcript.report_usage(usage),
        Step::Liza(arguments) => session.liza(arguments)?,
        Step::Check(script) => session.shell(script)?,
        Step::Anomaly(it) => common::anomaly(session, it)?,
        Step::Discover(it) => common::discover(session, it)?,
        Step::Handoff(it) => common::handoff(session, it)?,
        Step::Misbehave(it) => misbehaviour::perform(session, it)?,
        Step::AddTask(it) => planner::add_task(session, it)?,
        Step::Finalize(tasks) => planner::finalize(session, tasks)?,
        Step::Supersede(it) => planner::supersede(session, it)?,
        Step::Unblock(it) => planner::unblock(session, it)?,
        Step::Abandon(it) => planner::abandon(session, it)?,
        Step::GoalComplete => session.liza(Arguments::new(["goal", "complete"]))?,
        Step::Align(summary) => planner::align(session, summary)?,
        Step::PreCheck(it) => coder::pre_check(session, it)?,
        Step::Write(file) => coder::write(session, file)?,
        Step::Append(file) => coder::append(session, file)?,
        Step::Delete(path) => coder::delete(session, path)?,
        Step::Commit(message) => coder::commit(session, message)?,
        Step::Merge(it) => coder::merge(session, it)?,
        Step::Block(it) => coder::block(session, it)?,
        Step::Submit => coder::submit(session)?,
        Step::ReadDiff(it) => drop(reviewer::read_diff(session, it)?),
        Step::Approve => reviewer::approve(session)?,
        Step::Reject(it) => reviewer::reject(session, it)?,
    }
    Ok(())
}

/// Returns the number of this session of this role for this task, from 1; 0 if no scene asks for it. An agent
/// has no memory, so the count is the length of a file that grows by a byte each time.
fn session_number<const R: usize>(session: &Session, scenes: &[Scene<R>]) -> Result<u32, RehearsalError> {
    if scenes.iter().all(|scene| scene.when.session.is_none()) {
        return Ok(0);
    }
    // A confined session has a cache of its own, and cannot write the project.
    let project = &session.prompt.liza_folder;
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|folder| folder.starts_with(project));
    let folder = cache.unwrap_or_else(|| project.clone()).join("rehearsal");
    fs::create_dir_all(&folder).map_err(RehearsalError::io("create", &folder))?;
    let file = folder.join(format!("{}-{}.sessions", session.prompt.role().key(), session.task()));
    let count = || {
        let mut sessions = OpenOptions::new().create(true).append(true).open(&file)?;
        sessions.write_all(b".")?;
        sessions.metadata()
    };
    let length = count().map_err(RehearsalError::io("write", &file))?.len();
    Ok(u32::try_from(length).unwrap_or(u32::MAX))
}
