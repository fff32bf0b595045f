//! Finds the scene for the moment and plays it.
//!
//! A coder or a code reviewer plays one scene; the planner one for each thing that woke it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use liza_core::model::{Role, StopFile};
use liza_core::rules::triggers::TriggerKind;

use super::playbook::{Playbook, Scene, When};
use super::prompt::{Job, Planning, Wake};
use super::stage::Stage;
use super::{Done, Halt, RehearsalError, obvious, steps};

/// How a session ends that has done its part, or was told to stop.
const STOP: u8 = 42;

/// The files that halt everybody, the strongest first.
const HALTS: [StopFile; 3] = [StopFile::Abort, StopFile::Checkpoint, StopFile::Pause];

/// What a scene's condition is held against.
struct Moment {
    subject: String,
    agent: String,
    iteration: Option<u32>,
    cycle: Option<u32>,
    fix: bool,
    trigger: Option<TriggerKind>,
    session: u32,
}

impl Moment {
    fn fits(&self, when: &When) -> bool {
        let number = |wanted: Option<u32>, is: Option<u32>| wanted.is_none_or(|wanted| Some(wanted) == is);
        when.task.as_deref().is_none_or(|pattern| matches(pattern, &self.subject))
            && when.agent.as_deref().is_none_or(|pattern| matches(pattern, &self.agent))
            && number(when.iteration, self.iteration)
            && number(when.cycle, self.cycle)
            && number(when.session, Some(self.session))
            && when.fix.is_none_or(|fix| fix == self.fix)
            && when.trigger.is_none_or(|name| Some(name.0) == self.trigger)
    }
}

/// Whether a name fits a pattern in which `*` stands for anything.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| name.get(at..).is_some_and(|tail| matches(rest, tail)))
        }),
    }
}

/// Plays the session.
pub(super) fn play(stage: &Stage, playbook: &Playbook) -> Result<u8, RehearsalError> {
    match start_up(stage).and_then(|()| perform(stage, playbook)) {
        Ok(code) => Ok(code),
        Err(Halt::Stop) => {
            stage.say("told to stop");
            Ok(STOP)
        }
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// The start-up steps of the prompt.
fn start_up(stage: &Stage) -> Done {
    let role = stage.prompt.role().title();
    stage.say(&format!("Mode: Liza [{role}]"));
    if let Some(halt) = HALTS.iter().find(|halt| stage.prompt.folder.join(halt.name()).exists()) {
        stage.say(&format!("{} stands", halt.name()));
        return Err(Halt::Stop);
    }
    if !stage.place().is_dir() {
        stage.say(&format!("{} is gone, so the task is another's", stage.place().display()));
        return Err(Halt::Stop);
    }
    still_ours(stage)?;
    stage.say(&format!("{role} ready. Reading blackboard."));
    Ok(())
}

/// Whether the task still is what the prompt says; else it was lost, and nothing may be done to it.
fn still_ours(stage: &Stage) -> Done {
    let (status, owner) = match stage.prompt.role() {
        Role::Planner => return stage.liza(&steps::words(["status"])),
        Role::Coder => ("CLAIMED", "assigned_to"),
        Role::CodeReviewer => ("READY_FOR_REVIEW", "reviewing_by"),
    };
    let shown = stage.ask(&steps::words(["show", stage.task()]))?;
    let record = &shown["record"];
    let (is, whose) = (record["status"].as_str(), record[owner].as_str());
    let words = |word: Option<&str>| word.unwrap_or("nobody").to_owned();
    stage.say(&format!("{} is {}, {owner} {}", stage.task(), words(is), words(whose)));
    match is == Some(status) && whose == Some(&stage.prompt.agent.to_string()) {
        true => Ok(()),
        false => Err(Halt::Stop),
    }
}

fn perform(stage: &Stage, playbook: &Playbook) -> Result<u8, Halt> {
    match &stage.prompt.job {
        Job::Code(job) => {
            let mut moment = moment(stage, count_wanted(&playbook.coder))?;
            (moment.iteration, moment.fix) = (Some(job.iteration), job.fix.is_some());
            match playbook.coder.iter().find(|scene| moment.fits(&scene.when)) {
                Some(scene) => act(stage, scene),
                None => obvious::code(stage, job).map(|()| STOP),
            }
        }
        Job::Review(job) => {
            let mut moment = moment(stage, count_wanted(&playbook.reviewer))?;
            (moment.cycle, moment.fix) = (Some(job.cycle), job.fix);
            match playbook.reviewer.iter().find(|scene| moment.fits(&scene.when)) {
                Some(scene) => act(stage, scene),
                None => obvious::review(stage, job).map(|()| STOP),
            }
        }
        Job::Plan(job) => plan(stage, playbook, job),
    }
}

/// Plays a scene for each wake; one that fits several is played once.
fn plan(stage: &Stage, playbook: &Playbook, job: &Planning) -> Result<u8, Halt> {
    let mut moment = moment(stage, count_wanted(&playbook.planner))?;
    let mut played: Vec<usize> = Vec::new();
    let mut uncovered: Vec<&Wake> = Vec::new();
    let mut code = STOP;
    for wake in &job.wakes {
        moment.subject.clone_from(&wake.subject);
        moment.trigger = Some(wake.kind);
        let found = playbook.planner.iter().enumerate().find(|(_, scene)| moment.fits(&scene.when));
        match found {
            Some((at, _)) if played.contains(&at) => {}
            Some((at, scene)) => {
                played.push(at);
                code = act(stage, scene)?;
            }
            None => uncovered.push(wake),
        }
    }
    if !uncovered.is_empty() || job.wakes.is_empty() {
        obvious::plan(stage, job, &uncovered)?;
    }
    Ok(code)
}

fn act<R>(stage: &Stage, scene: &Scene<R>) -> Result<u8, Halt> {
    for step in &scene.steps {
        steps::perform(stage, &step.0)?;
    }
    stage.say(&format!("the scene is over, exit {}", scene.exit));
    Ok(scene.exit)
}

fn count_wanted<R>(scenes: &[Scene<R>]) -> bool {
    scenes.iter().any(|scene| scene.when.session.is_some())
}

fn moment(stage: &Stage, counted: bool) -> Result<Moment, RehearsalError> {
    Ok(Moment {
        subject: stage.task().to_owned(),
        agent: stage.prompt.agent.to_string(),
        iteration: None,
        cycle: None,
        fix: false,
        trigger: None,
        session: if counted { count_session(stage)? } else { 0 },
    })
}

/// Counts this session. An agent has no memory of its own, so the count is a file that grows by a byte each time.
fn count_session(stage: &Stage) -> Result<u32, RehearsalError> {
    let folder = stage.prompt.folder.join("rehearsal");
    fs::create_dir_all(&folder).map_err(|error| RehearsalError::io("make", &folder, error))?;
    let role = match stage.prompt.role() {
        Role::Planner => "planner",
        Role::Coder => "coder",
        Role::CodeReviewer => "reviewer",
    };
    let file = folder.join(format!("{role}-{}.sessions", stage.task()));
    let count = || {
        let mut sessions = OpenOptions::new().create(true).append(true).open(&file)?;
        sessions.write_all(b".")?;
        sessions.metadata()
    };
    let length = count().map_err(|error| RehearsalError::io("write", &file, error))?.len();
    Ok(u32::try_from(length).unwrap_or(u32::MAX))
}
