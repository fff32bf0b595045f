//! Cargo's home folder of a session, filled with read-only links to the archives and sources that the person
//! has downloaded. Runs in the stage after it has restricted itself, since an earlier session may have left
//! anything there. Cargo downloads whatever could not be linked.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::sys::untrusted::UntrustedFolder;

use super::downloads::{entries, link, lock_files, open_own};

/// The parts of the person's cargo home that sessions read: no credentials, no programs.
pub(super) const READABLE: &[&str] = &["registry", "git", "config.toml", "config"];

/// The parts that no session reads. A program that can open a lock can hold it, and the person's cargo waits.
pub(super) const HIDDEN: &[&str] = &["credentials*", ".package-cache*"];

/// The mark of a completely unpacked package, and its beginning in versions that don't unpack again.
const UNPACKED: &str = ".cargo-ok";
const UNPACKED_BY_NOW: &[u8] = b"{";

/// Fills `own` from `yours` for the packages of a checkout; does nothing in one without. No link that an earlier session
/// left is followed.
pub(super) fn fill(own: &Path, yours: &Path, checkout: &Path) -> io::Result<()> {
    if !has_package(checkout) {
        return Ok(());
    }
    let own = open_own(own)?;
    link_settings(&own, yours, checkout);
    for kind in ["registry/cache", "registry/src"] {
        for registry in entries(&yours.join(kind)) {
            let _ = link_all(&own, &Path::new(kind).join(registry.file_name()), &registry.path(), is_whole);
        }
    }
    let locked = locked_packages(checkout);
    for registry in entries(&yours.join("registry/index")) {
        let at = Path::new("registry/index").join(registry.file_name());
        let _ = copy_index(&own, &at, &registry.path(), &locked);
    }
    for repository in entries(&yours.join("git/db")) {
        let _ =
            borrow_repository(&own, &Path::new("git/db").join(repository.file_name()), &repository.path());
    }
    for repository in entries(&yours.join("git/checkouts")) {
        let at = Path::new("git/checkouts").join(repository.file_name());
        let _ = link_all(&own, &at, &repository.path(), |checkout| checkout.join(UNPACKED).exists());
    }
    Ok(())
}

/// True if a checkout, or a folder directly below, has a package: sessions in others should not wait.
fn has_package(checkout: &Path) -> bool {
    let is_package = |folder: &Path| folder.join("Cargo.toml").exists();
    is_package(checkout) || entries(checkout).any(|entry| is_package(&entry.path()))
}

/// Links to the person's settings, unless cargo finds them above the checkout: it would apply lists in them twice.
fn link_settings(own: &UntrustedFolder, yours: &Path, checkout: &Path) {
    let is_above =
        yours.ends_with(".cargo") && yours.parent().is_some_and(|folder| checkout.starts_with(folder));
    for name in ["config.toml", "config"] {
        let file = yours.join(name);
        if is_above || !file.is_file() {
            continue;
        }
        // A session may have settings of its own here.
        let _ = own.new_link(Path::new(name), file.as_os_str());
    }
}

/// Links to each entry of a folder. Those of an earlier session are looked at too: what they lead to may be gone.
fn link_all(
    own: &UntrustedFolder,
    at: &Path,
    yours: &Path,
    is_usable: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    let own = own.make_folder(at)?;
    let earlier = own.entries()?.into_iter().map(|(name, _)| name);
    let names: HashSet<OsString> = earlier.chain(entries(yours).map(|entry| entry.file_name())).collect();
    for name in names {
        // Another session of the role can be faster.
        let _ = link(&own, yours, Path::new(&name), &is_usable);
    }
    Ok(())
}

/// True for a non-empty archive or a completely unpacked package: cargo would write to others.
fn is_whole(download: &Path) -> bool {
    let mark = download.join(UNPACKED);
    match download.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::read(mark).is_ok_and(|mark| mark.starts_with(UNPACKED_BY_NOW)),
        Ok(meta) => meta.is_file() && meta.len() > 0,
        Err(_) => false,
    }
}

/// Copies the index of a registry for the packages that the checkout uses, which cargo updates; links the rest.
fn copy_index(own: &UntrustedFolder, at: &Path, yours: &Path, locked: &HashSet<String>) -> io::Result<()> {
    if yours.join(".git").exists() {
        // A repository instead of files; cargo fetches it.
        return Ok(());
    }
    let own = own.make_folder(at)?;
    copy_new(&own, Path::new("config.json"), &yours.join("config.json"))?;
    copy_packages(&own.make_folder(Path::new(".cache"))?, &yours.join(".cache"), locked)
}

