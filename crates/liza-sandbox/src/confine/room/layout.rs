//! The files of a room, as data: the plan's paths without those that another one contains, the folders above them, and
//! the links in these folders. Reads the disk; changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use crate::confine::placed::Placed;
use crate::confine::plan::Plan;
use crate::confine::system_folders::{ETC, OWN_FOLDERS};
use crate::sys::confinement;

/// Places of the room's own.
const OWN: [&str; 4] = ["/proc", "/dev/pts", "/dev/ptmx", "/dev/shm"];

/// Folders that every room has.
const FOLDERS: [&str; 5] = ["/proc", "/dev", "/dev/pts", "/dev/shm", "/tmp"];

const NAME_SETTINGS: &str = "/etc/resolv.conf";

/// The most links on the way to a file, as the kernel counts them.
const LINKS_MAX: u32 = 40;

/// The rights on a path, the lesser first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BindRights {
    /// No file can be run.
    OnlyRead,
    Read,
    Device,
    Write,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Folders of the room's own, the outer ones first.
    pub folders: BTreeSet<PathBuf>,
    /// Links in these folders, with their targets.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Real paths from outside, the outer ones first.
    pub binds: BTreeMap<PathBuf, BindRights>,
    /// What is not granted in a folder that is bound as a whole.
    pub covered: Vec<PathBuf>,
    /// Folders for temporary files and shared memory that are the room's own.
    pub own: Vec<PathBuf>,
    /// The file with the name servers, if the room has one of its own.
    pub name_settings: Option<PathBuf>,
    /// Instead of what is outside, the outer ones first.
    pub placed: Vec<Placed>,
}

impl Layout {
    pub(super) fn of(plan: &Plan) -> Self {
        let grants = &plan.grants;
        let services = plan.harmless_services();
        let read = grants.read.iter().chain(&grants.sockets).chain(&services);
        let granted = (read.map(|path| (path, BindRights::Read)))
            .chain(grants.only_read.iter().map(|path| (path, BindRights::OnlyRead)))
            .chain(grants.devices.iter().map(|path| (path, BindRights::Device)))
            .chain(grants.write.iter().map(|path| (path, BindRights::Write)));
        let mut layout = Self { placed: plan.placed.clone(), ..Self::default() };
        layout.links.extend(plan.also_at.clone().zip(plan.checkout.clone()));
        layout.placed.sort_by(|one, other| one.at.cmp(&other.at));
        let mut folders = HashSet::new();
        for (path, rights) in granted {
            layout.add(path, rights, &mut folders);
        }
        layout.binds = without_contained(&layout.binds);
        if confinement::protects_files() {
            layout.bind_as_a_whole(Path::new(ETC));
        }
        layout.links.retain(|link, _| !is_bound(&layout.binds, link));
        layout.own = OWN_FOLDERS.iter().map(PathBuf::from).filter(|own| layout.is_free(own)).collect();
        layout.add_folders(&plan.not_written);
        layout.add_links();
        let settings = resolve(Path::new(NAME_SETTINGS), &mut folders)
            .filter(|_| plan.has_names())
            .map(|found| found.real);
        layout.name_settings = settings.filter(|path| is_bound(&layout.binds, path) && path.is_file());
        layout
    }

    /// `folders` are some that exist and are no links.
    fn add(&mut self, path: &Path, rights: BindRights, folders: &mut HashSet<PathBuf>) {
        let Some(resolved) = resolve(path, folders) else { return };
        let is_own =
            OWN.iter().any(|own| resolved.real == Path::new(own)) || resolved.real.starts_with("/proc");
        // An earlier session may have put a link on the way to a folder that it could write.
        let is_led_away = rights == BindRights::Write && !resolved.links.is_empty();
        if is_own || is_led_away || self.is_placed(&resolved.real) {
            return;
        }
        self.links.extend(resolved.links);
        let known = self.binds.entry(resolved.real).or_insert(rights);
        *known = rights.max(*known);
    }

    /// Binds a folder instead of its many entries, and covers those that are not among them. What appears in it later is
    /// refused by Landlock alone.
    fn bind_as_a_whole(&mut self, folder: &Path) {
        let is_inside = |path: &Path| path != folder && path.starts_with(folder);
        if is_bound(&self.binds, folder) || !self.binds.keys().any(|path| is_inside(path)) {
            return;
        }
        self.covered = self.not_granted(folder);
        self.binds.retain(|path, rights| *rights != BindRights::Read || !is_inside(path));
        self.binds.insert(folder.to_owned(), BindRights::Read);
    }

