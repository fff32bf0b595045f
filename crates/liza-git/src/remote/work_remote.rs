//! The remote through which machines exchange work, one command at a time. Its content is checked like that
//! of a worktree: only named references, every object checked, no tags, no submodules. Programs come from the
//! person's own configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use liza_host::secrets::Masker;
use liza_ids::Sha;

use crate::program::command::GitCommand;
use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::output::GitOutput;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};

/// The folder of the references with the last seen positions of the remote's references.
pub(crate) const SEEN: &str = "refs/liza/remote";

/// The number of reads of a reference that moves between two commands.
const READS: u32 = 3;

/// The number of pushes of references that other pushes keep moving.
const PUSHES: u32 = 3;

#[derive(Debug)]
pub struct WorkRemote<'r> {
    repo: &'r Repo,
    name: String,
    limit: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefChange {
    /// Moves it, wherever it is.
    Set { name: String, to: Sha },
    /// Moves it from exactly there; with `from` of `None` it must not exist yet.
    Move { name: String, from: Option<Sha>, to: Sha },
    /// Deletes it, if it has not moved.
    Delete { name: String, at: Sha },
}

impl RefChange {
    fn name(&self) -> &str {
        match self {
            Self::Set { name, .. } | Self::Move { name, .. } | Self::Delete { name, .. } => name,
        }
    }

    /// The wanted commit of the reference; `None` for a deletion.
    fn wanted(&self) -> Option<&Sha> {
        match self {
            Self::Set { to, .. } | Self::Move { to, .. } => Some(to),
            Self::Delete { .. } => None,
        }
    }

    fn refspec(&self) -> String {
        match self {
            Self::Set { name, to } => format!("+{to}:{name}"),
            Self::Move { name, to, .. } => format!("{to}:{name}"),
            Self::Delete { name, .. } => format!(":{name}"),
        }
    }

