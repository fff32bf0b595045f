//! Prepares a new checkout: copies ignored files from the human's checkout (`config.copy`), then runs the
//! command in `config.setup`, confined as an integration test is. Never copies from a checkout of an agent,
//! and never writes through a link. A failure counts against no task.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use liza_agents::providers::SettingFiles;
use liza_core::model::{Config, Role, Sha, TaskId};
use liza_git::{GitError, MovedPaths, copy_tree, make_parents};
use liza_host::{durable, private};
use liza_sandbox::confine::{
    ProgramRun, RoomCopy, RunEnd, RunStage, merge_caches, review_caches, validation_caches,
};
use liza_sandbox::sys::confinement::{Grants, restricted};
use liza_sandbox::sys::untrusted::{UntrustedFolder, take_rights};

use crate::project::{Project, now};
use crate::session::plan::{SessionNeeds, minimum, session_plan};
use crate::session::settings_guard::SettingsGuard;

/// The folder in `.liza` with the output of set-ups and the last failure.
const FOLDER: &str = "setup";
const FAILURE: &str = "failure";
const LOGS_MAX: usize = 200;
const RESERVED: [&str; 3] = [".git", ".liza", ".worktrees"];

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("config.setup failed in {checkout}: {command:?} {end}. Output: {output}")]
    Failed {
        /// From the project's root.
        checkout: String,
        command: String,
        end: String,
        /// From the project's root.
        output: String,
    },
    #[error("config.copy: {path}: {problem}")]
    Copy { path: String, problem: String },
    /// The command changed files that agent programs obey.
    #[error("config.setup changed {path}, from which agent programs take settings")]
    ChangedSettings {
        /// From the project's root.
        path: String,
    },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl SetupError {
    /// The file with the output of the command, from the project's root.
    pub(crate) fn output(&self) -> Option<&str> {
        match self {
            Self::Failed { output, .. } => Some(output),
            Self::Copy { .. } | Self::ChangedSettings { .. } | Self::Io { .. } | Self::Git(_) => None,
        }
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// The purpose of a checkout; its caches are those of the sessions that will use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutUse<'t> {
    Coding,
    Planning,
    /// The checks of a review of this commit are made in copies of it, so its caches are theirs.
    Review(&'t TaskId, &'t Sha),
    /// A merge is tested, or a commit for no task.
    MergeTest(Option<&'t TaskId>, &'t Sha),
    /// The commands that validate a task's work run in it.
    Validation(&'t TaskId, &'t Sha),
}

impl CheckoutUse<'_> {
    pub(crate) fn caches(self, liza: &Path) -> PathBuf {
        let of_role = |name: &str| liza.join("caches").join(name);
        match self {
            CheckoutUse::Coding => of_role(&Role::Coder.to_string()),
            CheckoutUse::Planning => of_role(&Role::Planner.to_string()),
            CheckoutUse::Review(task, commit) => review_caches(liza, task, commit),
            CheckoutUse::MergeTest(task, commit) => merge_caches(liza, task, commit),
            CheckoutUse::Validation(task, commit) => validation_caches(liza, task, commit),
        }
    }
}

/// Zero if there is no set-up.
pub fn setup_limit(config: &Config) -> Duration {
    Duration::from_secs(config.setup.as_ref().map_or(0, |_| config.setup_limit.0))
}

pub fn set_up(
    project: &Project,
    config: &Config,
    checkout: &Path,
    used_by: CheckoutUse<'_>,
) -> Result<(), SetupError> {
    set_up_in(project, config, (checkout, None), used_by)
}

/// Sets up a checkout as its rooms show it.
pub(crate) fn set_up_in(
    project: &Project,
    config: &Config,
    checkout: (&Path, Option<&RoomCopy>),
    used_by: CheckoutUse<'_>,
) -> Result<(), SetupError> {
    let done = prepare(project, config, checkout, used_by);
    record(project, &done);
    done
}

/// Records the failure of a set-up for `status`, or that one has succeeded.
pub(crate) fn record(project: &Project, done: &Result<(), SetupError>) {
    let record = project.folder().join(FOLDER).join(FAILURE);
    match done {
        Ok(()) => drop(durable::remove_if_present(&record)),
        Err(error) => drop(write_record(&record, &error.to_string())),
    }
}

/// Sets up a checkout with settings that may be those of nobody yet: its failure is no alarm.
pub(crate) fn prepare(
    project: &Project,
    config: &Config,
    checkout: (&Path, Option<&RoomCopy>),
    used_by: CheckoutUse<'_>,
) -> Result<(), SetupError> {
    let (folder, room) = checkout;
    copy_shown(project, config, (folder, room.map_or(folder, RoomCopy::shown)))?;
    config.setup.as_ref().map_or(Ok(()), |_| run(project, config, checkout, used_by))
}

