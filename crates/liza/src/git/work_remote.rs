//! The remote through which machines exchange work: what is sent to it and taken from it, one command at a time.
//!
//! What comes from it is checked like what comes from a worktree: only named references, every object checked, no tags, no
//! submodules. Programs come from the person's own configuration. Decides nothing about tasks.

use std::time::Duration;

use liza_core::model::Sha;

use super::command::GitCommand;
use super::error::GitError;
use super::leftovers::temporary_name;
use super::output::GitOutput;
use super::refs::Branch;
use super::repo::{Repo, sha};
use crate::secrets::Masker;

/// The folder of the references that say where the remote's references were when last seen.
pub(crate) const SEEN: &str = "refs/liza/remote";

/// How often a reference is read again because it moved between two commands.
const READS: u32 = 3;

/// The remote through which machines exchange work.
#[derive(Debug)]
pub(crate) struct WorkRemote<'r> {
    repo: &'r Repo,
    name: String,
    limit: Duration,
}

/// A reference of the remote and what a push does to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefChange {
    /// Moves it, wherever it is.
    Set { name: String, to: Sha },
    /// Moves it from exactly there; it must not exist yet where `from` is `None`.
    Move { name: String, from: Option<Sha>, to: Sha },
    /// Deletes it, if it still is there.
    Delete { name: String, at: Sha },
}

/// The outcome of a push that the remote answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// All references are as wanted.
    Done,
    /// None has changed: one was not where it was expected.
    Moved,
    /// None has changed: the remote refuses it.
    Refused {
        /// Its own words.
        message: String,
    },
}

/// What a probe of a remote found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteProbe {
    /// The head of the branch there; `None` if there is no such branch.
    pub(crate) head: Option<Sha>,
    /// Why pushes to the branch are refused, in the remote's own words; `None` if they are not, or it does not say.
    pub(crate) refusal: Option<String>,
}

/// Reasons in git's report that only say that another reference of the same push was rejected.
const FOLLOW_UPS: [&str; 4] =
    ["atomic push failed", "atomic push failure", "atomic transaction failed", "transaction failed to start"];

/// Reasons that mean that the reference is not where it was expected. The remote's own words differ by version and when
/// exactly the other push came.
const MOVED: [&str; 7] = [
    "stale info",
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "incorrect old value",
    "failed to lock",
    "reference already exists",
];

impl Repo {
    /// The remote of that name, with a time limit for each command to it.
    pub(crate) fn work_remote(&self, name: &str, limit: Duration) -> WorkRemote<'_> {
        WorkRemote { repo: self, name: name.to_owned(), limit }
    }
}

