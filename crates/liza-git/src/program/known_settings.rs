//! The configuration that git has listed for the project, and for the git folders that Liza makes in it. Each command among
//! agents' files needs it first; it is listed again only when one of its files has another content.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::program::environment::GitEnvironment;
use crate::program::programs::{Settings, each_setting};

/// The most lists: one for each kind of git folder, and some for other formats of objects.
const KEPT_MAX: usize = 8;

/// What the file `commondir` of a git folder contains that has the project's configuration.
pub(crate) const SHARED: &[u8] = b"..\n";

#[derive(Debug)]
pub(crate) struct KnownSettings {
    root: PathBuf,
    common_dir: PathBuf,
    /// The files that git reads, if they exist.
    files: Vec<PathBuf>,
    known: Mutex<Vec<(Source, Settings)>>,
}

/// What the answer follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    whose: Whose,
    contents: Vec<Option<Vec<u8>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// The project's, in its root folder.
    Project,
    /// The project's, in a git folder of Liza's.
    Shared,
    /// Those of a git folder of Liza's alone.
    Own(Vec<u8>),
}

impl KnownSettings {
    pub(crate) fn new(git: &GitEnvironment, root: &Path, git_dir: &Path, common_dir: &Path) -> Self {
        let mut files = git.settings_files();
        files.extend([common_dir.join("config"), git_dir.join("config.worktree")]);
        Self { root: root.to_owned(), common_dir: common_dir.to_owned(), files, known: Mutex::default() }
    }

    /// What the settings in this folder, or in this git folder, follow from now; `None` if Liza cannot tell.
    pub(crate) fn source(&self, folder: &Path, git_dir: Option<&Path>) -> Option<Source> {
        let whose = match git_dir {
            None if folder == self.root => Whose::Project,
            None => return None,
            Some(git_dir) => self.whose(git_dir)?,
        };
        let contents = self.files.iter().map(|file| content(file)).collect::<Option<_>>()?;
        Some(Source { whose, contents })
    }

    fn whose(&self, git_dir: &Path) -> Option<Whose> {
        let content = |name: &str| content(&git_dir.join(name));
        if git_dir.parent() != Some(&self.common_dir) || content("config.worktree")?.is_some() {
            return None;
        }
        match (content("commondir")?, content("config")?) {
            (Some(shared), None) if shared == SHARED => Some(Whose::Shared),
            (None, Some(own)) => Some(Whose::Own(own)),
            _ => None,
        }
    }

    pub(crate) fn get(&self, source: &Source, git_dir: Option<&Path>) -> Option<Settings> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, settings) = known.iter().find(|(known, _)| known == source)?;
        let at = |file: &PathBuf| git_dir.map_or_else(|| file.clone(), |folder| folder.join(file));
        Some(Settings { list: settings.list.clone(), files: settings.files.iter().map(at).collect() })
    }

    /// Keeps an answer that follows from nothing else: it includes no file, and has none that Liza does not know.
    pub(crate) fn keep(&self, source: Source, settings: &Settings, git_dir: Option<&Path>) {
        let includes = |key: &[u8]| key.starts_with(b"include.") || key.starts_with(b"includeif.");
        if each_setting(&settings.list).any(|(key, _)| includes(key)) {
            return;
        }
        let mut files = Vec::new();
        for file in &settings.files {
            // The next git folder of this kind has another name.
            match git_dir.and_then(|folder| file.strip_prefix(folder).ok()) {
                Some(inside) => files.push(inside.to_owned()),
                None if self.files.contains(file) => files.push(file.clone()),
                None => return,
            }
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known.whose != source.whose);
        known.truncate(KEPT_MAX - 1);
        known.insert(0, (source, Settings { list: settings.list.clone(), files }));
    }
}

