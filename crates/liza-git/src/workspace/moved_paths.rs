//! The paths in a copied folder of dependencies: where the original names the person's checkout, the copy names the checkout
//! that it is in. So an editable install, the first line of a program and the settings of a build lead to the code under test.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use memchr::{memchr, memmem};

/// Larger files are data, and copied as they are.
const TEXT_MAX: u64 = 4 << 20;

pub struct MovedPaths {
    from: PathBuf,
    to: PathBuf,
}

impl MovedPaths {
    pub fn new(root: &Path, checkout: &Path) -> Self {
        Self { from: root.to_owned(), to: checkout.to_owned() }
    }

    /// The text of a file as it is in the copy; `None` if it is copied as it is: it names nothing of the checkout, or has
    /// places and lengths that must not change.
    pub fn text_of(&self, file: &Path, length: u64) -> Option<Vec<u8>> {
        // The copy reports a file that cannot be read.
        let text = (length <= TEXT_MAX).then(|| fs::read(file).ok())??;
        self.in_text(&text)
    }

    fn in_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        let from = self.from.as_os_str().as_bytes();
        let is_whole = |at: &usize| is_whole_path(text, *at, at + from.len());
        let found: Vec<usize> = memmem::find_iter(text, from).filter(is_whole).collect();
        if found.is_empty() || memchr(0, text).is_some() {
            return None;
        }
        let mut moved = Vec::with_capacity(text.len());
        let mut done = 0;
        for at in found {
            moved.extend_from_slice(&text[done..at]);
            moved.extend_from_slice(self.to.as_os_str().as_bytes());
            done = at + from.len();
        }
        moved.extend_from_slice(&text[done..]);
        Some(moved)
    }

    /// The target of a link in the copy.
    pub fn target_of(&self, target: PathBuf) -> PathBuf {
        let moved = self.in_text(target.as_os_str().as_bytes());
        moved.map_or(target, |moved| OsString::from_vec(moved).into())
    }

    /// A file of a Python environment that still leads into the person's checkout, by a path that is not moved, and that path.
    pub fn leading_back(&self, environment: &Path) -> Option<(PathBuf, PathBuf)> {
        // Where a room shows it, there may be nothing outside.
        let checkout = self.to.canonicalize().unwrap_or_else(|_| self.to.clone());
        let is_outside =
            |(_, place): &(_, PathBuf)| place.canonicalize().is_ok_and(|place| !place.starts_with(&checkout));
        links_into(environment, &self.from).into_iter().find(is_outside)
    }
}

/// The files by which a Python environment imports code from below a folder, each with the place that it names.
pub fn links_into(environment: &Path, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let versions = entries(&environment.join("lib")).map(|version| version.join("site-packages"));
    let files = versions.flat_map(|packages| entries(&packages)).filter(|file| is_import_link(file));
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_inside = |place: &PathBuf| {
        place.is_absolute() && place.canonicalize().is_ok_and(|place| place.starts_with(&real))
    };
    let links = files.flat_map(|file| {
        let text = fs::read(&file).unwrap_or_default();
        let words =
            text.split(|byte| b"'\"\n".contains(byte)).map(|word| OsStr::from_bytes(word.trim_ascii()));
        let places: Vec<PathBuf> = words.map(PathBuf::from).filter(is_inside).collect();
        places.into_iter().map(move |place| (file.clone(), place))
    });
    links.collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// True for a file by which an environment imports code that lies elsewhere.
fn is_import_link(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_finder = name.contains("editable") && name.ends_with(".py");
    is_finder || name.ends_with(".pth") || name.ends_with(".egg-link")
}

/// True unless the place is a part of another path: `/home/ada/shop` in `/home/ada/shop-2` or in `/backup/home/ada/shop`.
fn is_whole_path(text: &[u8], start: usize, end: usize) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+@~%".contains(byte) || *byte >= 0x80;
    let name_before = text[..start].iter().rev().take_while(|byte| is_name(byte)).last();
    // An option may be directly before it: -I/home/ada/shop/include.
    name_before.is_none_or(|first| *first == b'-') && !text.get(end).is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SE-08
    #[test]
    fn a_copied_text_names_the_checkout_that_it_is_in() {
        let moved = MovedPaths::new(Path::new("/home/ada/shop"), Path::new("/home/ada/shop/.worktrees/one"));
        let cases = [
            ("/home/ada/shop/src\n", Some("/home/ada/shop/.worktrees/one/src\n")),
            ("#!/home/ada/shop/.venv/bin/python", Some("#!/home/ada/shop/.worktrees/one/.venv/bin/python")),
            ("M = {'a': '/home/ada/shop'}", Some("M = {'a': '/home/ada/shop/.worktrees/one'}")),
            ("file:///home/ada/shop", Some("file:///home/ada/shop/.worktrees/one")),
            ("-I/home/ada/shop/include", Some("-I/home/ada/shop/.worktrees/one/include")),
            ("/home/ada/shop-2/src and /home/ada/shop.bak", None),
            ("/backup/home/ada/shop", None),
            ("/home/ada/shop\0/home", None),
            ("nothing", None),
        ];
        for (text, expected) in cases {
            let found = moved.in_text(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert_eq!(moved.target_of("../lib".into()), Path::new("../lib"));
        assert_eq!(
            moved.target_of("/home/ada/shop/lib".into()),
            Path::new("/home/ada/shop/.worktrees/one/lib")
        );
    }
}
