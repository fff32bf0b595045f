//! What benchmarks with a running program share: its tasks, its CPU time, and its end.
#![allow(dead_code, reason = "each benchmark uses its own part")]

use std::process::{Child, Command};

use liza_core::model::{Actor, TaskId};
use liza_core::protocol::{AddTask, EditTask, NewTask, TaskEdit};
use liza_team::engine::Engine;
use liza_team::project::Project;

/// The name of a task.
pub(crate) fn name(number: usize) -> TaskId {
    format!("t-{number:03}").parse().unwrap()
}

/// Adds a task.
pub(crate) fn add(project: &Project, number: usize, after: Option<usize>) {
    let text = |text: &str| Some(text.to_owned());
    let new = NewTask {
        description: format!("Part {number} of it"),
        spec_ref: text("specs/vision.md"),
        done_when: text("A test shows it"),
        scope: text("This part"),
        depends_on: after.map(name).into_iter().collect(),
        ..NewTask::default()
    };
    Engine::new(project, Actor::Human).execute(AddTask { task: name(number), new }).unwrap();
}

/// Gives a task another description.
pub(crate) fn describe(project: &Project, number: usize, description: String) {
    let edit = TaskEdit { description: Some(description), ..TaskEdit::default() };
    Engine::new(project, Actor::Human).execute(EditTask { task: name(number), edit }).unwrap();
}

/// Hundredths of a second that a process has computed.
pub(crate) fn cpu_ticks(process: u32) -> u64 {
    ticks(&process.to_string(), 11)
}

/// Hundredths of a second that ended children of this process have computed, with theirs.
pub(crate) fn cpu_ticks_of_children() -> u64 {
    ticks("self", 13)
}

/// The sum of two fields, the time as a user and in the kernel.
fn ticks(process: &str, first: usize) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[first..first + 2].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

/// A program that is killed when it is dropped.
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    /// Ends it in an orderly way, and waits.
    pub(crate) fn stop(&mut self) {
        Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
