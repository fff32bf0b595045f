//! `liza verify`: compares a branch with its receipts, and a project with itself. Needs a clone and no blackboard; changes nothing but, with `--fetch`, the
//! receipts of the clone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::audit::Contradiction;
use liza_core::text::count;
use liza_git::{CommitSignature, Git, LineStep, RECEIPTS, REMOTE_RECEIPTS, Repo};
use liza_ids::Sha;
use liza_receipts::{
    Claim, Class, Evidence, Finding, LIMITS, Level, LineCommit, Recomputed, SIGNED_LIMITS, Signature,
    before_receipts, judge_line,
};
use liza_sandbox::sys::find_program;
use liza_team::engine::integration_branch;
use liza_team::observe::audit::contradictions;
use liza_team::project::{Project, now};
use serde_json::json;
use strum::VariantNames as _;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::layout::clean;
use crate::cli::ui::output::Reply;

/// The longest fetch of the receipts.
const FETCH_LIMIT: Duration = Duration::from_secs(120);

/// The branches that are looked at where no blackboard names one.
const BRANCHES: [&str; 3] = ["refs/heads/integration", "refs/remotes/origin/integration", "HEAD"];

/// Compare a branch with its receipts, in any clone.
///
/// A receipt says what was judged, by whom and with which result. Works in every clone that has the receipts (--fetch gets them). Each commit of the branch's own line gets a class:
/// CONSISTENT, SIGNED (with --signers), OVERRIDDEN (you merged it without validation), ACCEPTED (you accepted it), SYNC, BEFORE RECEIPTS (older than the first receipt, as what was there before Liza); or, and then it exits 4,
/// MISSING (a receipt is not there), UNKNOWN (the clone does not have enough), FOREIGN, CONTRADICTED.
///
/// In a project it also compares blackboard, log, archive, receipts and git with each other, and lists each contradiction with its
/// kind and place.
///
/// Without a signature it shows that history, receipts and approvals agree, not who made them. With --signers, a CONSISTENT commit that is
/// signed by a key in FILE is SIGNED (by KEY): that key made the merge commit. Merges are signed if you set it up in git (commit.gpgsign, gpg.format ssh).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza verify
  liza verify --fetch
  liza verify v1.0..integration
  liza verify --signers ~/.ssh/allowed_signers
  liza verify --min restricted --json")]
pub(crate) struct Args {
    /// A branch or commit, or OLD..NEW; otherwise the integration branch.
    range: Option<String>,
    /// Fetch the receipts from the remote first.
    #[arg(long)]
    fetch: bool,
    /// Check the signatures of merges by ssh keys in this file, in the form of ssh's allowed signers: `NAME KEY`. It must be outside of the clone.
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// The lowest confinement that a validation may state, and then each merge needs one.
    #[arg(long, value_name = "LEVEL", value_parser = clap::builder::PossibleValuesParser::new(Level::VARIANTS))]
    min: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let has_project = context.is_of_session() || Project::find(&context.directory).is_some();
    let project = has_project.then(|| context.project()).transpose()?;
    let repo = match &project {
        Some(project) => project.repo()?.clone(),
        None => Repo::open(&Git::new(), &context.directory)?,
    };
    if args.fetch {
        if context.is_of_session() {
            // A session has no network of yours.
            context.human_only("verify --fetch")?;
        }
        fetch(&repo)?;
    }
    let signers = args.signers.map(|file| signers(&repo, &context.directory.join(file))).transpose()?;
    let asked = Asked {
        range: args.range,
        min: args.min.and_then(|level| level.parse().ok()),
        signers: signers.as_deref(),
    };
    judge(&repo, project.as_ref(), &asked)
}

/// A question about a branch.
#[derive(Default)]
struct Asked<'a> {
    range: Option<String>,
    min: Option<Level>,
    signers: Option<&'a Path>,
}

/// The result for the integration branch of a project, for a command that ends with it; `None` if nothing was judged.
pub(super) fn judge_project(project: &Project) -> Result<Option<Reply>, CommandError> {
    let repo = project.repo()?;
    repo.receipts_tip().map(|_| judge(repo, Some(project), &Asked::default())).transpose()
}

fn judge(repo: &Repo, project: Option<&Project>, asked: &Asked<'_>) -> Result<Reply, CommandError> {
    if repo.receipts_tip().is_none() {
        return Err(no_receipts(repo));
    }
    let (head, shown) = range(repo, project, asked.range.as_deref())?;
    let line = line(repo, &head)?;
    let mut evidence = evidence(repo, &line, asked.min)?;
    if let Some(file) = asked.signers {
        let signatures = repo.signatures(&head, file)?;
        evidence.signatures =
            signatures.into_iter().map(|(commit, made)| (commit, signature(made))).collect();
    }
    let mut findings = judge_line(&line, &evidence);
    if asked.range.is_some() && before_receipts(&line, &evidence).is_empty() {
        mark_older(repo, project, &evidence, &mut findings);
    }
    // A part of the branch, or another one, is not what the blackboard is about.
    let contradictions = match project.filter(|_| asked.range.is_none()) {
        Some(project) => contradictions(project, &line, &evidence.receipts, now())?,
        None => Vec::new(),
    };
    if let Some(shown) = shown {
        findings.retain(|finding| shown.contains(&finding.commit));
    }
    findings.reverse();
    Ok(reply(&findings, &contradictions))
}

