//! Carries out one step: what every role can do here, the rest in the role's own file.

use std::thread;
use std::time::Duration;

use super::stage::Stage;
use super::step::{Anomaly, Awaited, Discover, Handoff, Step};
use super::{Done, code, misbehave, plan, review};

/// How long something is waited for where the playbook does not say.
const PATIENCE: u64 = 30;

/// The arguments of a command.
pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Adds an option that may be absent.
pub(super) fn option(arguments: &mut Vec<String>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        arguments.extend([name.to_owned(), value.to_owned()]);
    }
}

/// Adds an option that may be repeated.
pub(super) fn repeated(arguments: &mut Vec<String>, name: &str, values: &[String]) {
    for value in values {
        option(arguments, name, Some(value));
    }
}

/// Carries out a step.
pub(super) fn perform(stage: &Stage, step: &Step) -> Done {
    match step {
        Step::Say(text) => stage.say(&stage.fill(text)),
        Step::Wait(milliseconds) => thread::sleep(Duration::from_millis(*milliseconds)),
        Step::WaitFor(awaited) => wait_for(stage, awaited),
        Step::Liza(arguments) => return stage.liza(arguments),
        Step::Check(script) => return stage.check(script),
        Step::Anomaly(it) => return anomaly(stage, it),
        Step::Discover(it) => return discover(stage, it),
        Step::Handoff(it) => return handoff(stage, it),
        Step::Usage(figures) => stage.tell_usage(figures),
        Step::Misbehave(misdeed) => return misbehave::perform(stage, misdeed),
        Step::AddTask(it) => return plan::add_task(stage, it),
        Step::Finalize(tasks) => return plan::finalize(stage, tasks),
        Step::Supersede(it) => return plan::supersede(stage, it),
        Step::Unblock(it) => return plan::unblock(stage, it),
        Step::Abandon(it) => return plan::abandon(stage, it),
        Step::GoalComplete => return stage.liza(&words(["goal", "complete"])),
        Step::Align(summary) => return plan::align(stage, summary),
        Step::PreCheck(it) => return code::pre_check(stage, it),
        Step::Write(file) => return code::write(stage, file),
        Step::Append(file) => return code::append(stage, file),
        Step::Delete(path) => return code::delete(stage, path),
        Step::Commit(message) => return code::commit(stage, message),
        Step::Merge(it) => return code::merge(stage, it),
        Step::Block(it) => return code::block(stage, it),
        Step::Submit => return code::submit(stage),
        Step::ReadDiff(it) => return review::read_diff(stage, it).map(|_| ()),
        Step::Approve => return review::approve(stage),
        Step::Reject(it) => return review::reject(stage, it),
    }
    Ok(())
}

fn wait_for(stage: &Stage, awaited: &Awaited) {
    let limit = Duration::from_secs(awaited.seconds.unwrap_or(PATIENCE));
    let there = || {
        let file = awaited.file.as_ref().is_none_or(|file| stage.prompt.project.join(file).exists());
        let branch = awaited
            .branch
            .as_ref()
            .is_none_or(|name| stage.knows(&format!("refs/heads/{}", stage.fill(name))));
        file && branch
    };
    let came = stage.await_it(limit, there);
    stage.say(if came { "what was awaited is there" } else { "waited in vain; going on" });
}

fn anomaly(stage: &Stage, it: &Anomaly) -> Done {
    let mut arguments = words(["anomaly", &it.kind]);
    option(&mut arguments, "--task", Some(stage.task()).filter(|task| !task.is_empty()));
    let details: Vec<String> = it.details.iter().map(|(key, value)| format!("{key}={value}")).collect();
    repeated(&mut arguments, "--detail", &details);
    stage.liza(&arguments)
}

fn discover(stage: &Stage, it: &Discover) -> Done {
    let mut arguments = words(["discover", "--desc", &it.desc, "--severity", &it.severity]);
    option(&mut arguments, "--task", Some(stage.task()).filter(|task| !task.is_empty()));
    option(&mut arguments, "--urgency", it.urgency.as_deref());
    option(&mut arguments, "--recommendation", it.recommendation.as_deref());
    stage.liza(&arguments)
}

fn handoff(stage: &Stage, it: &Handoff) -> Done {
    let (summary, next) = (it.summary.as_str(), it.next_action.as_str());
    let mut arguments = words(["handoff", stage.task(), "--summary", summary, "--next-action", next]);
    option(&mut arguments, "--approach", it.approach.as_deref());
    repeated(&mut arguments, "--file", &it.files);
    repeated(&mut arguments, "--next-step", &it.next_steps);
    stage.liza(&arguments)
}