/// The content of a file, if there is one; `None` if that cannot be known.
#[expect(clippy::option_option, reason = "no file is an answer, and no answer is none")]
fn content(file: &Path) -> Option<Option<Vec<u8>>> {
    match fs::read(file) {
        Ok(bytes) => Some(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command::Git;
    use crate::program::repo::Repo;

    struct Disk {
        place: tempfile::TempDir,
        known: KnownSettings,
    }

    impl Disk {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let git = place.path().join("p/.git");
            fs::create_dir_all(git.join("view-1")).unwrap();
            fs::write(git.join("config"), "one").unwrap();
            let environment = GitEnvironment::new(
                [("HOME", place.path()), ("GIT_CONFIG_SYSTEM", Path::new("/none"))]
                    .map(|(name, value)| (name.into(), value.into())),
            );
            let known = KnownSettings::new(&environment, &place.path().join("p"), &git, &git);
            Self { place, known }
        }

        fn write(&self, name: &str, text: &str) {
            let file = self.place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        fn view(&self, number: usize) -> PathBuf {
            self.place.path().join(format!("p/.git/view-{number}"))
        }

        /// The settings as they are kept for a git folder, if at all.
        fn kept(&self, git_dir: Option<&Path>) -> Option<Settings> {
            let source = self.known.source(&self.place.path().join("p"), git_dir)?;
            self.known.get(&source, git_dir)
        }

        fn keep(&self, git_dir: Option<&Path>, list: &str, files: &[PathBuf]) {
            let source = self.known.source(&self.place.path().join("p"), git_dir).unwrap();
            let settings = Settings { list: list.into(), files: files.to_vec() };
            self.known.keep(source, &settings, git_dir);
        }
    }

    const LIST: &str = "local\0core.bare\nfalse\0";

    /// Covers: JU-10
    #[test]
    fn settings_are_listed_again_when_one_of_their_files_changes() {
        for (file, was) in [
            ("p/.git/config", true),
            (".gitconfig", false),
            (".config/git/config", false),
            ("p/.git/config.worktree", false),
        ] {
            let disk = Disk::new();
            disk.keep(None, LIST, &[disk.place.path().join("p/.git/config")]);
            assert!(disk.kept(None).is_some(), "{file}");
            disk.write(file, "two");
            assert_eq!(disk.kept(None), None, "{file}");
            if was {
                disk.write(file, "one");
                assert!(disk.kept(None).is_some(), "as before: {file}");
            }
        }
    }

    /// Covers: JU-10
    #[test]
    fn git_folders_of_one_kind_have_the_same_settings_wherever_they_are() {
        let disk = Disk::new();
        for number in [1, 2] {
            disk.write(&format!("p/.git/view-{number}/config"), "own");
        }
        disk.keep(Some(&disk.view(1)), LIST, &[disk.view(1).join("config")]);
        assert_eq!(disk.kept(Some(&disk.view(2))).unwrap().files, [disk.view(2).join("config")]);
        disk.write("p/.git/view-2/config", "other");
        assert_eq!(disk.kept(Some(&disk.view(2))), None, "its own settings differ");
        fs::remove_file(disk.view(2).join("config")).unwrap();
        disk.write("p/.git/view-2/commondir", "..\n");
        assert_eq!(disk.kept(Some(&disk.view(2))), None, "it has those of the project");
        disk.keep(Some(&disk.view(2)), LIST, &[]);
        assert!(disk.kept(Some(&disk.view(2))).is_some());
        disk.write("p/.git/view-2/config.worktree", "");
        assert_eq!(disk.kept(Some(&disk.view(2))), None, "a program has added a file");
        disk.write("p/.git/view-3/commondir", "../elsewhere\n");
        assert_eq!(disk.kept(Some(&disk.view(3))), None, "it leads elsewhere");
    }

    /// Covers: JU-10
    #[test]
    fn what_follows_from_more_than_known_files_is_listed_each_time() {
        let disk = Disk::new();
        disk.keep(None, "global\0includeif.gitdir:/x.path\nmore\0", &[]);
        assert_eq!(disk.kept(None), None);
        disk.keep(None, "global\0include.path\nmore\0", &[]);
        assert_eq!(disk.kept(None), None);
        disk.keep(None, LIST, &["/opt/etc/gitconfig".into()]);
        assert_eq!(disk.kept(None), None);
        assert_eq!(disk.known.source(disk.place.path(), None), None, "another folder");
    }

    /// Covers: JU-10
    #[test]
    fn a_program_that_the_project_names_later_is_seen_by_the_same_process() {
        let place = tempfile::tempdir().unwrap();
        let git = Git::new();
        git.command("init", place.path()).args(["init", "-q", "p"]).check().unwrap();
        let repo = Repo::open(&git, &place.path().join("p")).unwrap();
        assert!(repo.ignored_programs().unwrap().is_empty());
        repo.command("config").args(["config", "filter.x.clean", "show"]).check().unwrap();
        assert_eq!(repo.ignored_programs().unwrap(), ["filter.x.clean"]);
    }
}