impl WorkRemote<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The head of one of its branches, which this repository has afterwards; `None` if there is no such branch.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached, or what it sends is damaged.
    pub(crate) fn fetch_branch(&self, branch: &Branch) -> Result<Option<Sha>, GitError> {
        for _ in 0..READS {
            let Some(head) = self.find(&branch.full())? else { return Ok(None) };
            if self.repo.has_commit(&head)? {
                return self.see_branch(branch, &head).map(|()| Some(head));
            }
            // Also after a force push the next reading finds what is there now.
            let _ = self.fetch(&branch.full(), &format!("{SEEN}/{branch}"))?;
        }
        Err(self.unreachable(&format!("{branch} keeps moving")))
    }

    /// The commit of one of its references; `None` if there is none of that name.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Sha>, GitError> {
        Ok(self.list(name)?.into_iter().next().map(|(_, commit)| commit))
    }

    /// Its references that match a pattern such as `refs/liza/task/one/*`.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached.
    pub(crate) fn list(&self, pattern: &str) -> Result<Vec<(String, Sha)>, GitError> {
        let prefix = pattern.trim_end_matches('*');
        let command =
            self.command("listing references").args(["ls-remote", "--refs", "--", &self.name, pattern]);
        let output = self.answered(&command)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let parse = |line: &str| {
            let (commit, name) = line.split_once('\t')?;
            // A pattern also matches the end of longer names.
            let wanted = if prefix == pattern { name == pattern } else { name.starts_with(prefix) };
            Some((name.to_owned(), sha(commit.as_bytes())?)).filter(|_| wanted)
        };
        Ok(text.lines().filter_map(parse).collect())
    }

    /// Brings one of its references here, as `to`; returns its commit.
    ///
    /// # Errors
    ///
    /// [`GitError::RemoteRefMissing`] when it has none of that name.
    pub(crate) fn fetch(&self, from: &str, to: &str) -> Result<Sha, GitError> {
        let refspec = format!("+{from}:{to}");
        let command = self
            .command(&format!("fetching {from}"))
            .args(["-c", "fetch.fsckObjects=true", "-c", "fetch.writeCommitGraph=false"])
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"])
            .args(["--no-recurse-submodules", "--no-prune", "--refmap=", "--", &self.name, &refspec]);
        let output = command.run().map_err(|error| self.no_answer(error))?;
        if output.status == Some(0) {
            let read = self.repo.command("reading a reference").args(["rev-parse", "--verify", to]);
            return read.read_with(sha);
        }
        let missing = output.message().contains("couldn't find remote ref");
        Err(match missing {
            true => GitError::RemoteRefMissing { remote: self.name.clone(), name: from.to_owned() },
            false => self.unreachable(&output.message()),
        })
    }

    /// Changes references of the remote, all of them or none.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached or does not answer. It may have done it nevertheless.
    pub(crate) fn push(&self, changes: &[RefChange]) -> Result<PushOutcome, GitError> {
        let (mut leases, mut refspecs) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                RefChange::Set { name, to } => refspecs.push(format!("+{to}:{name}")),
                RefChange::Move { name, from, to } => {
                    let from = from.as_ref().map_or("", Sha::as_str);
                    leases.push(format!("--force-with-lease={name}:{from}"));
                    refspecs.push(format!("{to}:{name}"));
                }
                RefChange::Delete { name, at } => {
                    leases.push(format!("--force-with-lease={name}:{at}"));
                    refspecs.push(format!(":{name}"));
                }
            }
        }
        let command = self
            .command("pushing")
            .args(["push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"])
            .args(["--recurse-submodules=no"])
            .args(leases)
            .args(["--", &self.name])
            .args(refspecs);
        let output = command.run().map_err(|error| self.no_answer(error))?;
        if output.status == Some(0) {
            return Ok(PushOutcome::Done);
        }
        match rejection(&output) {
            Some(outcome) => Ok(outcome),
            None => Err(self.unreachable(&output.message())),
        }
    }

    /// Finds out whether references can be created and deleted, and whether a branch takes pushes. Nothing is left behind.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached, or refuses references of ours.
    pub(crate) fn probe(&self, branch: &Branch) -> Result<RemoteProbe, GitError> {
        let name = format!("refs/liza/probe/{}", temporary_name(""));
        let at = self.repo.head()?.commit;
        let create = RefChange::Set { name: name.clone(), to: at.clone() };
        for change in [create, RefChange::Delete { name: name.clone(), at }] {
            if let PushOutcome::Refused { message } = self.push(&[change])? {
                let (remote, what) = (self.name.clone(), format!("a push to {name}"));
                return Err(GitError::RemoteRefused { remote, what, message });
            }
        }
        let head = self.fetch_branch(branch)?;
        let refusal = match &head {
            Some(head) => self.branch_refusal(branch, head)?,
            None => None,
        };
        Ok(RemoteProbe { head, refusal })
    }

    /// Whether pushes to a branch are refused, as by a rule that demands pull requests; `None` if the remote does not say.
    /// Changes nothing: the push also contains a reference that git cannot create, and is made as a whole or not at all.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached.
    fn branch_refusal(&self, branch: &Branch, head: &Sha) -> Result<Option<String>, GitError> {
        let tree = self.repo.tree_of(head)?;
        let probe = self.repo.commit_tree("probe\n", &tree, std::slice::from_ref(head))?;
        let changes = [
            RefChange::Move { name: branch.full(), from: Some(head.clone()), to: probe.clone() },
            RefChange::Set { name: format!("{}/liza-probe", branch.full()), to: probe },
        ];
        match self.push(&changes)? {
            PushOutcome::Refused { message } if !message.contains("cannot lock ref") => Ok(Some(message)),
            PushOutcome::Refused { .. } | PushOutcome::Moved | PushOutcome::Done => Ok(None),
        }
    }

    /// Notes where one of its branches is.
    pub(crate) fn see_branch(&self, branch: &Branch, commit: &Sha) -> Result<(), GitError> {
        self.see(&format!("{SEEN}/{branch}"), commit)
    }

    /// Notes where a reference of the remote is, which also keeps the commit.
    pub(crate) fn see(&self, name: &str, commit: &Sha) -> Result<(), GitError> {
        let command = self.repo.command("noting what the remote has");
        command.args(["update-ref", "--", name, commit.as_str()]).check()
    }

    fn command(&self, action: &str) -> GitCommand {
        self.repo.command(format!("{action} ({})", self.name)).limit(self.limit)
    }

    fn answered(&self, command: &GitCommand) -> Result<GitOutput, GitError> {
        let output = command.run().map_err(|error| self.no_answer(error))?;
        if output.status == Some(0) { Ok(output) } else { Err(self.unreachable(&output.message())) }
    }

    /// A command that ended at its time limit has not reached the remote, as far as is known.
    fn no_answer(&self, error: GitError) -> GitError {
        if let GitError::TimedOut { limit, .. } = &error {
            return self.unreachable(&format!("no answer within {} s", limit.as_secs()));
        }
        error
    }

    fn unreachable(&self, message: &str) -> GitError {
        let message = Masker::of_process().mask(&important(message)).into_owned();
        GitError::RemoteUnreachable { remote: self.name.clone(), message }
    }
}

