//! The coder's steps: files, commits, and what it tells the blackboard.

use std::fs;
use std::path::Path;

use super::stage::Stage;
use super::step::{Block, FileText, PreCheck, Resolve};
use super::steps::{repeated, words};
use super::{Done, RehearsalError};

/// `liza pre-check`
pub(super) fn pre_check(stage: &Stage, it: &PreCheck) -> Done {
    let (intent, validation) = (it.intent.as_str(), it.validation.as_str());
    let mut arguments = words(["pre-check", stage.task(), "--intent", intent, "--validation", validation]);
    repeated(&mut arguments, "--assumption", &it.assumptions);
    repeated(&mut arguments, "--risk", &it.risks);
    repeated(&mut arguments, "--file", &it.files);
    stage.liza(&arguments)
}

/// Writes a file with its folders.
pub(super) fn write(stage: &Stage, file: &FileText) -> Done {
    put(stage, &stage.inside(&file.path)?, &stage.fill(&file.text))
}

/// Adds to a file.
pub(super) fn append(stage: &Stage, file: &FileText) -> Done {
    let path = stage.inside(&file.path)?;
    let mut text = if path.exists() { read(&path)? } else { String::new() };
    text.push_str(&stage.fill(&file.text));
    put(stage, &path, &text)
}

/// Deletes a file.
pub(super) fn delete(stage: &Stage, path: &Path) -> Done {
    let path = stage.inside(path)?;
    stage.say(&format!("deletes {}", path.display()));
    fs::remove_file(&path).map_err(|error| RehearsalError::io("delete", &path, error))?;
    Ok(())
}

fn read(path: &Path) -> Result<String, RehearsalError> {
    fs::read_to_string(path).map_err(|error| RehearsalError::io("read", path, error))
}

fn put(stage: &Stage, path: &Path, text: &str) -> Done {
    stage.say(&format!("writes {}", path.display()));
    stage.writes(text.len());
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    made.map_err(|error| RehearsalError::io("write", path, error))?;
    Ok(())
}

/// Commits everything. What an earlier session has committed already is as good.
pub(super) fn commit(stage: &Stage, message: &str) -> Done {
    if stage.commit_all(&["--message", &stage.fill(message)])? {
        return Ok(());
    }
    let job = stage.assigned()?;
    let head = stage.head()?;
    if job.base.as_ref().is_some_and(|base| base.as_str() == head) {
        return Err(RehearsalError::NothingToCommit.into());
    }
    stage.say("nothing new to commit");
    Ok(())
}

/// Merges the head that the prompt names in, and finishes a merge that is under way.
pub(super) fn merge(stage: &Stage, it: &Resolve) -> Done {
    let nothing = RehearsalError::NoPart("the prompt names no head to merge in: nothing failed to merge");
    let head = stage.assigned()?.fix.clone().ok_or(nothing)?;
    let reply = stage.try_git(&["merge", "--no-edit", head.as_str()])?;
    let conflicts = stage.git_files(&["diff", "--name-only", "--diff-filter=U", "-z"])?;
    if conflicts.is_empty() && reply.status != Some(0) && !stage.knows("MERGE_HEAD") {
        let (command, code) = ("git merge".to_owned(), reply.status.unwrap_or(-1));
        return Err(RehearsalError::Failed { command, code, words: reply.message() }.into());
    }
    for name in &conflicts {
        resolve(stage, name, it)?;
    }
    stage.commit_all(&["--no-edit"])?;
    Ok(())
}

fn resolve(stage: &Stage, name: &str, it: &Resolve) -> Done {
    let path = stage.place().join(name);
    if let Some(given) = it.resolve.iter().find(|given| given.path == Path::new(name)) {
        return put(stage, &path, &stage.fill(&given.text));
    }
    if path.is_file() {
        put(stage, &path, &both_sides(&read(&path)?))?;
    }
    Ok(())
}

/// A text without the marks of its conflicts: each side keeps its lines.
fn both_sides(text: &str) -> String {
    let mark = |line: &str| {
        line.starts_with("<<<<<<< ") || line.trim_end() == "=======" || line.starts_with(">>>>>>> ")
    };
    text.split_inclusive('\n').filter(|line| !mark(line)).collect()
}

/// `liza mark-blocked`
pub(super) fn block(stage: &Stage, it: &Block) -> Done {
    let mut arguments = words(["mark-blocked", stage.task(), "--reason", &it.reason]);
    repeated(&mut arguments, "--question", &it.questions);
    repeated(&mut arguments, "--attempted", &it.attempted);
    stage.liza(&arguments)
}

/// `liza submit-for-review` of exactly what is there.
pub(super) fn submit(stage: &Stage) -> Done {
    let head = stage.head()?;
    stage.liza(&words(["submit-for-review", stage.task(), &head]))
}