    /// The option that makes git expect the reference where it was seen.
    fn lease(&self) -> Option<String> {
        match self {
            Self::Set { .. } => None,
            Self::Move { name, from, .. } => {
                let from = from.as_ref().map_or("", Sha::as_str);
                Some(format!("--force-with-lease={name}:{from}"))
            }
            Self::Delete { name, at } => Some(format!("--force-with-lease={name}:{at}")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// All references are as wanted.
    Done,
    /// None has changed: one was not where it was expected.
    Moved,
    /// None has changed: the remote refuses it.
    Refused { message: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteProbe {
    /// `None` if there is no such branch.
    pub head: Option<Sha>,
    /// The remote's reason to refuse pushes to the branch, if it gives one.
    pub refusal: Option<String>,
}

/// Reasons in git's report that only say that another reference of the same push was rejected.
const FOLLOW_UPS: [&str; 4] =
    ["atomic push failed", "atomic push failure", "atomic transaction failed", "transaction failed to start"];

/// Reasons that mean that the reference is not where it was expected. The remote's words differ by version
/// and by the moment of the other push.
const MOVED: [&str; 7] = [
    "stale info",
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "incorrect old value",
    "failed to lock",
    "reference already exists",
];

/// The remote's message if another push holds a reference, or has just moved it.
const CONTENDED: &str = "cannot lock ref";

impl Repo {
    /// Each command has this time limit.
    pub fn work_remote(&self, name: &str, limit: Duration) -> WorkRemote<'_> {
        WorkRemote { repo: self, name: name.to_owned(), limit }
    }
}

impl WorkRemote<'_> {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Fetches a branch and returns its head; `None` if there is no such branch.
    pub fn fetch_branch(&self, branch: &Branch) -> Result<Option<Sha>, GitError> {
        for _ in 0..READS {
            let Some(head) = self.find(&branch.full())? else { return Ok(None) };
            if self.repo.has_commit(&head)? {
                return self.see_branch(branch, &head).map(|()| Some(head));
            }
            // After a force push, too, the next read finds the new head.
            let _ = self.fetch(&branch.full(), &format!("{SEEN}/{branch}"))?;
        }
        Err(self.unreachable(&format!("{branch} keeps moving")))
    }

    /// `None` if there is no such reference.
    pub fn find(&self, name: &str) -> Result<Option<Sha>, GitError> {
        Ok(self.list(name)?.into_iter().next().map(|(_, commit)| commit))
    }

    /// References that match a pattern such as `refs/liza/task/one/*`.
    pub fn list(&self, pattern: &str) -> Result<Vec<(String, Sha)>, GitError> {
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

    /// Fetches a reference as `to`; returns its commit.
    pub fn fetch(&self, from: &str, to: &str) -> Result<Sha, GitError> {
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

    /// Changes references of the remote, all of them or none. Their final positions decide: another push of
    /// the same commits may have been faster.
    pub fn push(&self, changes: &[RefChange]) -> Result<PushOutcome, GitError> {
        let expects_nothing = changes.iter().all(|change| matches!(change, RefChange::Set { .. }));
        for _ in 1..PUSHES {
            match self.push_once(changes)? {
                PushAttempt::Ended(outcome) => return Ok(outcome),
                // Another push came first; these references have to move in any case.
                PushAttempt::Rejected(rejection) if expects_nothing && rejection.is_contended() => {}
                PushAttempt::Rejected(rejection) => return Ok(rejection.outcome()),
            }
        }
        Ok(match self.push_once(changes)? {
            PushAttempt::Ended(outcome) => outcome,
            PushAttempt::Rejected(rejection) if expects_nothing => rejection.refused(),
            PushAttempt::Rejected(rejection) => rejection.outcome(),
        })
    }

    fn push_once(&self, changes: &[RefChange]) -> Result<PushAttempt, GitError> {
        let command = self
            .command("pushing")
            .args(["push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"])
            .args(["--recurse-submodules=no"])
            .args(changes.iter().filter_map(RefChange::lease))
            .args(["--", &self.name])
            .args(changes.iter().map(RefChange::refspec));
        let result = command.run();
        if result.as_ref().is_ok_and(|output| output.status == Some(0)) {
            return Ok(PushAttempt::Ended(PushOutcome::Done));
        }
        if let Some(outcome) = self.found_instead(changes) {
            return Ok(PushAttempt::Ended(outcome));
        }
        let output = result.map_err(|error| self.no_answer(error))?;
        match Rejection::of(&output) {
            Some(rejection) => Ok(PushAttempt::Rejected(rejection)),
            None => Err(self.unreachable(&output.message())),
        }
    }

    /// Judges a failed push by the remote's references: done if they are as wanted, moved if one is not where
    /// it was expected. `None` if they don't decide it, or cannot be read.
    fn found_instead(&self, changes: &[RefChange]) -> Option<PushOutcome> {
        let command = self.command("listing references").args(["ls-remote", "--refs", "--", &self.name]);
        let output = self.answered(&command.args(changes.iter().map(RefChange::name))).ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let parse = |line: &str| {
            let (commit, name) = line.split_once('\t')?;
            Some((name.to_owned(), sha(commit.as_bytes())?))
        };
        let found: BTreeMap<String, Sha> = text.lines().filter_map(parse).collect();
        if changes.iter().all(|change| found.get(change.name()) == change.wanted()) {
            return Some(PushOutcome::Done);
        }
        let is_unexpected = |change: &RefChange| match change {
            RefChange::Set { .. } => false,
            RefChange::Move { name, from, .. } => found.get(name) != from.as_ref(),
            RefChange::Delete { name, at } => found.get(name) != Some(at),
        };
        changes.iter().any(is_unexpected).then_some(PushOutcome::Moved)
    }

    /// Tests whether references can be created and deleted, and whether a branch takes pushes. Leaves nothing.
    pub fn probe(&self, branch: &Branch) -> Result<RemoteProbe, GitError> {
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

    /// The reason why pushes to a branch are refused, such as a rule that demands pull requests, if the
    /// remote gives one. Changes nothing: the atomic push also contains a reference that git cannot create.
    fn branch_refusal(&self, branch: &Branch, head: &Sha) -> Result<Option<String>, GitError> {
        let tree = self.repo.tree_of(head)?;
        let probe = self.repo.commit_tree("probe\n", &tree, std::slice::from_ref(head))?;
        let changes = [
            RefChange::Move { name: branch.full(), from: Some(head.clone()), to: probe.clone() },
            RefChange::Set { name: format!("{}/liza-probe", branch.full()), to: probe },
        ];
        match self.push(&changes)? {
            PushOutcome::Refused { message } if !message.contains(CONTENDED) => Ok(Some(message)),
            PushOutcome::Refused { .. } | PushOutcome::Moved | PushOutcome::Done => Ok(None),
        }
    }

    pub fn see_branch(&self, branch: &Branch, commit: &Sha) -> Result<(), GitError> {
        self.see(&format!("{SEEN}/{branch}"), commit)
    }

    /// Notes the position of a reference of the remote, which also keeps the commit.
    pub fn see(&self, name: &str, commit: &Sha) -> Result<(), GitError> {
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

    /// A command that ended at its time limit counts as one that did not reach the remote.
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

enum PushAttempt {
    Ended(PushOutcome),
    /// The remote's references don't show the reason; only its words do.
    Rejected(Rejection),
}

struct Rejection {
    message: String,
    is_moved: bool,
}

impl Rejection {
    /// `None` if the remote did not report on the references.
    fn of(output: &GitOutput) -> Option<Self> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let reason = |line: &str| {
            let status = line.strip_prefix("!\t")?.split('\t').nth(1)?.to_owned();
            let start = status.find('(')?;
            Some(status.get(start + 1..)?.trim_end_matches(')').to_owned())
        };
        let reasons: Vec<String> = text.lines().filter_map(reason).collect();
        let own: Vec<&String> = reasons.iter().filter(|reason| !is_one_of(reason, &FOLLOW_UPS)).collect();
        let reason = own.first().copied().or(reasons.first())?;
        let said = remote_words(&String::from_utf8_lossy(&output.stderr));
        let is_moved = match own.is_empty() {
            // The reason is in the remote's words only, as with a single reference in an atomic push.
            true => is_one_of(&said, &MOVED),
            false => own.iter().all(|reason| is_one_of(reason, &MOVED)),
        };
        let message = if said.is_empty() { reason.clone() } else { format!("{said} ({reason})") };
        Some(Self { message: Masker::of_process().mask(&message).into_owned(), is_moved })
    }

    fn is_contended(&self) -> bool {
        self.is_moved || self.message.contains(CONTENDED)
    }

    fn outcome(self) -> PushOutcome {
        if self.is_moved { PushOutcome::Moved } else { self.refused() }
    }

    fn refused(self) -> PushOutcome {
        PushOutcome::Refused { message: self.message }
    }
}

fn is_one_of(reason: &str, known: &[&str]) -> bool {
    known.iter().any(|known| reason.contains(known))
}

/// The remote's own output, on one line.
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
