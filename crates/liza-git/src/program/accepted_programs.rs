//! The programs in the project's own git configuration that the human has accepted. Kept in the home folder,
//! outside the repository, where neither a merge nor a confined session can change it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_host::{durable, private};

use crate::program::filter_command::loads_nothing_from_here;
use crate::program::programs::ProgramSetting;

/// The place of a project's accepted settings.
#[derive(Debug, Clone)]
pub struct AcceptedPrograms {
    /// `None` without a home folder.
    pub file: Option<PathBuf>,
    /// Programs in the project are the agents' own work, and never run.
    root: PathBuf,
}

impl AcceptedPrograms {
    pub fn of(home: Option<&Path>, common_dir: &Path, root: &Path) -> Self {
        let place = common_dir.strip_prefix("/").unwrap_or(common_dir);
        let file = home.map(|home| home.join(".config/liza/projects").join(place).join("git-programs"));
        Self { file, root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The accepted settings; none if they cannot be read.
    pub fn read(&self) -> Vec<ProgramSetting> {
        let kept = self.file.as_ref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        kept.split(|byte| *byte == 0).filter_map(ProgramSetting::parse).collect()
    }

    pub fn write(&self, settings: &[ProgramSetting]) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "HOME is not set"));
        };
        if let Some(folder) = file.parent() {
            private::create_folder(folder)?;
        }
        let entries: Vec<Vec<u8>> = settings.iter().map(ProgramSetting::entry).collect();
        durable::replace_private_file(file, &entries.join(&0))
    }

    /// True for a setting of `accepted` whose command names no file of the project.
    pub(crate) fn may_run(&self, setting: &ProgramSetting, accepted: &[ProgramSetting]) -> bool {
        accepted.contains(setting) && !self.is_in_project(&setting.value)
    }

    /// True if a command may run among an agent's files.
    pub(crate) fn may_run_among_agents_files(&self, command: &[u8]) -> bool {
        loads_nothing_from_here(&String::from_utf8_lossy(command), &self.root)
    }

    fn is_in_project(&self, command: &[u8]) -> bool {
        let command = String::from_utf8_lossy(command);
        let mut words =
            command.split(|letter: char| letter.is_whitespace() || "'\"`;|&()<>=!".contains(letter));
        words.any(|word| {
            let path = self.root.join(word);
            word.contains('/') && path.starts_with(&self.root) && path.is_file()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> ProgramSetting {
        ProgramSetting { key: key.into(), value: value.into() }
    }

    /// Covers: IS-08
    #[test]
    fn what_was_accepted_is_kept_for_each_project_with_every_byte() {
        let home = tempfile::tempdir().unwrap();
        let of = |project: &str| AcceptedPrograms::of(Some(home.path()), Path::new(project), Path::new("/x"));
        let settings = [
            setting("filter.a b=c.clean", "x\n y"),
            setting("merge.d.driver", ""),
            setting("gpg.program", "é"),
        ];
        of("/a/.git").write(&settings).unwrap();
        assert_eq!(of("/a/.git").read(), settings);
        assert_eq!(of("/a/.git/b").read(), []);
        assert!(AcceptedPrograms::of(None, Path::new("/a"), Path::new("/x")).write(&settings).is_err());
        assert_eq!(AcceptedPrograms::of(None, Path::new("/a/.git"), Path::new("/x")).read(), []);
    }

    /// Covers: IS-08
    #[test]
    fn a_program_of_the_project_itself_never_runs() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("tools")).unwrap();
        fs::write(root.path().join("tools/clean"), "").unwrap();
        fs::write(root.path().join("lfs"), "").unwrap();
        let place = AcceptedPrograms::of(None, Path::new("/a"), root.path());
        let absolute = root.path().join("tools/clean").display().to_string();
        let runs = |value: &str| {
            let setting = setting("filter.x.clean", value);
            place.may_run(&setting, std::slice::from_ref(&setting))
        };
        for own in ["git-lfs clean -- %f", "/usr/bin/tr a b", "sh -c 'tools | cat'", "", "cat lfs"] {
            assert!(runs(own), "{own}");
        }
        for planted in ["tools/clean", "./tools/clean %f", "sh 'tools/clean'", "A=tools/clean;$A", &absolute]
        {
            assert!(!runs(planted), "{planted}");
        }
        assert!(!place.may_run(&setting("filter.x.clean", "cat"), &[setting("filter.x.clean", "tac")]));
    }
}