    /// The outermost entries below a folder that are not bound; links lead only to what is.
    fn not_granted(&self, folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if self.binds.contains_key(&path) || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            match self.binds.keys().any(|bound| bound.starts_with(&path)) {
                true => found.extend(self.not_granted(&path)),
                false => found.push(path),
            }
        }
        found
    }

    /// Folders above what is bound, and those that programs expect even if they cannot use them.
    fn add_folders(&mut self, expected: &[PathBuf]) {
        let mut known = HashSet::new();
        let expected = expected.iter().filter(|path| path.is_dir());
        let expected = expected.filter_map(|path| resolve(path, &mut known));
        let (expected, links): (Vec<_>, Vec<_>) = expected.map(|found| (found.real, found.links)).unzip();
        self.links.extend(links.into_iter().flatten());
        let placed = self.placed.iter().map(|placed| &placed.at);
        let inner = self.binds.keys().chain(self.links.keys()).chain(placed);
        let above: Vec<PathBuf> = inner.filter_map(|path| path.parent()).map(Path::to_owned).collect();
        let all = FOLDERS.iter().map(PathBuf::from).chain(expected).chain(above);
        for folder in all {
            for folder in folder.ancestors() {
                if !is_bound(&self.binds, folder) && !self.is_placed(folder) {
                    self.folders.insert(folder.to_owned());
                }
            }
        }
    }

    /// The links beside what is bound: `/etc/localtime`, `/bin`. None takes the place of something of the room's own.
    fn add_links(&mut self) {
        let is_own = |folder: &&PathBuf| FOLDERS.iter().any(|own| folder.as_path() == Path::new(own));
        for folder in self.folders.iter().filter(|folder| !is_own(folder)) {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
            for link in links.map(|entry| entry.path()).filter(|link| !self.folders.contains(link)) {
                let Ok(target) = fs::read_link(&link) else { continue };
                self.links.entry(link).or_insert(target);
            }
        }
    }

    /// True if something of the room's own is at this path or above it.
    fn is_placed(&self, path: &Path) -> bool {
        self.placed.iter().any(|placed| path.starts_with(&placed.at))
    }

    /// True if everything on this machine is granted: then a room would protect nothing.
    pub(super) fn is_whole(&self) -> bool {
        self.binds.contains_key(Path::new("/"))
    }

    /// True if a folder neither is nor contains anything from outside but sockets: Landlock would grant it too.
    fn is_free(&self, folder: &Path) -> bool {
        let is_socket = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        let mut placed = self.placed.iter().map(|placed| &placed.at);
        !self.binds.keys().any(|path| path.starts_with(folder) && !is_socket(path))
            && !placed.any(|path| path.starts_with(folder))
    }
}

/// True if a path or a folder above it is bound.
fn is_bound(binds: &BTreeMap<PathBuf, BindRights>, path: &Path) -> bool {
    path.ancestors().any(|above| binds.contains_key(above))
}

/// Leaves out what a bound folder above already has with the same rights or more.
fn without_contained(binds: &BTreeMap<PathBuf, BindRights>) -> BTreeMap<PathBuf, BindRights> {
    let is_contained = |path: &Path, rights: BindRights| {
        path.ancestors().skip(1).any(|above| {
            binds.get(above).is_some_and(|outer| *outer == BindRights::Write || rights == BindRights::Read)
        })
    };
    let kept = binds.iter().filter(|(path, rights)| !is_contained(path, **rights));
    kept.map(|(path, rights)| (path.clone(), *rights)).collect()
}

