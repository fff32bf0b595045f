//! Makes the files of a room: a small root folder in memory, in which the paths from outside are mounted. They are
//! private: what the person mounts later does not appear.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
    mount, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;

use crate::confine::placed::{Placed, PlacedFiles};

use super::calls::add_attributes;
use super::layout::{BindRights, Layout};
use super::network::name_settings;
use super::step;

/// The new root is made here, where nothing from outside is needed.
const ROOM: &str = "/proc";

/// The share of the memory that files in a folder of the room's own can take.
const OWN_OPTIONS: &std::ffi::CStr = c"mode=1777,size=25%";
const ROOT_OPTIONS: &std::ffi::CStr = c"mode=755,size=16m";

/// Devices in a room that are links.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// Gives this process, the first of its namespaces, the files of a room.
pub(super) fn build(layout: &Layout) -> io::Result<()> {
    step("make mounts private", || {
        Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
    })?;
    // Before anything is covered.
    let placed =
        layout.placed.iter().map(|placed| step(placed.at.display(), || Ok((placed, open_placed(placed)?))));
    let placed: Vec<_> = placed.collect::<io::Result<_>>()?;
    step("make a root folder", || new_files(Path::new(ROOM), ROOT_OPTIONS))?;
    let mut sealed = vec![PathBuf::from(ROOM)];
    for folder in &layout.folders {
        step(folder.display(), || make_folder(layout, folder, &mut sealed))?;
    }
    for (link, target) in &layout.links {
        step(link.display(), || make_link(target, link))?;
    }
    for (path, rights) in &layout.binds {
        step(path.display(), || bind(layout, path, *rights))?;
    }
    step("cover what is not granted", || cover(&layout.covered))?;
    for (placed, tree) in placed {
        step(placed.at.display(), || place(layout, placed, tree))?;
    }
    if let Some(settings) = &layout.name_settings {
        step(settings.display(), || cover_name_settings(settings))?;
    }
    step("/proc", || {
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount("proc", inside(Path::new("/proc")), "proc", flags, None)?)
    })?;
    step("/dev/pts", || {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        Ok(mount(
            "devpts",
            inside(Path::new("/dev/pts")),
            "devpts",
            flags,
            c"newinstance,ptmxmode=0666,mode=0620",
        )?)
    })?;
    for (link, target) in DEVICE_LINKS {
        step(link, || make_link(Path::new(target), Path::new(link)))?;
    }
    for folder in layout.folders.iter().filter(|folder| !layout.own.contains(folder)) {
        step(folder.display(), || hide_names(folder))?;
    }
    for folder in &sealed {
        step("make folders read-only", || seal(folder))?;
    }
    step("change the root folder", enter)
}

/// A path of the room, before the room is entered.
fn inside(path: &Path) -> PathBuf {
    Path::new(ROOM).join(path.strip_prefix("/").unwrap_or(path))
}

