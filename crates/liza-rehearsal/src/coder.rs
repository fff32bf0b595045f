//! The coder: its steps, and the work that it does if no scene fits.

use std::path::Path;

use crate::arguments::Arguments;
use crate::error::{RehearsalError, StepResult, require_success};
use crate::files;
use crate::playbook::{Block, FileContent, Merge, PreCheck};
use crate::prompt::CodingJob;
use crate::session::Session;

pub(crate) fn pre_check(session: &Session, it: &PreCheck) -> StepResult {
    session.liza(
        Arguments::new(["pre-check", session.task(), "--intent", &it.intent])
            .option("--validation", Some(&it.validation))
            .repeated("--assumption", &it.assumptions)
            .repeated("--risk", &it.risks)
            .repeated("--file", &it.files),
    )
}

pub(crate) fn write(session: &Session, file: &FileContent) -> StepResult {
    write_file(session, &session.worktree_path(&file.path)?, &session.expand(&file.text))
}

pub(crate) fn append(session: &Session, file: &FileContent) -> StepResult {
    let path = session.worktree_path(&file.path)?;
    let mut text = if path.exists() { files::read(&path)? } else { String::new() };
    text.push_str(&session.expand(&file.text));
    write_file(session, &path, &text)
}

pub(crate) fn delete(session: &Session, path: &Path) -> StepResult {
    let path = session.worktree_path(path)?;
    session.say(&format!("deletes {}", path.display()));
    Ok(files::delete(&path)?)
}

fn write_file(session: &Session, path: &Path, text: &str) -> StepResult {
    session.say(&format!("writes {}", path.display()));
    Ok(files::write(path, text)?)
}

/// Commits everything. Work that an earlier session has committed is enough.
pub(crate) fn commit(session: &Session, message: &str) -> StepResult {
    if session.commit_all(&["--message", &session.expand(message)])? {
        return Ok(());
    }
    if session.coding_job()?.base == Some(session.head()?) {
        return Err(RehearsalError::NothingToCommit.into());
    }
    session.say("nothing new to commit");
    Ok(())
}

/// Merges the head that the prompt names, or finishes that merge if it is in progress.
pub(crate) fn merge(session: &Session, it: &Merge) -> StepResult {
    let no_head = RehearsalError::NotApplicable("the prompt names no head to merge: no merge has failed");
    let head = session.coding_job()?.merge_head.as_deref().ok_or(no_head)?;
    let (code, message) = session.try_git(&["merge", "--no-edit", head])?;
    let conflicts = session.git_files(&["diff", "--name-only", "--diff-filter=U", "-z"])?;
    if conflicts.is_empty() && !session.git_resolves("MERGE_HEAD") {
        require_success("git merge", code, message)?;
    }
    for name in &conflicts {
        resolve(session, name, it)?;
    }
    session.commit_all(&["--no-edit"])?;
    Ok(())
}

fn resolve(session: &Session, name: &str, it: &Merge) -> StepResult {
    let path = session.work_dir().join(name);
    if let Some(given) = it.resolve.iter().find(|given| given.path == Path::new(name)) {
        return write_file(session, &path, &session.expand(&given.text));
    }
    if path.is_file() {
        write_file(session, &path, &keep_both_sides(&files::read(&path)?))?;
    }
    Ok(())
}

/// Removes the conflict markers from a text and keeps the lines of both sides.
fn keep_both_sides(text: &str) -> String {
    let is_marker = |line: &str| {
        line.starts_with("<<<<<<< ") || line.trim_end() == "=======" || line.starts_with(">>>>>>> ")
    };
    text.split_inclusive('\n').filter(|line| !is_marker(line)).collect()
}

pub(crate) fn block(session: &Session, it: &Block) -> StepResult {
    session.liza(
        Arguments::new(["mark-blocked", session.task(), "--reason", &it.reason])
            .repeated("--question", &it.questions)
            .repeated("--attempted", &it.attempted),
    )
}

/// `liza submit-for-review` of HEAD.
pub(crate) fn submit(session: &Session) -> StepResult {
    session.liza(Arguments::new(["submit-for-review", session.task(), &session.head()?]))
}

/// Writes a small program with its test, or repairs the failed merge; commits and submits.
pub(crate) fn play_default(session: &Session, job: &CodingJob) -> StepResult {
    if job.merge_head.is_some() {
        let intent = "Merge the integration branch, keep both sides";
        pre_check(session, &default_pre_check(intent, "git status", &[]))?;
        merge(session, &Merge::default())?;
        return submit(session);
    }
    let task = &job.task;
    let (source, test) = (format!("src/{task}.sh"), format!("tests/{task}.sh"));
    let command = format!("sh {test}");
    let (what, done) = (first_line(&job.description), first_line(&job.done_when));
    pre_check(session, &default_pre_check(what, &command, &[&source, &test]))?;
    let text = format!("# {done}\ntest \"$(sh {source})\" = {task}\n");
    write(session, &FileContent { path: test.into(), text })?;
    let attempt = if job.rejected { format!("# Attempt {}.\n", job.iteration) } else { String::new() };
    let text = format!("# {what}\n{attempt}echo {task}\n");
    write(session, &FileContent { path: source.into(), text })?;
    session.shell(&command)?;
    commit(session, &format!("{task}: {what}"))?;
    submit(session)
}

fn default_pre_check(intent: &str, validation: &str, files: &[&str]) -> PreCheck {
    PreCheck {
        intent: if intent.is_empty() { "Do what the task describes".to_owned() } else { intent.to_owned() },
        validation: validation.to_owned(),
        assumptions: Vec::new(),
        risks: Vec::new(),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AG-15
    #[test]
    fn a_resolved_conflict_has_the_lines_of_both_sides() {
        let conflict = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd\n";
        assert_eq!(keep_both_sides(conflict), "a\nb\nc\nd\n");
    }
}
