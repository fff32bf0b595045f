//! A small disk for a folder, to be filled. Needs the right to mount; `./check` leaves tests with
//! `needs_mount_` out without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Puts a folder with what it contains on a disk of that many MiB.
    pub(crate) fn under(folder: &Path, size: u32) -> Self {
        let aside = folder.with_extension("aside");
        fs::create_dir_all(folder).unwrap();
        fs::rename(folder, &aside).unwrap();
        fs::create_dir(folder).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}m"), "tmpfs"]).arg(folder));
        let disk = Self { at: folder.to_owned() };
        run(Command::new("cp").arg("-a").arg(aside.join(".")).arg(folder));
        fs::remove_dir_all(aside).unwrap();
        disk
    }

    /// Takes all space until [`SmallDisk::empty`].
    pub(crate) fn fill(&self) {
        let _ = fs::write(self.filler(), vec![b'x'; 256 << 20]);
    }

    pub(crate) fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
