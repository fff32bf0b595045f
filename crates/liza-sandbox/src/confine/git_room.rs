//! The grants of git on agents' files: it reads as sessions do and writes to folders that are made for it. A
//! filter, or a bug of git itself, could run an agent's code, which then finds no more than in its session.

use std::path::{Path, PathBuf};

use crate::sys::confinement::Grants;

use super::credentials::IN_ETC;
use super::home::{Yours, expand};
use super::plan::{RoomSettings, Surroundings, leave_out_logins_and_settings, readable};
use super::readable::{LeftOut, Look, all_but};
use super::system_folders::{ETC, PLAIN_DEVICES, SHARED_MEMORY};

/// Git's own settings, in which a helper may keep passwords.
const SETTINGS: &str = "git";
const PASSWORDS: &[&str] = &["credentials"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomRules {
    pub off: bool,
    pub readable: Vec<PathBuf>,
    /// Also for its filters.
    pub writable: Vec<PathBuf>,
    pub pass_env: Vec<String>,
    pub max_abi: Option<u32>,
}

impl RoomRules {
    pub fn new(settings: &RoomSettings, home: Option<&Path>) -> Self {
        let expanded = |paths: &[String]| paths.iter().map(|path| expand(path, home)).collect();
        Self {
            off: settings.off,
            readable: expanded(&settings.readable),
            writable: expanded(&settings.writable),
            pass_env: settings.pass_env.clone(),
            max_abi: settings.max_abi,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct GitSurroundings<'a> {
    pub root: &'a Path,
    pub git: &'a Path,
    pub program: &'a Path,
    pub search_path: &'a [PathBuf],
    pub home: Option<&'a Path>,
    pub settings: Option<&'a Path>,
    /// Needed wherever they are.
    pub needed: &'a [PathBuf],
    pub writable: &'a [PathBuf],
}

pub fn git_grants(around: &GitSurroundings<'_>, look: &dyn Look) -> Grants {
    let liza = around.root.join(".liza");
    let session = Surroundings {
        root: around.root,
        folder: &liza,
        worktrees: around.root,
        git: around.git,
        checkout: None,
        scratch: around.git,
        own: &[],
        caches: &[],
        needed: &[],
        program: None,
        search_path: around.search_path,
        tools: &[],
        git_settings: &[],
        home: around.home,
        passwords: &[],
        user: 0,
        settings: &RoomSettings::default(),
        channel: None,
        network: None,
        services: &[],
    };
    let yours = Yours::new(around.home, around.root, look);
    let mut left_out = LeftOut::default();
    left_out.add_path(look, &liza);
    left_out.add(look, Path::new(ETC), IN_ETC);
    leave_out_logins_and_settings(&mut left_out, &session, &yours, look);
    let mut read = readable(&session, &yours, look, &left_out);
    read.extend(own_settings(around, look));
    read.push(around.program.to_owned());
    // The folder of a filter may be your home folder; then the filter alone is readable.
    let has_home = |path: &&PathBuf| around.home.is_some_and(|home| home.starts_with(path));
    let needed = around.needed.iter().filter(|path| !has_home(path));
    read.extend(needed.flat_map(|path| all_but(look, path, &left_out)));
    read.extend(look.real(&around.git.join("objects")));
    let mut write = around.writable.to_owned();
    // Some libraries that are loaded into every program need it.
    write.push(look.real(Path::new(SHARED_MEMORY)).unwrap_or_else(|| SHARED_MEMORY.into()));
    Grants { read, write, devices: PLAIN_DEVICES.iter().map(PathBuf::from).collect(), ..Grants::default() }
}

/// The person's own settings of git, without passwords.
fn own_settings(around: &GitSurroundings<'_>, look: &dyn Look) -> Vec<PathBuf> {
    let default = around.home.map(|home| home.join(".config"));
    let Some(folder) = around.settings.map(Path::to_owned).or(default) else { return Vec::new() };
    let folder = folder.join(SETTINGS);
    let mut left_out = LeftOut::default();
    left_out.add(look, &folder, PASSWORDS);
    let mut settings = all_but(look, &folder, &left_out);
    // These may be links to anywhere.
    settings.extend(["config", "ignore", "attributes"].map(|name| folder.join(name)));
    settings.extend(around.home.map(|home| home.join(".gitconfig")));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::readable::tests::FakeLook;

    /// Covers: IS-08, IS-14
    #[test]
    fn git_among_agents_files_reads_no_password_and_writes_only_where_it_is_told() {
        let disk = FakeLook::default()
            .with("/home/me", &[".ssh", ".gitconfig", ".config", "work"])
            .with("/home/me/.config", &["git", "gh", "nvim"])
            .with("/home/me/.config/git", &["config", "ignore", "credentials"])
            .with("/home/me/work", &["shop"])
            .with("/home/me/work/shop", &[".git", ".liza", ".worktrees", "src"]);
        let writable = [PathBuf::from("/home/me/work/shop/.git/liza-view-1-1")];
        let around = GitSurroundings {
            root: Path::new("/home/me/work/shop"),
            git: Path::new("/home/me/work/shop/.git"),
            program: Path::new("/usr/bin/git"),
            search_path: &["/usr/bin".into(), "/home/me/work/shop/bin".into()],
            home: Some(Path::new("/home/me")),
            settings: None,
            needed: &["/data/gitconfig".into(), "/home/me".into()],
            writable: &writable,
        };
        let grants = git_grants(&around, &disk);
        assert_eq!(grants.write, [writable[0].clone(), SHARED_MEMORY.into()]);
        let reads = |path: &str| grants.read.iter().any(|granted| Path::new(path).starts_with(granted));
        for path in [
            "/usr/lib/git-core/git",
            "/home/me/.gitconfig",
            "/home/me/.config/git/config",
            "/home/me/.config/git/ignore",
            "/home/me/work/shop/.git/config",
            "/home/me/work/shop/.worktrees/t1/a",
            "/data/gitconfig",
        ] {
            assert!(reads(path), "{path}: {grants:?}");
        }
        for path in [
            "/home/me/.ssh/id",
            "/home/me/.config/git/credentials",
            "/home/me/.config/gh/hosts.yml",
            "/home/me/.config/nvim/init",
            "/home/me/notes.txt",
            "/home/me/work/shop/.liza/state.yaml",
            "/etc/shadow",
            "/var/lib/secret",
        ] {
            assert!(!reads(path), "{path}: {grants:?}");
        }
    }
}
