//! Observations besides the tasks: stop files, progress, violations, stale saves. `liza-core` decides on alarms.

pub mod activity;
pub mod audit;
pub mod database_health;
pub mod drills;
pub mod failing_jobs;
pub mod last_run;
pub mod live_view;
pub mod missing_logins;
pub mod push_access;
pub mod reconcile;
pub mod running_merge;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use liza_agents::contracts::is_vision_template;
use liza_agents::providers::LoginPlaces;
use liza_core::evidence::reviewer_rates;
use liza_core::model::{
    AgentId, AgentRecord, Generation, GoalStatus, LogAction, Sha, State, StopFile, StopFileTimes, TEAM_FILE,
    TaskId, TaskStatus, Timestamp,
};
use liza_core::rules::approvals::has_approval;
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::invariants::{self, Subject, Violation};
use liza_git::{BranchStep, Repo};
use liza_host::worktrees::worktrees_folder;
use liza_host::{disk, durable};
use liza_sandbox::confine::{Confined, Level, RecordedSession, recorded_session};
use liza_sandbox::sys::untrusted::UntrustedFolder;
use liza_status::alarms::{
    Confinement, ForeignCommits, KeptVersion, MainBranch, MissingLogin, Observations, TeamFileChange,
    VisionGap,
};
use liza_store::LogRecord;

use crate::engine::{FileLock, LivenessLock, integration_branch, is_stated_merge, remote_problem};
use crate::lifecycle::{failed_review_setups, is_at_recorded_head, lost_merges, merged_commits};
use crate::observe::activity::session_activity;
use crate::observe::failing_jobs::failing_jobs;
use crate::observe::last_run::last_run;
use crate::observe::missing_logins::look;
use crate::observe::running_merge::running_merge;
use crate::project::Project;
use crate::project::machine::machine_name;
use crate::project::team_file;
use crate::session::checkout_setup::last_failure;
use crate::session::refused_places::refused_places;
use crate::session::shared::{shared, shared_in_words};

/// The part of the log's end that is searched first for the last progress.
const TAIL: u64 = 64 * 1024;

/// The longest wait for a merge in progress when the branch is inspected.
const MERGE_WAIT: Duration = Duration::from_millis(300);

/// The largest specification that is compared with the template, which is much smaller.
const LARGEST_SPEC: u64 = 64 * 1024;

/// Folders in `.liza` that sessions write.
const OF_SESSIONS: [&str; 3] = ["caches", "clients", "tmp"];

pub fn observe(project: &Project, state: &State, now: Timestamp) -> Observations {
    Observations {
        stop_files: stop_file_times(project),
        last_progress: last_progress(project),
        violations: violations(project, state, now),
        unreadable: None,
        kept_versions: kept_versions(project.folder()),
        foreign_commits: foreign_commits(project, state),
        changed_programs: changed_programs(project),
        sessions: session_activity(project, state),
        pending_edit: project.store().pending_edit(now),
        confinement: confinement(project, state),
        setup_failure: last_failure(project),
        review_setups: failed_review_setups(project),
        failing_jobs: failing_jobs(project.folder()),
        refused_places: refused_places(project.folder()),
        full_disk: full_disk(project),
        remote_problem: remote_problem(project.folder(), &state.board),
        team_file_change: team_file_change(project, state),
        dead: dead_agents(project, state, now),
        main_branch: main_branch(project, state),
        vision_gap: vision_gap(project, state),
        missing_logins: missing_logins(project, state),
        merge: running_merge(project),
        start: last_run(project),
        // Without them the screens say less; `liza retro` names the reason.
        drilled: reviewer_rates(&drills::read_records(project.folder()).unwrap_or_default()),
    }
}

fn full_disk(project: &Project) -> Option<PathBuf> {
    [project.folder().to_owned(), worktrees_folder(project.root())]
        .into_iter()
        .find(|folder| disk::is_full(folder))
}

/// The agent programs of the team for which no login is found here either.
fn missing_logins(project: &Project, state: &State) -> Vec<MissingLogin> {
    let Some(config) = state.board.config.ready() else { return Vec::new() };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let variable = |name: &str| std::env::var_os(name);
    look(project.folder(), config, &LoginPlaces { home: home.as_deref(), variable: &variable })
}

