//! Everything below a folder except some of it, as a list of paths to grant: rights can only be granted.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::credentials::{CODE, IN_TOOL_FOLDERS, LEVELS_OF_TOOLS};

/// A plan's view of the disk, replaceable in tests.
pub trait Look {
    /// Without links; each with the answer whether it is a folder.
    fn children(&self, folder: &Path) -> Vec<(PathBuf, bool)>;
    /// The resolved path, if it exists.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    fn text(&self, path: &Path) -> Option<String>;

    fn entries(&self, folder: &Path) -> Vec<PathBuf> {
        self.children(folder).into_iter().map(|(path, _)| path).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct DiskLook;

impl Look for DiskLook {
    fn children(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let kinds = entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)));
        // A link could lead to an excluded path; its target is granted by its own name, or not at all.
        kinds.filter(|(_, kind)| !kind.is_symlink()).map(|(path, kind)| (path, kind.is_dir())).collect()
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn text(&self, path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }
}

/// Paths that must not be granted. Each lookup is cheap, since a session waits for its plan.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftOut {
    paths: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    /// Prefixes of names in a folder.
    prefixes: HashMap<PathBuf, Vec<String>>,
    /// The folders above these paths.
    above: HashSet<PathBuf>,
}

impl LeftOut {
    /// Leaves out these names below a folder, and their targets.
    pub(super) fn add(&mut self, look: &dyn Look, folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            match path.to_str().and_then(|text| text.strip_suffix('*')) {
                Some(start) => self.add_prefix(folder, Path::new(start)),
                None => self.add_path(look, &path),
            }
        }
    }

    pub(super) fn add_path(&mut self, look: &dyn Look, path: &Path) {
        for path in look.real(path).filter(|real| real != path).into_iter().chain([path.to_owned()]) {
            self.add_known(&path);
            self.paths.push(path);
        }
    }

    /// Leaves out the settings of tools that are in a folder of tools now, so that a folder without them stays whole. The stage
    /// does not try them: you may grant one.
    pub(super) fn add_settings_of_tools(&mut self, look: &dyn Look, folder: &Path) {
        self.add_below(look, folder, LEVELS_OF_TOOLS);
    }

    fn add_below(&mut self, look: &dyn Look, folder: &Path, levels: usize) {
        if CODE.iter().any(|name| folder.ends_with(name)) {
            return;
        }
        for (entry, is_folder) in look.children(folder) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            let is_named = |pattern: &&str| match pattern.strip_suffix('*') {
                Some(begins) => name.starts_with(begins),
                None => name == **pattern,
            };
            if IN_TOOL_FOLDERS.iter().any(is_named) {
                self.add_known(&entry);
            } else if is_folder && levels > 0 {
                self.add_below(look, &entry, levels - 1);
            }
        }
    }

    fn add_known(&mut self, path: &Path) {
        self.above.extend(path.ancestors().map(Path::to_owned));
        self.known.insert(path.to_owned());
    }

    fn add_prefix(&mut self, folder: &Path, start: &Path) {
        let parent = start.parent().unwrap_or(folder);
        let begins = start.file_name().map(|name| name.to_string_lossy().into_owned());
        self.above.extend(parent.ancestors().map(Path::to_owned));
        self.prefixes.entry(parent.to_owned()).or_default().push(begins.unwrap_or_default());
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn contains(&self, path: &Path) -> bool {
        path.ancestors().any(|part| self.known.contains(part) || self.has_prefix(part))
    }

    fn has_prefix(&self, path: &Path) -> bool {
        let prefixes = path.parent().and_then(|parent| self.prefixes.get(parent));
        prefixes.zip(path.file_name()).is_some_and(|(prefixes, name)| {
            let name = name.to_string_lossy();
            prefixes.iter().any(|begins| name.starts_with(begins.as_str()))
        })
    }

    fn is_below(&self, folder: &Path) -> bool {
        self.above.contains(folder)
    }
}

/// The paths to grant for everything below `folder` except the excluded parts. Files created later in a
/// folder with exceptions are not granted.
pub(super) fn all_but(look: &dyn Look, folder: &Path, left_out: &LeftOut) -> Vec<PathBuf> {
    if left_out.contains(folder) {
        return Vec::new();
    }
    if !left_out.is_below(folder) {
        return vec![folder.to_owned()];
    }
    look.entries(folder).iter().flat_map(|entry| all_but(look, entry, left_out)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A disk that exists in memory only: folders with their entries.
    #[derive(Debug, Default)]
    pub(crate) struct FakeLook {
        pub folders: BTreeMap<PathBuf, Vec<&'static str>>,
        pub links: BTreeMap<PathBuf, PathBuf>,
        pub texts: BTreeMap<PathBuf, String>,
    }

    impl FakeLook {
        pub(crate) fn with(mut self, folder: &str, entries: &[&'static str]) -> Self {
            self.folders.insert(folder.into(), entries.to_vec());
            self
        }
    }

    impl Look for FakeLook {
        fn children(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
            let paths = self.folders.get(folder).into_iter().flatten().map(|name| folder.join(name));
            paths.map(|path| (path.clone(), self.folders.contains_key(&path))).collect()
        }

        fn real(&self, path: &Path) -> Option<PathBuf> {
            Some(self.links.get(path).cloned().unwrap_or_else(|| path.to_owned()))
        }

        fn text(&self, path: &Path) -> Option<String> {
            self.texts.get(path).cloned()
        }
    }

    /// Covers: IS-14
    #[test]
    fn a_folder_with_exceptions_is_granted_entry_by_entry() {
        let look = FakeLook::default()
            .with("/home/a", &[".ssh", ".cargo", "src", ".claude.json.backup"])
            .with("/home/a/.cargo", &["bin", "credentials.toml", "registry"]);
        let mut left_out = LeftOut::default();
        left_out.add(&look, Path::new("/home/a"), &[".ssh", ".cargo/credentials*", ".claude.json*"]);
        let granted = all_but(&look, Path::new("/home/a"), &left_out);
        let expected = ["/home/a/.cargo/bin", "/home/a/.cargo/registry", "/home/a/src"].map(PathBuf::from);
        assert_eq!(granted, expected);
        assert_eq!(all_but(&look, Path::new("/usr"), &left_out), [PathBuf::from("/usr")]);
        assert!(all_but(&look, Path::new("/home/a/.ssh/keys"), &left_out).is_empty());
    }

    /// Covers: IS-14
    #[test]
    fn what_a_credential_links_to_is_left_out_too() {
        let mut look =
            FakeLook::default().with("/home/a", &["dotfiles"]).with("/home/a/dotfiles", &["ssh", "vimrc"]);
        look.links.insert("/home/a/.ssh".into(), "/home/a/dotfiles/ssh".into());
        let mut left_out = LeftOut::default();
        left_out.add(&look, Path::new("/home/a"), &[".ssh"]);
        let granted = all_but(&look, Path::new("/home/a"), &left_out);
        assert_eq!(granted, [PathBuf::from("/home/a/dotfiles/vimrc")]);
    }
}