struct Resolved {
    real: PathBuf,
    /// The links on the way, with their targets.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Follows the links of an absolute path one by one; `None` if it does not exist. `folders` are known to exist and to be no links.
fn resolve(path: &Path, folders: &mut HashSet<PathBuf>) -> Option<Resolved> {
    if !path.is_absolute() {
        return None;
    }
    let names = |path: &Path| -> Vec<OsString> {
        let parts = path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut rest: VecDeque<OsString> = names(path).into();
    let mut found = Resolved { real: PathBuf::from("/"), links: Vec::new() };
    let mut count = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            found.real.pop();
            continue;
        }
        let next = found.real.join(&name);
        if folders.contains(&next) {
            found.real = next;
            continue;
        }
        let kind = fs::symlink_metadata(&next).ok()?.file_type();
        if !kind.is_symlink() {
            if kind.is_dir() {
                folders.insert(next.clone());
            }
            found.real = next;
            continue;
        }
        count += 1;
        let target = fs::read_link(&next).ok().filter(|_| count <= LINKS_MAX)?;
        if target.is_absolute() {
            found.real = PathBuf::from("/");
        }
        names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
        found.links.push((next, target));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::sys::confinement::Grants;

    /// Covers: RO-07
    #[test]
    fn a_room_has_what_the_plan_grants_and_nothing_beside_it() {
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let place = place.path().canonicalize().unwrap();
        let at = |name: &str| place.join(name);
        for folder in ["tools/bin", "project/src", "project/trees/t1", "project/own", "secret"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        symlink("tools", at("linked")).unwrap();
        symlink("../secret", at("project/away")).unwrap();
        let grants = Grants {
            read: vec![
                at("linked/bin"),
                at("project/src"),
                at("project/trees"),
                at("gone"),
                at("project/trees/t1"),
            ],
            write: vec![at("project/trees/t1"), at("project/away"), at("project/own")],
            ..Grants::default()
        };
        let plan = Plan { grants, not_written: vec![at("project"), at("secret")], ..Plan::default() };
        let layout = Layout::of(&plan);
        let binds: Vec<(PathBuf, BindRights)> = layout
            .binds
            .iter()
            .map(|(path, rights)| (path.clone(), *rights))
            .filter(|(path, _)| path.starts_with(&place))
            .collect();
        let expected = [
            (at("project/own"), BindRights::Write),
            (at("project/src"), BindRights::Read),
            (at("project/trees"), BindRights::Read),
            (at("project/trees/t1"), BindRights::Write),
            (at("tools/bin"), BindRights::Read),
        ];
        assert_eq!(binds, expected, "a writable path behind a link is left out");
        assert!(layout.folders.contains(&at("project")) && layout.folders.contains(&at("secret")));
        assert!(!layout.folders.contains(&at("project/src")), "{layout:?}");
        assert_eq!(layout.links.get(&at("linked")), Some(&PathBuf::from("tools")));
        assert_eq!(
            layout.links.get(&at("project/away")),
            Some(&PathBuf::from("../secret")),
            "it leads nowhere"
        );
        assert_eq!(layout.own, [Path::new("/dev/shm")], "something from outside is below the other one");
    }

    /// Covers: RO-03
    #[test]
    fn the_documented_place_of_a_worktree_leads_to_it_whatever_links_are_on_the_disk() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let at = |name: &str| place.join(name);
        for folder in ["project/.worktrees", "state/.worktrees/t1", "secret/t1"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let plan = Plan {
            grants: Grants { write: vec![at("state/.worktrees/t1")], ..Grants::default() },
            not_written: vec![at("project")],
            checkout: Some(at("state/.worktrees/t1")),
            also_at: Some(at("project/.worktrees/t1")),
            ..Plan::default()
        };
        let leads_to_it = || {
            let layout = Layout::of(&plan);
            let is_folder = layout.folders.contains(&at("project/.worktrees"));
            is_folder
                && !layout.links.contains_key(&at("project/.worktrees"))
                && layout.links.get(&at("project/.worktrees/t1")) == plan.checkout.as_ref()
        };
        assert!(leads_to_it());
        symlink(at("secret/t1"), at("project/.worktrees/t1")).unwrap();
        assert!(leads_to_it(), "a link that leads out is in its place");
        fs::remove_dir_all(at("project/.worktrees")).unwrap();
        symlink(at("secret"), at("project/.worktrees")).unwrap();
        assert!(leads_to_it(), "a link that leads out is in the place of the folder");
    }

    /// Covers: RO-07
    #[test]
    fn a_folder_for_temporary_files_that_the_person_listed_is_the_real_one() {
        let grants = Grants { write: vec!["/tmp".into(), "/dev/shm".into()], ..Grants::default() };
        let layout = Layout::of(&Plan { grants, ..Plan::default() });
        assert_eq!(layout.binds.get(Path::new("/tmp")), Some(&BindRights::Write));
        assert_eq!(layout.own, [Path::new("/dev/shm")]);
        let none = Layout::of(&Plan::default());
        assert_eq!(none.own, OWN_FOLDERS.map(PathBuf::from));
        assert!(!none.is_whole());
    }

    /// Covers: RO-07
    #[test]
    fn a_folder_that_is_bound_as_a_whole_has_covers_over_what_is_not_granted() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let at = |name: &str| place.join(name);
        for folder in ["etc/ssl/private", "etc/apt"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["etc/passwd", "etc/shadow", "etc/ssl/openssl.cnf", "etc/own"] {
            fs::write(at(file), "").unwrap();
        }
        symlink("shadow", at("etc/link")).unwrap();
        let mut layout = Layout::default();
        for name in ["etc/passwd", "etc/ssl/openssl.cnf", "etc/apt"] {
            layout.add(&at(name), BindRights::Read, &mut HashSet::new());
        }
        layout.add(&at("etc/own"), BindRights::Write, &mut HashSet::new());
        layout.bind_as_a_whole(&at("etc"));
        layout.covered.sort();
        assert_eq!(layout.covered, [at("etc/shadow"), at("etc/ssl/private")]);
        let expected = [(at("etc"), BindRights::Read), (at("etc/own"), BindRights::Write)];
        assert_eq!(layout.binds, expected.into());
        let mut nothing = Layout::default();
        nothing.bind_as_a_whole(&at("etc"));
        assert_eq!(nothing, Layout::default(), "nothing is granted there");
    }

    /// Covers: RO-07
    #[test]
    fn a_relative_path_grants_nothing_and_the_root_folder_everything() {
        let of = |path: &str| {
            Layout::of(&Plan {
                grants: Grants { read: vec![path.into()], ..Grants::default() },
                ..Plan::default()
            })
        };
        assert_eq!((of(""), of("bin")), (Layout::of(&Plan::default()), Layout::of(&Plan::default())));
        assert!(of("/").is_whole() && of("/usr/..").is_whole());
    }
}