/// The state of the shared settings on the integration branch, if they differ from the accepted ones. Asks
/// git only in a project that has such settings.
fn team_file_change(project: &Project, state: &State) -> Option<TeamFileChange> {
    let accepted = state.board.config.ready().and_then(|config| config.team_file.as_ref())?;
    let (branch, repo) = (integration_branch(&state.board).ok()?, project.repo().ok()?);
    let changed = repo.blob_at(&branch, TEAM_FILE).ok()?.filter(|blob| blob.as_str() != accepted.hash)?;
    Some(match team_file::read(project) {
        Ok(content) if content.as_ref().is_none_or(|content| content.hash != changed.as_str()) => {
            TeamFileChange::OnBranch(branch.to_string())
        }
        // A person who accepts a file with a mistake sees the mistake.
        Ok(_) | Err(_) => TeamFileChange::CheckedOut,
    })
}

/// The settings of the project's git configuration that the human has not accepted; none if git cannot be asked.
fn changed_programs(project: &Project) -> Vec<String> {
    project.repo().ok().and_then(|repo| repo.changed_programs().ok()).unwrap_or_default().keys()
}

/// The distance of a reached goal from the main branch. Asks git only then.
fn main_branch(project: &Project, state: &State) -> Option<MainBranch> {
    let goal = state.board.goal.ready().filter(|goal| goal.status == GoalStatus::Completed)?;
    let config = state.board.config.ready()?;
    let name = config.main_branch.clone()?;
    let repo = project.repo().ok()?;
    let main = repo.tip(&name.parse().ok()?).ok()??;
    let head = match goal.integration_head.as_ref().filter(|_| config.remote.is_some()) {
        // The branch here may be behind; without the commit the distance is unknown.
        Some(recorded) => recorded.clone(),
        None => repo.tip(&integration_branch(&state.board).ok()?).ok()??,
    };
    if main == head {
        return Some(MainBranch { name, ahead: 0, behind: 0 });
    }
    let (ahead, behind) = (repo.count_commits(&main, &head).ok()?, repo.count_commits(&head, &main).ok()?);
    Some(MainBranch { name, ahead, behind })
}

/// The reason why the vision document of an open goal tells the planner nothing.
pub fn vision_gap(project: &Project, state: &State) -> Option<VisionGap> {
    let goal = state.board.goal.ready().filter(|goal| goal.status == GoalStatus::InProgress)?;
    let spec = goal.spec_ref.as_deref()?;
    match read_spec(project.root(), spec.split('#').next().unwrap_or(spec)) {
        Ok(text) => is_vision_template(&text).then_some(VisionGap::Template),
        Err(error) => (error.kind() == ErrorKind::NotFound).then_some(VisionGap::Missing),
    }
}