/// What a rejected push means; `None` if the remote did not report on the references.
fn rejection(output: &GitOutput) -> Option<PushOutcome> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reason = |line: &str| {
        let status = line.strip_prefix("!\t")?.split('\t').nth(1)?.to_owned();
        let start = status.find('(')?;
        Some(status.get(start + 1..)?.trim_end_matches(')').to_owned())
    };
    let reasons: Vec<String> = text.lines().filter_map(reason).collect();
    let own: Vec<&String> = reasons.iter().filter(|reason| !is_one_of(reason, &FOLLOW_UPS)).collect();
    if reasons.is_empty() {
        return None;
    }
    let said = remote_words(&String::from_utf8_lossy(&output.stderr));
    let is_moved = match own.is_empty() {
        // The reason is in the remote's words only, as with a single reference in an atomic push.
        true => is_one_of(&said, &MOVED),
        false => own.iter().all(|reason| is_one_of(reason, &MOVED)),
    };
    if is_moved {
        return Some(PushOutcome::Moved);
    }
    let reason =
        own.first().map(ToString::to_string).or_else(|| reasons.first().cloned()).unwrap_or_default();
    let message = if said.is_empty() { reason } else { format!("{said} ({reason})") };
    Some(PushOutcome::Refused { message: Masker::of_process().mask(&message).into_owned() })
}

fn is_one_of(reason: &str, known: &[&str]) -> bool {
    known.iter().any(|known| reason.contains(known))
}

/// What the remote itself printed, on one line.
fn remote_words(stderr: &str) -> String {
    let words = stderr.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Git's message without its general advice, on one line.
fn important(message: &str) -> String {
    const ADVICE: [&str; 2] = ["Please make sure you have", "and the repository exists."];
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !ADVICE.iter().any(|advice| line.starts_with(advice)));
    lines.collect::<Vec<_>>().join("; ")
}
