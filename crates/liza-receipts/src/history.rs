//! What a history and its receipts show together: a class for each commit of a branch's first-parent line.
//!
//! Pure: git's facts come in as data. Without a signature it shows that history, receipts and approvals agree, not who made them.

use std::collections::{BTreeMap, BTreeSet};

use liza_ids::{Approver, Digest, Sha, TaskId};
use serde::Serialize;
use strum::{Display, IntoStaticStr};

use crate::{Level, Merge, Predicate, Purpose, ReviewVerdict, Statement, Validation};

/// The sentence that belongs to every result.
pub const LIMITS: &str =
    "without a signature this shows that history, receipts and approvals agree, not who made them";

/// The sentence that belongs to signed commits.
pub const SIGNED_LIMITS: &str = "SIGNED shows that a key in the file of signers made this merge commit, and so names its receipts; what \
     they say about reviews and commands is still the word of the Liza that ran there";

/// A commit of the line, as git and its message show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommit {
    pub commit: Sha,
    pub parents: Vec<Sha>,
    pub tree: Sha,
    pub subject: String,
    /// The kind of merge that its message claims; `None` for a commit that says nothing of Liza.
    pub claim: Option<Claim>,
    pub merged: Option<Sha>,
    pub approved_by: Option<String>,
    /// The value of its line `Liza-Statement`.
    pub statement: Option<String>,
    /// True if the clone ends here: its parents are not known.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Task(String),
    Sync,
    Finish,
}

/// Git's own merge of the parents of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recomputed {
    Files(Sha),
    Conflict,
}

/// Everything that a clone knows about its receipts.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// By the names under which they are kept.
    pub receipts: BTreeMap<Digest, Vec<u8>>,
    /// The names of the project.
    pub projects: Vec<String>,
    /// The merges of the line, by the commit.
    pub recomputed: BTreeMap<Sha, Recomputed>,
    /// The version of git that computed them.
    pub git: String,
    /// True if the clone lacks a part of the history.
    pub is_shallow: bool,
    /// The lowest confinement that a validation may state.
    pub min: Option<Level>,
    /// The signatures of commits, checked with keys that come from outside of the clone; none if no keys are given.
    pub signatures: BTreeMap<Sha, Signature>,
}

/// The signature of a commit. It covers the message, and with it the digest of the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    Good {
        /// The name of the signer.
        by: String,
        /// The fingerprint of the key.
        key: String,
    },
    /// The file of signers does not name the key.
    UnknownKey(String),
    /// It is of other content, or of a key that may not sign commits.
    Bad,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display, IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Class {
    /// History, receipts and approvals agree.
    Consistent,
    /// The same, and a known key signed the commit.
    Signed,
    /// The human merged it without validation.
    Overridden,
    /// The human accepted a commit that Liza did not merge.
    Accepted,
    /// The human brought in another branch.
    Sync,
    /// It is older than the first receipt.
    #[serde(rename = "BEFORE RECEIPTS")]
    #[strum(serialize = "BEFORE RECEIPTS")]
    BeforeReceipts,
    /// A receipt that it needs is not there.
    Missing,
    /// The clone does not have enough of the history.
    Unknown,
    /// Nothing says that Liza merged it or the human accepted it.
    Foreign,
    /// What it claims and what is there differ.
    Contradicted,
}

