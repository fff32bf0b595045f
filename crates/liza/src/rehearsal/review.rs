//! The code reviewer's steps: reading the real change, and the verdict in its form.

use super::play::matches;
use super::stage::Stage;
use super::step::{Issue, Prior, ReadDiff, Reject};
use super::steps::words;
use super::{Done, Halt, RehearsalError};

/// Verifies HEAD and reads the whole change; gives its files.
pub(super) fn read_diff(stage: &Stage, it: &ReadDiff) -> Result<Vec<String>, Halt> {
    let job = stage.review()?;
    let head = stage.head()?;
    if head != job.commit.as_str() {
        stage.say(&format!("HEAD is {head}, not {}: no verdict", job.commit));
        return Err(Halt::Stop);
    }
    let base = match &job.base {
        Some(base) => base.clone(),
        None => stage
            .git(&["rev-parse", &format!("{}^", job.commit)])?
            .parse()
            .map_err(|_| RehearsalError::NoPart("the prompt names no base, and the commit has no parent"))?,
    };
    let range = format!("{base}..{}", job.commit);
    let files = stage.git_files(&["diff", "--name-only", "-z", &range])?;
    if files.is_empty() {
        return Err(RehearsalError::EmptyDiff { base, commit: job.commit.clone() }.into());
    }
    let diff = stage.try_diff(&range)?;
    stage.reads(diff.len());
    let lines = String::from_utf8_lossy(&diff).lines().count();
    stage.say(&format!("read {lines} lines of diff in {}", files.join(", ")));
    let inside = |file: &&String| it.within.iter().any(|pattern| matches(pattern, file));
    let beyond: Vec<String> = files.iter().filter(|file| !inside(file)).cloned().collect();
    if !it.within.is_empty() && !beyond.is_empty() {
        return Err(RehearsalError::BeyondScope { within: it.within.clone(), files: beyond }.into());
    }
    if it.tests && !has_tests(&files) {
        return Err(RehearsalError::NoTests.into());
    }
    stage.has_read.set(true);
    Ok(files)
}

/// Whether a test is among the files.
pub(super) fn has_tests(files: &[String]) -> bool {
    files.iter().any(|file| file.to_lowercase().contains("test"))
}

/// Whether nothing but docs, configuration or specs changed.
pub(super) fn needs_no_tests(files: &[String]) -> bool {
    let kinds = [".md", ".txt", ".toml", ".yaml", ".yml", ".json"];
    files.iter().all(|file| kinds.iter().any(|kind| file.ends_with(kind)))
}

fn read_first(stage: &Stage) -> Done {
    if !stage.has_read.get() {
        read_diff(stage, &ReadDiff::default())?;
    }
    Ok(())
}

/// `liza submit-verdict TASK APPROVED`
pub(super) fn approve(stage: &Stage) -> Done {
    read_first(stage)?;
    stage.liza(&words(["submit-verdict", stage.task(), "APPROVED"]))
}

/// `liza submit-verdict TASK REJECTED`, with the reason on standard input.
pub(super) fn reject(stage: &Stage, it: &Reject) -> Done {
    read_first(stage)?;
    let reason = stage.fill(&reason(it, stage.review()?.prior_required));
    stage.say(&reason);
    stage.liza_with(&words(["submit-verdict", stage.task(), "REJECTED", "-"]), &reason)
}

/// The reason in the form that the prompt shows.
fn reason(it: &Reject, prior: bool) -> String {
    let mut text = format!("Blockers: {}\n", it.blockers.len());
    text.extend(it.blockers.iter().map(|issue| point("blocker", issue)));
    text.push_str(&format!("\nConcerns: {}\n", it.concerns.len()));
    text.extend(it.concerns.iter().map(|issue| point("concern", issue)));
    text.push_str(&format!("\nOverall: {}\n", it.overall));
    if prior {
        text.push_str(&prior_status(&it.prior));
    }
    text
}

fn point(kind: &str, issue: &Issue) -> String {
    let mut text = format!("- [{kind}] {} — {}\n", issue.at, issue.issue);
    if let Some(why) = &issue.why {
        text.push_str(&format!("  Why it matters: {why}\n"));
    }
    if let Some(suggestion) = &issue.suggestion {
        text.push_str(&format!("  Suggestion: {suggestion}\n"));
    }
    text
}

fn prior_status(prior: &Prior) -> String {
    let list = |issues: &[String]| match issues {
        [] => "none".to_owned(),
        issues => issues.join("; "),
    };
    format!(
        "\nPrior Feedback Status:\n- RESOLVED: {}\n- STILL PRESENT: {}\n- PARTIAL: {}\n",
        list(&prior.resolved),
        list(&prior.still_present),
        list(&prior.partial)
    )
}