/// The settings by which a checkout is set up, as one text; `None` if nothing is done.
pub(crate) fn set_up_settings(config: &Config) -> Option<String> {
    let is_any = config.setup.is_some() || !config.copy.is_empty();
    is_any.then(|| serde_json::json!({"setup": config.setup, "copy": config.copy}).to_string())
}

/// Sets up a task's worktree unless that was done before, with the same settings.
pub(crate) fn set_up_worktree(
    project: &Project,
    config: &Config,
    worktree: &Path,
    is_new: bool,
) -> Result<(), SetupError> {
    let name = worktree.file_name().unwrap_or_default();
    let mark = project.folder().join(FOLDER).join("done").join(name);
    let settings = set_up_settings(config).unwrap_or_default();
    let has_copies = || config.copy.iter().all(|entry| fs::symlink_metadata(worktree.join(entry)).is_ok());
    if !is_new && durable::read_text(&mark).is_ok_and(|done| done == settings) && has_copies() {
        return Ok(());
    }
    // A worktree that has no such record was created, and not set up.
    let _ = durable::remove_if_present(&mark);
    set_up(project, config, worktree, CheckoutUse::Coding)?;
    let write = || {
        mark.parent().map_or(Ok(()), private::create_folder)?;
        durable::replace_private_file(&mark, settings.as_bytes())
    };
    write().map_err(SetupError::io("write", &mark))
}

/// The last failure, if no set-up has succeeded since.
pub(crate) fn last_failure(project: &Project) -> Option<String> {
    durable::read_text(&project.folder().join(FOLDER).join(FAILURE)).ok()
}

fn write_record(record: &Path, message: &str) -> io::Result<()> {
    record.parent().map_or(Ok(()), private::create_folder)?;
    durable::replace_private_file(record, message.as_bytes())
}

fn run(
    project: &Project,
    config: &Config,
    (checkout, room): (&Path, Option<&RoomCopy>),
    used_by: CheckoutUse<'_>,
) -> Result<(), SetupError> {
    let (repo, command) = (project.repo()?, config.setup.clone().unwrap_or_default());
    let output = new_log(&project.folder().join(FOLDER), checkout)?;
    let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
    let directory = room.map_or(checkout, RoomCopy::shown);
    let caches = room.map_or_else(|| used_by.caches(project.folder()), |room| room.shown_caches().to_owned());
    let scratch = repo.scratch_folder()?;
    let own = [caches.clone()];
    let needs = SessionNeeds {
        liza: &liza,
        checkout: Some(directory),
        scratch: scratch.path(),
        own: &own,
        files: &[],
        program: None,
        channel: None,
        network: None,
    };
    let mut plan = session_plan(project, config, &needs)?;
    if let Some((plan, room)) = plan.as_mut().zip(room) {
        plan.placed.extend(room.placed().map_err(SetupError::io("show", checkout))?);
    }
    let stage = plan.map(|plan| RunStage {
        liza: &liza,
        caches: &caches,
        scratch: scratch.path(),
        minimum: minimum(config),
        plan,
    });
    let run = ProgramRun {
        program: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), command.clone()],
        directory,
        environment: repo.git().environment(),
        output: &output,
        limit: setup_limit(config),
        stage,
        cancelled: None,
    };
    let ended = match used_by {
        CheckoutUse::Coding | CheckoutUse::Planning => run_guarded(project, config, used_by, checkout, run),
        // No session runs there.
        CheckoutUse::Review(..) | CheckoutUse::MergeTest(..) | CheckoutUse::Validation(..) => {
            run.run().map_err(SetupError::io("run config.setup in", checkout))
        }
    };
    let end = match ended? {
        RunEnd::Exited(status) if status.success() => return Ok(()),
        RunEnd::Exited(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited {code}"),
            (None, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
        },
        RunEnd::TimedOut => format!("took longer than config.setup_limit ({} s)", config.setup_limit.0),
        RunEnd::NotStarted(error) => format!("could not be started: {error}"),
    };
    let (checkout, output) = (shown(project, checkout), shown(project, &output));
    Err(SetupError::Failed { checkout, command, end, output })
}