/// The text of a specification; an error unless it is a regular file of the project of at most
/// [`LARGEST_SPEC`] bytes. A merge can put a link or a pipe there, and each look at the project reads it.
fn read_spec(root: &Path, file: &str) -> io::Result<String> {
    let file = Path::new(file);
    let inside = file.strip_prefix(root).or_else(|_| file.strip_prefix(".")).unwrap_or(file);
    let bytes = UntrustedFolder::open_yours(root)?.read(inside, LARGEST_SPEC)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Agents whose lease is live but whose supervisor is proven dead.
fn dead_agents(project: &Project, state: &State, now: Timestamp) -> BTreeSet<AgentId> {
    let agents = state.board.agents.ready().into_iter().flatten();
    // Read once: each reading wakes the watch on the folder.
    let here = LazyCell::new(|| machine_name(project.folder()));
    // Locks say nothing about a supervisor on another machine: its lease does.
    let runs_here = |entry: &AgentRecord| entry.machine.as_ref().is_none_or(|machine| *machine == *here);
    let leased = agents.filter(|(_, entry)| entry.holds(now) && runs_here(entry));
    let known = leased.filter_map(|(agent, entry)| Some((*agent, entry.generation?)));
    let dead = |(agent, generation): &(AgentId, Generation)| {
        LivenessLock::is_proven_dead(project.folder(), *agent, *generation)
    };
    known.filter(dead).map(|(agent, _)| agent).collect()
}

/// The level of each agent's last session.
fn confinement(project: &Project, state: &State) -> BTreeMap<AgentId, Confinement> {
    let agents = state.board.agents.ready().into_iter().flatten().map(|(agent, _)| *agent);
    let recorded = |agent: AgentId| {
        let RecordedSession { level, network, .. } =
            recorded_session(project.folder(), Confined::Session(agent))?;
        let weakness = match level {
            Level::Isolated => 0,
            Level::Restricted(_) => 1,
            Level::Unenforced(_) => 2,
            Level::Off => 3,
        };
        let config = state.board.config.ready().filter(|_| level != Level::Off);
        let shared =
            config.map(|config| shared(config, network, &[]).into_iter().map(|part| part.what).collect());
        let shared = shared.map(|shared: Vec<String>| shared_in_words(&shared, &level));
        let (older, level) = (level.older_words(), level.to_string());
        Some((agent, Confinement { level, older, weakness, network, shared }))
    };
    agents.filter_map(recorded).collect()
}

/// Commits on the integration branch that neither a merge nor the human made; none if git cannot be asked.
fn foreign_commits(project: &Project, state: &State) -> Option<ForeignCommits> {
    if is_at_recorded_head(project, &state.board) {
        return None;
    }
    // A merge moves the branch first and records it then.
    let Ok(_lock) = FileLock::at(&FileLock::of_merges(project.folder()), MERGE_WAIT) else {
        // The earlier result is still true if nothing has moved.
        let recorded = state.board.goal.ready()?.integration_head.as_ref();
        return project.known_foreign_commits().filter(|known| Some(&known.expected) == recorded);
    };
    let found = find_foreign_commits(project);
    project.keep_foreign_commits(found.clone());
    found
}

fn find_foreign_commits(project: &Project) -> Option<ForeignCommits> {
    let state = project.state().ok()?;
    let branch = integration_branch(&state.board).ok()?;
    let expected = state.board.goal.ready()?.integration_head.clone()?;
    let repo = project.repo().ok()?;
    let head = repo.tip(&branch).ok()??;
    if state.board.config.ready()?.remote.is_some() && is_exchanged(repo, &state, &expected, &head) {
        return None;
    }
    if head == expected || is_unrecorded_merge(repo, &state, &expected, &head) {
        return None;
    }
    let commits = repo.list_commits(&expected, &head).unwrap_or_default();
    let merge_of = refused_merge(repo, &state, &expected, &head);
    let merges = FoundMerges::new(&state.board, &project.branch_steps(&expected, &head));
    Some(ForeignCommits { head, expected, commits, merge_of, merges })
}

/// True if the branch has exactly one merge more, of an approved task and with its statement: the next merge or
/// `recover` records it.
fn is_unrecorded_merge(repo: &Repo, state: &State, expected: &Sha, head: &Sha) -> bool {
    let steps = repo.steps_between(expected, head).unwrap_or_default();
    let [step @ BranchStep { merged: Some((task, merged)), before: Some(before), .. }] = steps.as_slice()
    else {
        return false;
    };
    let status = state.board.task(task).map(|task| task.status);
    let is_approved = matches!(status, Ok(TaskStatus::Approved { commit, .. }) if commit == *merged);
    is_approved && before == expected && is_stated_merge(repo, step).unwrap_or(false)
}

/// The task whose submitted and approved commit is merged on the branch, if nothing else is. Anyone who can
/// move the branch can write a merge message; only the approval shows that the reviews were not bypassed.
fn refused_merge(repo: &Repo, state: &State, expected: &Sha, head: &Sha) -> Option<TaskId> {
    let steps = repo.steps_between(expected, head).ok()?;
    let [BranchStep { merged: Some((task, commit)), .. }] = steps.as_slice() else { return None };
    let record = state.board.body(task).ok()?.record();
    let is_submitted = record.review_commit.as_ref() == Some(commit);
    (is_submitted && has_approval(record) && repo.is_merge_of(head, expected, commit).ok()?)
        .then(|| task.clone())
}

/// True if the branch here only lags behind, or has merges that other machines have not recorded yet.
fn is_exchanged(repo: &Repo, state: &State, expected: &Sha, head: &Sha) -> bool {
    if is_behind(repo, expected, head) {
        return true;
    }
    let is_approved = |task: &TaskId, merged: &Sha| {
        let status = state.board.task(task).map(|task| task.status);
        matches!(status, Ok(TaskStatus::Approved { commit, .. }) if commit == *merged)
    };
    let is_ours = |step: &BranchStep| match (&step.merged, &step.before) {
        (Some((task, commit)), Some(before)) => {
            is_approved(task, commit) && repo.is_merge_of(&step.commit, before, commit).unwrap_or(false)
        }
        (None, _) | (_, None) => false,
    };
    let contains = repo.is_ancestor(expected, head).unwrap_or(false);
    contains && repo.steps_between(expected, head).is_ok_and(|steps| steps.iter().all(is_ours))
}

/// True if the branch here has yet to follow the remote; `None` without a remote, or if git cannot be asked.
fn has_to_follow(project: &Project, state: &State) -> Option<bool> {
    let _remote = state.board.config.ready()?.remote.as_ref()?;
    let recorded = state.board.goal.ready()?.integration_head.clone()?;
    let repo = project.repo().ok()?;
    let head = repo.tip(&integration_branch(&state.board).ok()?).ok()??;
    Some(is_behind(repo, &recorded, &head))
}

/// True if the recorded head has not been fetched yet, or the branch has not followed it yet.
fn is_behind(repo: &Repo, recorded: &Sha, head: &Sha) -> bool {
    !repo.has_commit(recorded).unwrap_or(true) || repo.is_ancestor(head, recorded).unwrap_or(false)
}

/// The violations on the blackboard, on its own and compared with git.
pub fn violations(project: &Project, state: &State, now: Timestamp) -> Vec<Violation> {
    let mut violations = invariants::validate(state, &project.store().disk(), now);
    violations.extend(links(project.folder()).into_iter().map(|name| Violation {
        message: format!("it is a symbolic link, which Liza does not follow: rm .liza/{name}"),
        subject: Subject::Section(format!(".liza/{name}")),
        has_alarm: false,
    }));
    if is_at_recorded_head(project, &state.board) {
        return violations;
    }
    violations.extend(missing_branch(project, state));
    if merged_commits(&state.board).is_empty() {
        return violations;
    }
    if has_to_follow(project, state) == Some(true) {
        return violations;
    }
    let lost = project.repo().ok().and_then(|repo| lost_merges(repo, &state.board).ok()).unwrap_or_default();
    violations.extend(lost.into_iter().map(|lost| Violation {
        message: format!("{lost}; to bring it back: {}", lost.command()),
        subject: Subject::Task(lost.task),
        has_alarm: false,
    }));
    violations
}

/// The integration branch, if a person has deleted it.
fn missing_branch(project: &Project, state: &State) -> Option<Violation> {
    let branch = integration_branch(&state.board).ok()?;
    let head = state.board.goal.ready()?.integration_head.as_ref()?;
    let is_missing = project.repo().ok()?.tip(&branch).ok()?.is_none();
    is_missing.then(|| Violation {
        message: format!("it is gone, so nothing can be merged: git branch {branch} {head}"),
        subject: Subject::Section(format!("branch {branch}")),
        has_alarm: false,
    })
}

/// The observations with an unreadable blackboard, and the reason for it.
pub(crate) fn observe_unreadable(project: &Project, why: String) -> Observations {
    Observations {
        stop_files: stop_file_times(project),
        unreadable: Some(why),
        kept_versions: kept_versions(project.folder()),
        ..Observations::default()
    }
}

/// The start time of each stop file.
pub(crate) fn stop_file_times(project: &Project) -> StopFileTimes {
    // In a database they are rows; a file that a person has just created counts too.
    let rows = project.store().stop_rows().ok().flatten().unwrap_or_default();
    let since = |file: StopFile| {
        let row = match file {
            StopFile::Pause => rows.pause,
            StopFile::Checkpoint => rows.checkpoint,
            StopFile::Abort => rows.abort,
        };
        row.or_else(|| present_since(&project.folder().join(file.name())))
    };
    StopFileTimes {
        pause: since(StopFile::Pause),
        checkpoint: since(StopFile::Checkpoint),
        abort: since(StopFile::Abort),
    }
}

/// The start time of a stop file: its first line, or the file's own time after a bare `touch`.
fn present_since(path: &Path) -> Option<Timestamp> {
    let meta = fs::symlink_metadata(path).ok()?;
    let text = durable::read_text(path).unwrap_or_default();
    let written = text.lines().next().and_then(|line| line.trim().parse().ok());
    let modified = || {
        let age = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Timestamp::from_unix(i64::try_from(age.as_secs()).ok()?))
    };
    written.or_else(modified).or(Some(Timestamp::from_unix(0)))
}