fn copy_packages(own: &UntrustedFolder, yours: &Path, locked: &HashSet<String>) -> io::Result<()> {
    for entry in entries(yours) {
        let name = entry.file_name();
        let at = Path::new(&name);
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy_packages(&own.make_folder(at)?, &entry.path(), locked)?;
        } else if name.to_str().is_some_and(|name| locked.contains(name)) {
            copy_new(own, at, &entry.path())?;
        } else {
            // It exists in every session but the first.
            let _ = own.new_link(at, entry.path().as_os_str());
        }
    }
    Ok(())
}

/// Copies a file unless it exists; replaces a link.
fn copy_new(own: &UntrustedFolder, at: &Path, yours: &Path) -> io::Result<()> {
    if !yours.is_file() {
        return Ok(());
    }
    if own.link(at).is_ok() {
        own.remove(at)?;
    }
    match own.new_file(at) {
        Ok(mut copy) => io::copy(&mut File::open(yours)?, &mut copy).map(drop),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a repository that borrows the person's objects: cargo can fetch into it.
fn borrow_repository(own: &UntrustedFolder, at: &Path, yours: &Path) -> io::Result<()> {
    if own.folder(at).is_ok() {
        return Ok(());
    }
    let own = own.make_folder(at)?;
    own.make_folder(Path::new("objects/info"))?;
    let objects = yours.join("objects").into_os_string();
    own.write(Path::new("objects/info/alternates"), &[objects.as_encoded_bytes(), b"\n"].concat())?;
    copy_new(&own, Path::new("packed-refs"), &yours.join("packed-refs"))?;
    copy_tree(&own.make_folder(Path::new("refs"))?, &yours.join("refs"))?;
    copy_new(&own, Path::new("config"), &yours.join("config"))?;
    // Last: without HEAD this is no repository, and cargo makes another one.
    copy_new(&own, Path::new("HEAD"), &yours.join("HEAD"))
}

fn copy_tree(own: &UntrustedFolder, yours: &Path) -> io::Result<()> {
    for entry in entries(yours) {
        let name = entry.file_name();
        match entry.file_type()?.is_dir() {
            true => copy_tree(&own.make_folder(Path::new(&name))?, &entry.path())?,
            false => copy_new(own, Path::new(&name), &entry.path())?,
        }
    }
    Ok(())
}

/// The names of the packages in the `Cargo.lock` of a checkout, or of the folders directly below.
fn locked_packages(checkout: &Path) -> HashSet<String> {
    lock_files(checkout, &["Cargo.lock"]).iter().flat_map(|text| names_in(text)).collect()
}

/// The names in the text of a `Cargo.lock`; an index has them in lower case.
fn names_in(lock: &str) -> Vec<String> {
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    names.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::downloads::tests::write;
    use super::*;

    /// Covers: RO-01
    #[test]
    fn whole_downloads_are_linked_and_the_index_of_used_packages_is_copied() {
        let place = tempfile::tempdir().unwrap();
        let (own, yours, checkout) = ("own", "yours", "checkout");
        let [own, yours, checkout] = [own, yours, checkout].map(|name| place.path().join(name));
        for (file, text) in [
            ("registry/cache/host/a-1.crate", "archive"),
            ("registry/cache/host/empty-1.crate", ""),
            ("registry/src/host/a-1/.cargo-ok", "{\"v\":1}"),
            ("registry/src/host/old-1/.cargo-ok", "ok"),
            ("registry/src/host/half-1/src/lib.rs", ""),
            ("registry/index/host/config.json", "{}"),
            ("registry/index/host/.cache/1/a", "a"),
            ("registry/index/host/.cache/1/b", "b"),
            ("git/db/c-1/HEAD", "ref: refs/heads/main\n"),
            ("git/db/c-1/refs/remotes/origin/main", "0"),
            ("git/checkouts/c-1/abc/.cargo-ok", ""),
            ("git/checkouts/c-1/def/lib.rs", ""),
            ("config.toml", "[net]\n"),
            ("credentials.toml", "token"),
        ] {
            write(&yours.join(file), text);
        }
        fill(&own, &yours, &checkout).unwrap();
        assert!(!own.exists(), "there is no package");
        write(&checkout.join("backend/Cargo.toml"), "");
        write(&checkout.join("backend/Cargo.lock"), "[[package]]\nname = \"A\"\nversion = \"1.0.0\"\n");
        fill(&own, &yours, &checkout).unwrap();
        let kind = |file: &str| {
            fs::symlink_metadata(own.join(file))
                .ok()
                .map(|meta| if meta.is_symlink() { "link" } else { "own" })
        };
        for file in
            ["registry/cache/host/a-1.crate", "registry/src/host/a-1", "git/checkouts/c-1/abc", "config.toml"]
        {
            assert_eq!(kind(file), Some("link"), "{file}");
        }
        let missing = ["cache/host/empty-1.crate", "src/host/old-1", "src/host/half-1"];
        for file in missing.map(|file| format!("registry/{file}")) {
            assert_eq!(kind(&file), None, "{file}");
        }
        assert_eq!((kind("git/checkouts/c-1/def"), kind("credentials.toml")), (None, None));
        let index = |name: &str| kind(&format!("registry/index/host/.cache/1/{name}"));
        assert_eq!(
            (index("a"), index("b"), kind("registry/index/host/config.json")),
            (Some("own"), Some("link"), Some("own"))
        );
        assert_eq!(
            (kind("git/db/c-1/HEAD"), kind("git/db/c-1/refs/remotes/origin/main")),
            (Some("own"), Some("own"))
        );
        let borrowed = fs::read_to_string(own.join("git/db/c-1/objects/info/alternates")).unwrap();
        assert_eq!(borrowed.trim(), yours.join("git/db/c-1/objects").to_str().unwrap());
        // The person removes a file, and a session has changed another.
        fs::remove_file(yours.join("registry/cache/host/a-1.crate")).unwrap();
        write(&own.join("registry/index/host/.cache/1/a"), "newer");
        fill(&own, &yours, &checkout).unwrap();
        assert_eq!(kind("registry/cache/host/a-1.crate"), None);
        assert_eq!(fs::read_to_string(own.join("registry/index/host/.cache/1/a")).unwrap(), "newer");
    }

    /// Covers: RO-01
    #[test]
    fn nothing_is_written_or_removed_through_a_link_that_an_earlier_session_left() {
        let place = tempfile::tempdir().unwrap();
        let [own, yours, checkout, other] =
            ["own", "yours", "checkout", "other"].map(|name| place.path().join(name));
        for file in [
            "src/host/a-1/.cargo-ok",
            "cache/host/a-1.crate",
            "index/host/config.json",
            "index/host/.cache/1/a",
        ] {
            write(&yours.join("registry").join(file), "{}");
        }
        write(&yours.join("git/db/c-1/HEAD"), "ref: refs/heads/main\n");
        write(&checkout.join("Cargo.toml"), "");
        write(&checkout.join("Cargo.lock"), "name = \"a\"\n");
        write(&other.join("kept"), "");
        symlink("gone", other.join("dead")).unwrap();
        for place in ["registry/src/host", "registry/cache/host", "registry/index/host", "git/db"] {
            fs::create_dir_all(own.join(place).parent().unwrap()).unwrap();
            symlink(&other, own.join(place)).unwrap();
        }
        let left = || {
            let mut names: Vec<OsString> = entries(&other).map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        fill(&own, &yours, &checkout).unwrap();
        assert_eq!(left(), ["dead", "kept"]);
        let made = [
            "registry/src/host/a-1",
            "registry/cache/host/a-1.crate",
            "registry/index/host/.cache/1/a",
            "git/db/c-1/HEAD",
        ];
        for made in made {
            assert!(own.join(made).exists(), "{made}");
        }
        // One below, where a file is written, and the home itself.
        for file in ["config.json", ".cache/1/a"] {
            let at = own.join("registry/index/host").join(file);
            fs::remove_file(&at).unwrap();
            symlink(other.join("planted"), at).unwrap();
        }
        fill(&own, &yours, &checkout).unwrap();
        fs::remove_dir_all(&own).unwrap();
        symlink(&other, &own).unwrap();
        fill(&own, &yours, &checkout).unwrap();
        assert_eq!(left(), ["dead", "kept"]);
    }

    /// Covers: RO-01
    #[test]
    fn settings_that_cargo_finds_above_the_checkout_are_not_linked() {
        let place = tempfile::tempdir().unwrap();
        let (own, yours) = (place.path().join("own"), place.path().join(".cargo"));
        write(&yours.join("config.toml"), "[net]\n");
        let elsewhere = tempfile::tempdir().unwrap();
        let project = place.path().join("project");
        write(&project.join("Cargo.toml"), "");
        write(&elsewhere.path().join("Cargo.toml"), "");
        fill(&own, &yours, &project).unwrap();
        assert!(own.exists() && !own.join("config.toml").exists());
        fill(&own, &yours, elsewhere.path()).unwrap();
        assert!(own.join("config.toml").exists());
    }
}
