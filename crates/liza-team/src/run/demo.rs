//! The stage of `liza demo`: a sample repository, with a playbook for the rehearsal agent. Touches nothing
//! outside the folder that it makes.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use liza_git::{Git, GitError, Repo};
use liza_rehearsal::SampleProject;

/// The committer in the sample repository, where the user may have no name yet.
const IDENTITY: [(&str, &str); 4] = [
    ("user.name", "Liza demo"),
    ("user.email", "demo@example.invalid"),
    ("commit.gpgSign", "false"),
    ("core.hooksPath", "/dev/null"),
];

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("{} exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("the sample's file {} is not inside its folder", .0.display())]
    Outside(PathBuf),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DemoError {
    let path = path.to_owned();
    move |source| DemoError::Io { action, path, source }
}

/// The requested folder, which must be empty or absent; else a new one among the system's temporary ones.
pub fn folder(asked: Option<&Path>) -> Result<PathBuf, DemoError> {
    if let Some(folder) = asked {
        fs::create_dir_all(folder).map_err(failed("make", folder))?;
        let mut entries = fs::read_dir(folder).map_err(failed("read", folder))?;
        if entries.next().is_some() {
            return Err(DemoError::NotEmpty(folder.to_owned()));
        }
        return folder.canonicalize().map_err(failed("find", folder));
    }
    temporary_folder("liza-demo")
}

/// A new folder among the system's temporary ones, with that name and a number.
pub fn temporary_folder(name: &str) -> Result<PathBuf, DemoError> {
    let place = std::env::temp_dir();
    for number in 1_u32.. {
        let folder = place.join(format!("{name}-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return folder.canonicalize().map_err(failed("find", &folder)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("make", &folder)(error)),
        }
    }
    Err(failed("make", &place)(io::ErrorKind::AlreadyExists.into()))
}

pub fn set_stage(folder: &Path, sample: &SampleProject) -> Result<Repo, DemoError> {
    let git = Git::new();
    git.require_version()?;
    let call = |arguments: &[&str]| git.command("creating the sample project", folder).args(arguments).read();
    call(&["init", "-q", "-b", "main"])?;
    for (key, value) in IDENTITY {
        call(&["config", key, value])?;
    }
    for file in &sample.files {
        if !file.path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(DemoError::Outside(file.path.clone()));
        }
        let path = folder.join(&file.path);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed("make the folder of", &path))?;
        fs::write(&path, &file.text).map_err(failed("write", &path))?;
    }
    call(&["add", "--all"])?;
    call(&["commit", "-q", "-m", "The sample project"])?;
    Ok(Repo::open(&git, folder)?)
}

pub fn keep_playbook(folder: &Path, text: &str) -> Result<PathBuf, DemoError> {
    let path = folder.join(".liza/playbook.yaml");
    fs::write(&path, text).map_err(failed("write", &path))?;
    Ok(path)
}