/// Runs code of the checkout, which must not control the agent program of the session.
fn run_guarded(
    project: &Project,
    config: &Config,
    used_by: CheckoutUse<'_>,
    checkout: &Path,
    run: ProgramRun<'_>,
) -> Result<RunEnd, SetupError> {
    let files = SettingFiles::of(config);
    let settings =
        SettingsGuard::of(checkout, |path| files.contains(path)).map_err(SetupError::io("read", checkout))?;
    // Many set-ups write one. A coder's session runs the same code in its tests, so that adds nothing.
    let may_make = |path: &Path| used_by == CheckoutUse::Coding && path == Path::new(".env");
    let ended = run.run().map_err(SetupError::io("run config.setup in", checkout));
    // Files that the code has left in the checkout can change nothing outside.
    let grants = Grants { read: vec!["/".into()], write: vec![checkout.to_owned()], ..Grants::default() };
    let restore = || -> io::Result<Vec<PathBuf>> {
        // Git reports nothing in a folder that it cannot list, but programs find a file there by its name.
        take_rights(&UntrustedFolder::open(checkout)?);
        settings.restore(may_make)
    };
    let changed = restricted(&grants, restore).map_err(SetupError::io("restore", checkout))?;
    // A set-up may change the copies of `config.copy`, but the session gets them as they were.
    let is_copied = |path: &Path| config.copy.iter().any(|entry| path.starts_with(entry));
    match changed.iter().find(|path| !is_copied(path)) {
        Some(path) => Err(SetupError::ChangedSettings { path: shown(project, &checkout.join(path)) }),
        None => ended,
    }
}

fn shown(project: &Project, path: &Path) -> String {
    path.strip_prefix(project.root()).unwrap_or(path).display().to_string()
}

/// A new file for the output, named after the checkout and the time; old ones are deleted.
fn new_log(folder: &Path, checkout: &Path) -> Result<PathBuf, SetupError> {
    let name = checkout.file_name().unwrap_or_default().to_string_lossy();
    let stamp: String = now().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let mut logs: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    let old = logs.len().saturating_sub(LOGS_MAX);
    logs.into_iter().take(old).for_each(|path| drop(durable::remove_if_present(&path)));
    let path = |number: u32| folder.join(format!("{stamp}-{number}-{}.log", name.trim_start_matches('.')));
    private::create_folder(folder).map_err(SetupError::io("create", folder))?;
    Ok((1..1000).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(0)))
}

/// A copied folder of a checkout in which a file still leads to the person's code; with that file, from the checkout.
pub fn copy_leading_back(project: &Project, config: &Config, checkout: &Path) -> Option<(PathBuf, PathBuf)> {
    let moved = MovedPaths::new(project.root(), checkout);
    config.copy.iter().find_map(|entry| {
        let copy = checkout.join(entry);
        let (file, _) = moved.leading_back(&copy)?;
        Some((file.strip_prefix(checkout).unwrap_or(&file).to_owned(), copy))
    })
}

/// Copies the files that the settings name from the human's checkout. Existing files in the new checkout stay.
pub(crate) fn copy_files(project: &Project, config: &Config, checkout: &Path) -> Result<(), SetupError> {
    copy_shown(project, config, (checkout, checkout))
}

/// The same where programs know the checkout by another path.
fn copy_shown(
    project: &Project,
    config: &Config,
    (checkout, shown): (&Path, &Path),
) -> Result<(), SetupError> {
    for entry in &config.copy {
        let wrong = |problem: &str| SetupError::Copy { path: entry.clone(), problem: problem.to_owned() };
        let relative = Path::new(entry);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        let first = relative.components().next().map(Component::as_os_str);
        if !is_plain || first.is_none_or(|first| RESERVED.iter().any(|reserved| first == *reserved)) {
            return Err(wrong("not a path inside of the project"));
        }
        let source = project.root().join(relative);
        let meta = fs::symlink_metadata(&source).map_err(|_| wrong("it does not exist in your checkout"))?;
        if !project.repo()?.is_ignored(relative)? {
            return Err(wrong("git does not ignore it; agents would commit it. Add it to .gitignore"));
        }
        let parents = make_parents(checkout, relative).map_err(SetupError::io("create", checkout))?;
        let Some(target) = parents else { continue };
        let moved = MovedPaths::new(project.root(), shown);
        // A single file is the person's own text, such as `.env`.
        let moves = meta.is_dir().then_some(&moved);
        copy_tree(&source, &meta, &target, moves).map_err(SetupError::io("copy", &source))?;
        if let Some((file, place)) = moved.leading_back(&target) {
            return Err(wrong(&leads_back(&file, &place)));
        }
    }
    Ok(())
}

fn leads_back(file: &Path, place: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "{name} in it leads to {}, which is in your checkout: tests would run your code, and not that of the task. \
         Use config.setup, or create it again inside of the project, by the path that git shows",
        place.display()
    )
}