/// The time of the last change of a task, the sprint or a note. Agents that come and go are not progress.
fn last_progress(project: &Project) -> Option<Timestamp> {
    let counts = |entry: &&LogRecord| LogAction::is_progress(&entry.action);
    let length = fs::metadata(project.folder().join("log.yaml")).map_or(0, |meta| meta.len());
    let mut tail = TAIL;
    loop {
        let entries = project.store().log_tail(tail).ok()?;
        let found = entries.iter().rev().find(counts).map(|entry| entry.timestamp);
        // Agents that come and go all night can fill more than one tail.
        if found.is_some() || tail >= length {
            return found;
        }
        tail = tail.saturating_mul(8);
    }
}

/// The links among Liza's own files and their folders, from `.liza` on.
fn links(folder: &Path) -> Vec<String> {
    let entries = |inside: &str| fs::read_dir(folder.join(inside)).into_iter().flatten().flatten();
    let mut found = Vec::new();
    let mut add = |name: String, kind: io::Result<fs::FileType>| {
        found.extend(Some(name).filter(|_| kind.is_ok_and(|kind| kind.is_symlink())));
    };
    for entry in entries("") {
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) && !OF_SESSIONS.contains(&name.as_str()) {
            entries(&name).for_each(|inner| {
                add(format!("{name}/{}", inner.file_name().to_string_lossy()), inner.file_type());
            });
        }
        add(name, kind);
    }
    found.sort();
    found
}