/// Another branch may have no receipt itself: its commits that are older than the first receipt of the integration branch were
/// made before Liza was set up.
fn mark_older(repo: &Repo, project: Option<&Project>, evidence: &Evidence, findings: &mut [Finding]) {
    // Without an integration branch, nothing says when that was.
    let Ok(own) = range(repo, project, None).and_then(|(head, _)| line(repo, &head)) else { return };
    let older = before_receipts(&own, evidence);
    let is_older =
        |finding: &&mut Finding| finding.class == Class::Foreign && older.contains(&finding.commit);
    findings.iter_mut().filter(is_older).for_each(|finding| finding.class = Class::BeforeReceipts);
}

/// The file of signers: readable, and not a part of the clone, whose authors would vouch for themselves.
fn signers(repo: &Repo, file: &Path) -> Result<PathBuf, CommandError> {
    let bad = |why: String| CommandError::refused("bad_signers", format!("{}: {why}", file.display()));
    let real = |path: &Path| path.canonicalize().map_err(|error| bad(error.to_string()));
    let (target, folder) = (real(file)?, real(file.parent().unwrap_or(file))?);
    for inside in [repo.root(), repo.common_dir()] {
        let inside = real(inside)?;
        if target.starts_with(&inside) || folder.starts_with(&inside) {
            return Err(bad("it is a part of the clone that it is to vouch for".to_owned())
                .hint("keep the keys of signers outside: liza verify --signers ~/.ssh/allowed_signers"));
        }
    }
    if !target.is_file() {
        return Err(bad("not a file".to_owned()));
    }
    if find_program("ssh-keygen").is_none() {
        let message = "checking signatures needs ssh-keygen, which is not installed";
        return Err(CommandError::refused("ssh_keygen_missing", message).exit(Exit::Missing));
    }
    Ok(target)
}

fn signature(made: CommitSignature) -> Signature {
    match made.result {
        'G' => Signature::Good { by: clean(&made.signer), key: made.key },
        'B' => Signature::Bad,
        _ => Signature::UnknownKey(made.key),
    }
}

fn fetch(repo: &Repo) -> Result<(), CommandError> {
    let remotes = repo.remotes()?;
    let origin = remotes.iter().find(|(name, _)| name == "origin").or(remotes.first());
    let Some((name, _)) = origin else {
        return Err(CommandError::refused("no_remote", "this clone has no remote to fetch receipts from"));
    };
    let fetched = repo.work_remote(name, FETCH_LIMIT).fetch(RECEIPTS, REMOTE_RECEIPTS)?;
    repo.join_receipts(&fetched)?;
    Ok(())
}

fn no_receipts(repo: &Repo) -> CommandError {
    let remote = repo.remotes().ok().and_then(|remotes| Some(remotes.first()?.0.clone()));
    let error = CommandError::refused("no_receipts", "this clone has no receipts, so nothing is verified");
    match remote {
        Some(name) => error.hint(format!("git fetch {name} {RECEIPTS}:{RECEIPTS}, or liza verify --fetch")),
        None => error.hint("receipts begin with the first merge of a task: liza wt-merge"),
    }
}

/// The last commit of the line, and the commits to show if they are not all.
fn range(
    repo: &Repo,
    project: Option<&Project>,
    range: Option<&str>,
) -> Result<(Sha, Option<BTreeSet<Sha>>), CommandError> {
    let unknown =
        |name: &str| CommandError::refused("bad_range", format!("{name} names no commit in this clone"));
    let find = |name: &str| repo.find_commit(name)?.ok_or_else(|| unknown(name));
    if let Some((old, new)) = range.and_then(|range| range.split_once("..")) {
        let (old, new) = (find(old)?, find(if new.is_empty() { "HEAD" } else { new })?);
        let shown = repo.line_between(&old, &new)?;
        return Ok((new, Some(shown)));
    }
    let own = project.and_then(|project| integration_branch(&project.state().ok()?.board).ok());
    let own = own.map(|branch| branch.full());
    let names = match range {
        Some(name) => vec![name.to_owned()],
        None => own.into_iter().chain(BRANCHES.map(str::to_owned)).collect(),
    };
    for name in &names {
        if let Some(head) = repo.find_commit(name)? {
            return Ok((head, None));
        }
    }
    Err(unknown(range.unwrap_or("HEAD")))
}