impl Class {
    pub fn is_ok(self) -> bool {
        match self {
            Self::Consistent
            | Self::Signed
            | Self::Overridden
            | Self::Accepted
            | Self::Sync
            | Self::BeforeReceipts => true,
            Self::Missing | Self::Unknown | Self::Foreign | Self::Contradicted => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub commit: Sha,
    pub class: Class,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The signer and the fingerprint of the key, whatever the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

type Judged = (Class, String);

/// The evidence with its statements, each read once.
struct Judge<'e> {
    evidence: &'e Evidence,
    statements: BTreeMap<&'e Digest, Result<Statement, Judged>>,
}

fn judged(class: Class, why: impl Into<String>) -> Judged {
    (class, why.into())
}

/// Judges the whole line, the oldest commit first.
pub fn judge_line(line: &[LineCommit], evidence: &Evidence) -> Vec<Finding> {
    let places: BTreeMap<&Sha, usize> =
        line.iter().enumerate().map(|(at, step)| (&step.commit, at)).collect();
    let judge = Judge::new(evidence);
    let mut results: Vec<Judged> =
        line.iter().map(|step| judge.check(step).unwrap_or_else(|problem| problem)).collect();
    let acceptances = judge.acceptances(&places);
    accept(&mut results, &acceptances);
    let start = judge.start(line, &acceptances);
    for result in results.iter_mut().take(start).filter(|(class, _)| *class == Class::Foreign) {
        *result = judged(Class::BeforeReceipts, "");
    }
    let sign = |(step, result): (&LineCommit, Judged)| {
        let (result, signed_by) = with_signature(result, evidence.signatures.get(&step.commit));
        finding(step, result, signed_by)
    };
    line.iter().zip(results).map(sign).collect()
}

/// The commits of a line that are older than its first receipt; none if it has no receipt.
pub fn before_receipts(line: &[LineCommit], evidence: &Evidence) -> BTreeSet<Sha> {
    let places = line.iter().enumerate().map(|(at, step)| (&step.commit, at)).collect();
    let judge = Judge::new(evidence);
    let start = judge.start(line, &judge.acceptances(&places));
    line.iter().take(start).map(|step| step.commit.clone()).collect()
}

/// The class of a commit together with its signature, and the signer if it is good.
fn with_signature((class, why): Judged, signature: Option<&Signature>) -> (Judged, Option<String>) {
    match signature {
        Some(Signature::Good { by, key }) => {
            let signed = if class == Class::Consistent { Class::Signed } else { class };
            (judged(signed, why), Some(format!("{by}, {key}")))
        }
        Some(Signature::Bad) if class.is_ok() && class != Class::BeforeReceipts => {
            let why = "its signature is of other content, or of a key that may not sign commits";
            (judged(Class::Contradicted, why), None)
        }
        Some(Signature::UnknownKey(key)) if class == Class::Consistent => {
            (judged(class, format!("signed by a key that the file of signers does not name, {key}")), None)
        }
        Some(Signature::Bad | Signature::UnknownKey(_)) | None => (judged(class, why), None),
    }
}

fn finding(step: &LineCommit, (class, why): Judged, signed_by: Option<String>) -> Finding {
    let task = match &step.claim {
        Some(Claim::Task(task)) => Some(task.clone()),
        Some(Claim::Sync | Claim::Finish) | None => None,
    };
    Finding { commit: step.commit.clone(), class, task, subject: step.subject.clone(), why, signed_by }
}

/// The place of an accepted head on the line, and the first commit that the human accepted with it, if the line has the one before.
struct Accepted {
    first: Option<usize>,
    head: usize,
}

/// The human's word covers the commits back to the head that was known before, or to the last one that needs no word.
fn accept(results: &mut [Judged], acceptances: &[Accepted]) {
    let needs_word = |class: Class| matches!(class, Class::Foreign | Class::Contradicted);
    for Accepted { first, head } in acceptances {
        for at in (first.unwrap_or(0)..=*head).rev() {
            match results.get_mut(at) {
                Some(result) if needs_word(result.0) => *result = judged(Class::Accepted, ""),
                Some((class, _)) if first.is_none() && *class != Class::Accepted => break,
                Some(_) | None => {}
            }
        }
    }
}

/// The statement of a receipt that is there; the error says what is wrong with it.
fn read(digest: &Digest, text: &[u8], evidence: &Evidence) -> Result<Statement, Judged> {
    let contradicted = |why: String| judged(Class::Contradicted, why);
    if Digest::of(text) != *digest {
        return Err(contradicted(format!("the receipt {} was edited", short(digest))));
    }
    let statement = Statement::decode(text).map_err(|error| contradicted(error.to_string()))?;
    match evidence.projects.contains(&statement.project) {
        true => Ok(statement),
        false => Err(contradicted(format!("the receipt {} is of another project", short(digest)))),
    }
}

fn short(digest: &Digest) -> &str {
    digest.as_str().get(..12).unwrap_or_default()
}

impl<'e> Judge<'e> {
    fn new(evidence: &'e Evidence) -> Self {
        let statements =
            evidence.receipts.iter().map(|(digest, text)| (digest, read(digest, text, evidence)));
        Self { evidence, statements: statements.collect() }
    }

    /// The statement of a receipt; the error says what is wrong with it.
    fn statement(&self, digest: &Digest) -> Result<&Statement, Judged> {
        let missing = || judged(Class::Missing, format!("there is no receipt {}", short(digest)));
        self.statements.get(digest).ok_or_else(missing)?.as_ref().map_err(Clone::clone)
    }

    /// True if the receipt that a commit names is kept.
    fn has_receipt(&self, step: &LineCommit) -> bool {
        let digest = step.statement.as_ref().and_then(|digest| digest.parse::<Digest>().ok());
        digest.is_some_and(|digest| self.statements.contains_key(&digest))
    }

    /// The place of the first commit that a receipt is about; 0 without any, or the end before the first merge of a project.
    fn start(&self, line: &[LineCommit], acceptances: &[Accepted]) -> usize {
        let stated = line.iter().position(|step| self.has_receipt(step));
        let accepted = acceptances.iter().map(|accepted| accepted.first.unwrap_or(accepted.head)).min();
        let without = if self.has_merged() { 0 } else { line.len() };
        stated.into_iter().chain(accepted).min().unwrap_or(without)
    }

    /// True unless all receipts are about work that is judged and not merged yet.
    fn has_merged(&self) -> bool {
        let is_before = |statement: &Result<Statement, Judged>| match statement {
            Ok(statement) => matches!(statement.predicate, Predicate::Validation(_) | Predicate::Review(_)),
            Err(_) => false,
        };
        !self.statements.values().all(is_before)
    }

    fn acceptances(&self, places: &BTreeMap<&Sha, usize>) -> Vec<Accepted> {
        let accepted = |statement: &Result<Statement, Judged>| {
            let Ok(Statement {
                predicate: Predicate::Acceptance(acceptance), purpose: Purpose::Accept, ..
            }) = statement
            else {
                return None;
            };
            let head = *places.get(&acceptance.head)?;
            let first = acceptance.old.as_ref().and_then(|old| places.get(old)).map(|old| old + 1);
            Some(Accepted { first: first.filter(|first| *first <= head), head })
        };
        self.statements.values().filter_map(accepted).collect()
    }

    fn check(&self, step: &LineCommit) -> Result<Judged, Judged> {
        let Some(named) = &step.statement else {
            let why = if step.claim.is_some() { "it names no statement" } else { "" };
            return Err(match step.is_cut {
                true => judged(Class::Unknown, "the clone ends here"),
                false => judged(Class::Foreign, why),
            });
        };
        let contradicted = |why: &str| judged(Class::Contradicted, why);
        let digest: Digest = named.parse().map_err(|_| contradicted("it names no digest"))?;
        let statement = self.statement(&digest)?;
        if step.is_cut {
            return Err(judged(Class::Unknown, "the clone ends here"));
        }
        let Predicate::Merge(merge) = &statement.predicate else {
            return Err(contradicted("its statement is about no merge"));
        };
        let (purpose, task) = match &step.claim {
            Some(Claim::Task(task)) => (Purpose::Merge, Some(task.as_str())),
            Some(Claim::Sync) => (Purpose::Sync, None),
            Some(Claim::Finish) => (Purpose::Finish, None),
            None => return Err(contradicted("it names a statement, and not what it merges")),
        };
        if statement.purpose != purpose {
            return Err(judged(Class::Contradicted, format!("its statement is for {}", statement.purpose)));
        }
        if statement.task.as_ref().map(TaskId::as_str) != task {
            return Err(contradicted("its statement is for another task"));
        }
        check_commit(step, merge, self.evidence)?;
        match purpose {
            Purpose::Merge => self.check_approval(step, merge, statement),
            Purpose::Sync => Ok(judged(Class::Sync, "")),
            Purpose::Finish | Purpose::Review | Purpose::Accept => Ok(judged(Class::Consistent, "")),
        }
    }

    /// Checks the statements on which the merge of a task rests.
    fn check_approval(
        &self,
        step: &LineCommit,
        merge: &Merge,
        statement: &Statement,
    ) -> Result<Judged, Judged> {
        let stated = merge.approved_by.map(|by| by.to_string());
        if step.approved_by != stated {
            return Err(judged(
                Class::Contradicted,
                "its message and its statement name different reviewers",
            ));
        }
        let (mut reviewers, mut has_validation) = (BTreeSet::new(), false);
        for digest in &merge.evidence {
            let other = self.statement(digest)?;
            let is_about = |commit: &Sha| other.task == statement.task && *commit == merge.commit;
            match &other.predicate {
                Predicate::Review(review)
                    if is_about(&review.commit) && review.verdict == ReviewVerdict::Approved =>
                {
                    reviewers.insert(review.agent.to_string());
                }
                Predicate::Validation(validation) if is_about(&validation.commit) => {
                    check_validation(validation, self.evidence)?;
                    has_validation = true;
                }
                Predicate::Review(_)
                | Predicate::Validation(_)
                | Predicate::Merge(_)
                | Predicate::Acceptance(_) => {
                    let why = format!("the receipt {} is about something else", short(digest));
                    return Err(judged(Class::Contradicted, why));
                }
            }
        }
        match merge.approved_by {
            None => return Err(judged(Class::Missing, "no approval")),
            Some(Approver::Agent(agent)) if !reviewers.contains(&agent.to_string()) => {
                return Err(judged(Class::Missing, format!("there is no receipt of the review by {agent}")));
            }
            Some(Approver::Human | Approver::Agent(_)) => {}
        }
        match self.evidence.min {
            _ if merge.without_validation => {
                Ok(judged(Class::Overridden, "the human merged it without validation"))
            }
            Some(min) if !has_validation => {
                Err(judged(Class::Missing, format!("no validation at {min} or above")))
            }
            Some(_) | None => Ok(judged(Class::Consistent, "")),
        }
    }
}

/// Compares parents and files with the statement, and the files with git's own merge.
fn check_commit(step: &LineCommit, merge: &Merge, evidence: &Evidence) -> Result<(), Judged> {
    let contradicted = |why: &str| Err(judged(Class::Contradicted, why));
    // A branch that is at the merged commit itself is the only parent.
    if step.merged.as_ref() != Some(&merge.commit) || step.parents.last() != Some(&merge.commit) {
        return contradicted("its statement is for another commit");
    }
    let parents = if merge.head == merge.commit { 1 } else { 2 };
    if step.parents.len() != parents || step.parents.first() != Some(&merge.head) {
        return contradicted("its statement is for another head of the branch");
    }
    if step.tree != merge.tree {
        return contradicted("its files are not those of its statement");
    }
    match evidence.recomputed.get(&step.commit) {
        Some(Recomputed::Files(tree)) if *tree == step.tree => Ok(()),
        _ if evidence.is_shallow => Err(judged(Class::Unknown, "the clone lacks a part of the history")),
        // Another version may merge in another way.
        _ if evidence.git != merge.made_by.git => {
            Err(judged(Class::Unknown, format!("not reproduced: it was made by git {}", merge.made_by.git)))
        }
        _ => contradicted("git merges its parents to other files"),
    }
}

fn check_validation(validation: &Validation, evidence: &Evidence) -> Result<(), Judged> {
    if validation.commands.iter().any(|run| run.exit != Some(0)) {
        return Err(judged(Class::Contradicted, "a validation that failed"));
    }
    match evidence.min.filter(|min| validation.level < *min) {
        Some(min) => {
            Err(judged(Class::Missing, format!("a validation at {}, below {min}", validation.level)))
        }
        None => Ok(()),
    }
}
