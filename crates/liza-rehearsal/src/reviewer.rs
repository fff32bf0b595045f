//! The code reviewer: its steps, and its verdict if no scene fits. Never judges a change that it has not read.

use crate::arguments::Arguments;
use crate::error::{RehearsalError, StepError, StepResult};
use crate::playbook::{Issue, Prior, ReadDiff, Reject, matches_pattern};
use crate::session::Session;

/// Verifies HEAD, reads the whole change and returns its files.
pub(crate) fn read_diff(session: &Session, it: &ReadDiff) -> StepResult<Vec<String>> {
    let job = session.review_job()?;
    let head = session.head()?;
    if head != job.commit {
        session.say(&format!("HEAD is {head}, not {}: no verdict", job.commit));
        return Err(StepError::Stopped);
    }
    let base = match &job.base {
        Some(base) => base.clone(),
        None => session.git(&["rev-parse", "--verify", &format!("{}^", job.commit)])?,
    };
    let range = format!("{base}..{}", job.commit);
    let files = session.git_files(&["diff", "--name-only", "-z", &range])?;
    if files.is_empty() {
        return Err(RehearsalError::EmptyDiff { base, commit: job.commit.clone() }.into());
    }
    let diff = session.git_bytes(&["diff", &range])?;
    let lines = String::from_utf8_lossy(&diff).lines().count();
    session.say(&format!("read {lines} lines of diff in {}", files.join(", ")));
    check_files(&files, it)?;
    session.diff_read.set(true);
    Ok(files)
}

fn check_files(changed: &[String], it: &ReadDiff) -> Result<(), RehearsalError> {
    let allowed = |file: &&String| it.within.iter().any(|pattern| matches_pattern(pattern, file));
    let files: Vec<String> = changed.iter().filter(|file| !allowed(file)).cloned().collect();
    if !it.within.is_empty() && !files.is_empty() {
        return Err(RehearsalError::OutOfScope { within: it.within.clone(), files });
    }
    if it.tests && !has_tests(changed) {
        return Err(RehearsalError::NoTests);
    }
    Ok(())
}

fn has_tests(files: &[String]) -> bool {
    files.iter().any(|file| file.to_lowercase().contains("test"))
}

/// True if only docs, configuration or specs have changed.
fn needs_no_tests(files: &[String]) -> bool {
    let extensions = [".md", ".txt", ".toml", ".yaml", ".yml", ".json"];
    files.iter().all(|file| extensions.iter().any(|extension| file.ends_with(extension)))
}

fn read_diff_once(session: &Session) -> StepResult {
    if !session.diff_read.get() {
        read_diff(session, &ReadDiff::default())?;
    }
    Ok(())
}

/// Liza's refusal of an approval after the integration branch moved and changed the result.
const MOVED: &str = "the integration branch moved to";

/// The number of times that such a change is read again.
const REREADS_MAX: usize = 3;

/// `liza submit-verdict TASK APPROVED`, with the evidence on standard input.
pub(crate) fn approve(session: &Session) -> StepResult {
    read_diff_once(session)?;
    let evidence = evidence(&session.checks.borrow(), &session.review_job()?.commit);
    let verdict = Arguments::new(["submit-verdict", session.task(), "APPROVED", "-"]);
    let mut finished = session.try_liza(&verdict, &evidence)?;
    for _ in 0..REREADS_MAX {
        if finished.code == 0 || !finished.output().contains(MOVED) {
            break;
        }
        session.say("the integration branch moved: I read the change again");
        session.liza(Arguments::new(["diff", session.task()]))?;
        finished = session.try_liza(&verdict, &evidence)?;
    }
    Session::succeeded(verdict.as_ref(), &finished)
}

/// Lists the commands that this session has really run.
fn evidence(checks: &[String], commit: &str) -> String {
    let mut text = format!("Ran:\n- git diff up to {commit}: read\n");
    text.extend(checks.iter().map(|command| format!("- {command}: exit 0\n")));
    text.push_str("Shown by:\n- DONE WHEN: the tests of the change\n");
    text
}

/// `liza submit-verdict TASK REJECTED`, with the reason on standard input.
pub(crate) fn reject(session: &Session, it: &Reject) -> StepResult {
    read_diff_once(session)?;
    let reason = session.expand(&rejection(it, session.review_job()?.prior_required));
    session.say(&reason);
    session.liza_with_input(Arguments::new(["submit-verdict", session.task(), "REJECTED", "-"]), &reason)
}

/// Reads the change; approves it if it has tests or needs none.
pub(crate) fn play_default(session: &Session) -> StepResult {
    let files = read_diff(session, &ReadDiff::default())?;
    if has_tests(&files) || needs_no_tests(&files) {
        return approve(session);
    }
    let blocker = Issue {
        at: format!("{}:1", files.first().map_or("", String::as_str)),
        issue: "no test covers DONE WHEN".to_owned(),
        why: Some("without a test it is not clear whether it is done".to_owned()),
        suggestion: Some("add a test that fails without the change".to_owned()),
    };
    let prior = Prior { still_present: vec!["tests are missing".to_owned()], ..Prior::default() };
    let overall = "The change may be right, but no test shows it.".to_owned();
    reject(session, &Reject { blockers: vec![blocker], concerns: Vec::new(), overall, prior })
}

/// Formats the reason as the prompt asks.
fn rejection(it: &Reject, prior_required: bool) -> String {
    let mut text = format!("Blockers: {}\n", it.blockers.len());
    text.extend(it.blockers.iter().map(|issue| format_issue("blocker", issue)));
    text.push_str(&format!("\nConcerns: {}\n", it.concerns.len()));
    text.extend(it.concerns.iter().map(|issue| format_issue("concern", issue)));
    text.push_str(&format!("\nOverall: {}\n", it.overall));
    if prior_required {
        text.push_str(&prior_feedback_status(&it.prior));
    }
    text
}

fn format_issue(kind: &str, issue: &Issue) -> String {
    let mut text = format!("- [{kind}] {} — {}\n", issue.at, issue.issue);
    if let Some(why) = &issue.why {
        text.push_str(&format!("  Why it matters: {why}\n"));
    }
    if let Some(suggestion) = &issue.suggestion {
        text.push_str(&format!("  Suggestion: {suggestion}\n"));
    }
    text
}

fn prior_feedback_status(prior: &Prior) -> String {
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