fn line(repo: &Repo, head: &Sha) -> Result<Vec<LineCommit>, CommandError> {
    let ends = repo.shallow_ends();
    let commit = |step: LineStep| {
        let text = |key: &str| step.trailer(key).map(str::to_owned);
        let claim = match (text("Liza-Task"), text("Liza-Sync"), text("Liza-Finish")) {
            (Some(task), _, _) => Some(Claim::Task(task)),
            (None, Some(_), _) => Some(Claim::Sync),
            (None, None, Some(_)) => Some(Claim::Finish),
            (None, None, None) => None,
        };
        LineCommit {
            merged: text("Liza-Commit").and_then(|commit| commit.parse().ok()),
            approved_by: text("Approved-by"),
            statement: text("Liza-Statement"),
            is_cut: ends.contains(&step.commit),
            claim,
            commit: step.commit,
            parents: step.parents,
            tree: step.tree,
            subject: step.subject,
        }
    };
    Ok(repo.line(head)?.into_iter().map(commit).collect())
}

fn evidence(repo: &Repo, line: &[LineCommit], min: Option<Level>) -> Result<Evidence, CommandError> {
    Ok(Evidence {
        receipts: repo.list_receipts()?,
        projects: repo.project_names()?,
        recomputed: recomputed(repo, line)?,
        git: repo.git().version()?.to_string(),
        is_shallow: !repo.shallow_ends().is_empty(),
        min,
        signatures: BTreeMap::new(),
    })
}

/// Computes all merges by one process. One that differs is computed again, with the attributes of its own branch.
fn recomputed(repo: &Repo, line: &[LineCommit]) -> Result<BTreeMap<Sha, Recomputed>, CommandError> {
    let is_stated = |step: &&LineCommit| step.statement.is_some() && !step.is_cut && !step.parents.is_empty();
    let stated: Vec<&LineCommit> = line.iter().filter(is_stated).collect();
    let pair = |step: &&LineCommit| Some((step.parents.first()?.clone(), step.parents.last()?.clone()));
    let pairs: Vec<(Sha, Sha)> = stated.iter().filter_map(pair).collect();
    let merges = repo.merge_pairs(&pairs)?;
    let mut found = BTreeMap::new();
    for ((step, (into, commit)), tree) in stated.into_iter().zip(&pairs).zip(merges) {
        let same = tree.as_ref() == Some(&step.tree);
        let result = match tree {
            _ if !same && repo.is_merge_of(&step.commit, into, commit).unwrap_or(false) => {
                Recomputed::Files(step.tree.clone())
            }
            Some(tree) => Recomputed::Files(tree),
            None => Recomputed::Conflict,
        };
        found.insert(step.commit.clone(), result);
    }
    Ok(found)
}

fn reply(findings: &[Finding], contradictions: &[Contradiction]) -> Reply {
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    findings.iter().for_each(|finding| *classes.entry(finding.class).or_default() += 1);
    let is_ok = contradictions.is_empty() && classes.keys().all(|class| class.is_ok());
    let listed = findings.iter().filter(|finding| finding.class != Class::BeforeReceipts);
    let mut lines: Vec<String> = listed.map(shown).collect();
    lines.extend(contradictions.iter().map(described));
    if !contradictions.is_empty() {
        *classes.entry(Class::Contradicted).or_default() += contradictions.len();
    }
    let counts: Vec<String> = classes.iter().map(|(class, number)| format!("{number} {class}")).collect();
    lines.push(format!("{}: {}", count(findings.len(), "commit"), counts.join(", ")));
    // What is not signed is no more than consistent, and what is signed no more than that.
    let has = |class: Class| classes.contains_key(&class);
    let is_signed = has(Class::Signed) && !has(Class::Consistent);
    let notes = [(!is_signed, LIMITS), (has(Class::Signed), SIGNED_LIMITS)];
    let notes: Vec<&str> = notes.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note).collect();
    lines.extend(notes.iter().map(|note| (*note).to_owned()));
    let counts: serde_json::Map<String, serde_json::Value> =
        classes.iter().map(|(class, number)| (class.to_string(), json!(number))).collect();
    let result = json!({
        "consistent": is_ok, "signed": is_signed && is_ok, "commits": findings, "classes": counts,
        "contradictions": contradictions, "note": notes.join("; "),
    });
    let exit = if is_ok { Exit::Success } else { Exit::Inconsistent };
    Reply::new(lines.join("\n"), result).exit(exit)
}

fn shown(finding: &Finding) -> String {
    let by = finding.signed_by.as_ref().map(|signer| format!("by {signer}"));
    let why = Some(finding.why.clone()).filter(|why| !why.is_empty());
    let words: Vec<String> = by.into_iter().chain(why).collect();
    let why = if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) };
    format!("{:12}  {}  {}{why}", finding.class.to_string(), finding.commit.short(), clean(&finding.subject))
}

fn described(found: &Contradiction) -> String {
    let task = found.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
    format!(
        "{:12}  {} ({})  {task}{}",
        Class::Contradicted.to_string(),
        found.kind,
        found.place,
        clean(&found.why)
    )
}