/// Versions that are kept beside the current one: saved over a newer one, or rewritten without their comments.
fn kept_versions(folder: &Path) -> Vec<KeptVersion> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut kept: Vec<KeptVersion> = names
        .filter_map(|name| {
            let is_before_rewrite = name.starts_with("state.yaml.before-rewrite-");
            let file = format!(".liza/{name}");
            (is_before_rewrite || name.starts_with("state.yaml.stale-"))
                .then_some(KeptVersion { file, is_before_rewrite })
        })
        .collect();
    kept.sort();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Covers: UI-01
    #[test]
    fn only_a_small_regular_file_of_the_project_is_read_as_a_specification() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        let specs = root.join("specs");
        fs::create_dir_all(&specs).unwrap();
        fs::write(home.path().join("outside.md"), "outside").unwrap();
        fs::write(specs.join("vision.md"), "# Vision").unwrap();
        fs::write(specs.join("large.md"), "x".repeat(64 * 1024 + 1)).unwrap();
        symlink("/dev/zero", specs.join("endless.md")).unwrap();
        symlink("../../outside.md", specs.join("link.md")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, specs.join("pipe.md"), rustix::fs::Mode::RWXU).unwrap();
        let absolute = specs.join("vision.md").display().to_string();
        for file in ["specs/vision.md", "./specs/vision.md", &absolute] {
            assert_eq!(read_spec(&root, file).unwrap(), "# Vision", "{file}");
        }
        let others = ["large.md", "link.md", "endless.md", "pipe.md", "../../outside.md"];
        for file in others.map(|name| format!("specs/{name}")) {
            let error = read_spec(&root, &file).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::NotFound, "{file}: {error}");
        }
        assert_eq!(read_spec(&root, "specs/none.md").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read_spec(&root, "none/vision.md").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