fn new_files(at: &Path, options: &std::ffi::CStr) -> io::Result<()> {
    Ok(mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

fn make_folder(layout: &Layout, folder: &Path, sealed: &mut Vec<PathBuf>) -> io::Result<()> {
    let at = inside(folder);
    match fs::create_dir(&at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if layout.own.iter().any(|own| own == folder) {
        return new_files(&at, OWN_OPTIONS);
    }
    // The session can write to the folder above: a mount can be neither moved nor removed there.
    if folder.parent().is_some_and(|above| layout.own.iter().any(|own| own == above)) {
        new_files(&at, ROOT_OPTIONS)?;
        sealed.push(at);
    }
    Ok(())
}

/// A folder of which parts are granted cannot be listed, as without a room.
fn hide_names(folder: &Path) -> io::Result<()> {
    let at = inside(folder);
    let is_mounted = [Path::new("/proc"), Path::new("/dev/pts")].contains(&folder);
    if is_mounted { Ok(()) } else { fs::set_permissions(at, Permissions::from_mode(0o111)) }
}

fn make_link(target: &Path, link: &Path) -> io::Result<()> {
    match symlink(target, inside(link)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Mounts a path from outside at the same place; leaves it out if it is gone.
fn bind(layout: &Layout, path: &Path, rights: BindRights) -> io::Result<()> {
    let source = match open_real(path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let is_folder = is_folder(&source)?;
    let tree = tree_of(&source, is_folder)?;
    let read_only = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    let attributes = match rights {
        BindRights::OnlyRead => read_only | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC,
        BindRights::Read => read_only | libc::MOUNT_ATTR_NODEV,
        BindRights::Device => read_only | libc::MOUNT_ATTR_NOEXEC,
        BindRights::Write => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
    };
    add_attributes(tree.as_fd(), attributes, is_folder)?;
    attach(layout, path, &tree, is_folder)
}

fn is_folder(file: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory)
}

/// A file or a folder as a mount that is nowhere yet.
fn tree_of(source: &OwnedFd, is_folder: bool) -> io::Result<OwnedFd> {
    let mut flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    flags.set(OpenTreeFlags::AT_RECURSIVE, is_folder);
    Ok(open_tree(source, "", flags)?)
}

fn attach(layout: &Layout, path: &Path, tree: &OwnedFd, is_folder: bool) -> io::Result<()> {
    let at = inside(path);
    // Below another mount the place exists.
    if path.parent().is_some_and(|above| layout.folders.contains(above)) {
        match is_folder {
            true => fs::create_dir(&at)?,
            false => drop(File::create_new(&at)?),
        }
    }
    Ok(move_mount(tree, "", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Opens what is placed in the room; `None` if it is in the room already.
fn open_placed(placed: &Placed) -> io::Result<Option<OwnedFd>> {
    match &placed.files {
        PlacedFiles::Sealed | PlacedFiles::Pinned => Ok(None),
        PlacedFiles::Overlay { lower, upper, work } => overlay(lower, upper, work).map(Some),
    }
}

/// Mounts folders above each other, nowhere yet. Nothing is written to the disk before it has to be: the upper folder is
/// used once.
fn overlay(lower: &[PathBuf], upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    // By descriptor: no character of a path has a meaning, and no link is followed.
    let folders = |paths: &mut dyn Iterator<Item = &Path>| {
        paths.map(open_real).collect::<Result<Vec<OwnedFd>, Errno>>()
    };
    let named = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
    let lower = folders(&mut lower.iter().map(PathBuf::as_path))?;
    let written = folders(&mut [upper, work].into_iter())?;
    let [upper, work] = written.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let below: Vec<String> = lower.iter().map(named).collect();
    let files = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(files.as_fd(), "lowerdir", below.join(":"))?;
    fsconfig_set_string(files.as_fd(), "upperdir", named(upper))?;
    fsconfig_set_string(files.as_fd(), "workdir", named(work))?;
    fsconfig_set_flag(files.as_fd(), "userxattr")?;
    fsconfig_set_flag(files.as_fd(), "volatile")?;
    fsconfig_create(files.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(files.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Puts it at its place in the room. A place in an overlay exists there.
fn place(layout: &Layout, placed: &Placed, tree: Option<OwnedFd>) -> io::Result<()> {
    let tree = match tree {
        Some(tree) => tree,
        // Mounted on itself.
        None => {
            let source = open_real(&inside(&placed.at))?;
            tree_of(&source, is_folder(&source)?)?
        }
    };
    let is_folder = is_folder(&tree)?;
    if placed.files == PlacedFiles::Sealed {
        add_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, is_folder)?;
    }
    attach(layout, &placed.at, &tree, is_folder)
}

/// Covers files and folders with empty ones that nobody can open.
fn cover(paths: &[PathBuf]) -> io::Result<()> {
    let (file, folder) = (inside(Path::new("/no-file")), inside(Path::new("/no-folder")));
    drop(File::create_new(&file)?);
    fs::create_dir(&folder)?;
    for own in [&file, &folder] {
        fs::set_permissions(own, Permissions::from_mode(0o000))?;
    }
    for path in paths {
        let at = match open_real(&inside(path)) {
            Err(Errno::NOENT) => continue,
            opened => opened?,
        };
        let own = if is_folder(&at)? { &folder } else { &file };
        let tree = tree_of(&open_real(own)?, false)?;
        add_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOEXEC, false)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&tree, "", &at, "", flags)?;
    }
    fs::remove_file(&file)?;
    fs::remove_dir(&folder)
}

/// Covers the settings for name servers with those of the room.
fn cover_name_settings(settings: &Path) -> io::Result<()> {
    let (own, at) = (inside(Path::new("/name-settings")), inside(settings));
    fs::write(&own, name_settings(&fs::read_to_string(settings)?))?;
    let source = rustix::fs::open(&own, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let tree = tree_of(&source, false)?;
    add_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOEXEC, false)?;
    move_mount(&tree, "", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    fs::remove_file(&own)
}

/// Opens a path without following any link.
fn open_real(path: &Path) -> Result<OwnedFd, Errno> {
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
}

fn seal(folder: &Path) -> io::Result<()> {
    let mount = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    add_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, false)
}

fn enter() -> io::Result<()> {
    std::env::set_current_dir(ROOM)?;
    // The old root is then mounted above the new one, and nothing else refers to it.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}
