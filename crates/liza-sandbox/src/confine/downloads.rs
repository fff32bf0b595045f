//! What the person has downloaded with npm, pip and Go, as links in the caches of a session, for the packages that a
//! checkout locks. Runs in the stage after it has restricted itself, like [`super::cargo_home`]; what could not be linked
//! is downloaded.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::untrusted::UntrustedFolder;

const LOCK_MAX: u64 = 8 << 20;

/// The most downloads of pip; they are not named in any file of the checkout.
const PIP_MAX: usize = 20_000;

/// The archives that a lock file names by their hashes. npm compares the hash of what it reads.
pub(super) fn fill_npm(own: &Path, yours: &Path, checkout: &Path) -> io::Result<()> {
    let own = open_own(own)?;
    for text in lock_files(checkout, &["package-lock.json", "npm-shrinkwrap.json"]) {
        for place in text.split('"').flat_map(str::split_whitespace).filter_map(npm_content) {
            let _ = link(&own, yours, &place, Path::is_file);
        }
    }
    Ok(())
}

/// The place of an archive by its hash, such as `sha512-` and the rest in Base64.
fn npm_content(hash: &str) -> Option<PathBuf> {
    let (kind, code) =
        hash.split_once('-').filter(|(kind, _)| ["sha1", "sha256", "sha512"].contains(kind))?;
    let hex: String = from_base64(code)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [hex.get(..2)?, hex.get(2..4)?, hex.get(4..)?];
    Some(parts.iter().fold(Path::new("_cacache/content-v2").join(kind), |path, part| path.join(part)))
}

fn from_base64(code: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0_u32, Vec::new());
    for digit in code.trim_end_matches('=').bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = (bits << 6 | u32::try_from(value).ok()?) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// What Go keeps of each module that `go.sum` names, whose hash it compares; it unpacks that anew. No locks: a program that
/// can open one can hold it.
pub(super) fn fill_go(own: &Path, yours: &Path, checkout: &Path) -> io::Result<()> {
    let own = open_own(own)?;
    for text in lock_files(checkout, &["go.sum", "go.work.sum"]) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(module), Some(version)) = (words.next(), words.next()) else { continue };
            let version = escaped(version.strip_suffix("/go.mod").unwrap_or(version));
            let folder = Path::new("cache/download").join(escaped(module)).join("@v");
            for kind in ["info", "mod", "zip", "ziphash"] {
                let _ = link(&own, yours, &folder.join(format!("{version}.{kind}")), Path::is_file);
            }
        }
    }
    Ok(())
}

/// Capital letters as Go writes them in file names.
fn escaped(name: &str) -> String {
    let escape = |letter: char| match letter.is_ascii_uppercase() {
        true => format!("!{}", letter.to_ascii_lowercase()),
        false => letter.to_string(),
    };
    name.chars().map(escape).collect()
}

/// All answers and wheels: their names say nothing about the package.
pub(super) fn fill_pip(own: &Path, yours: &Path, checkout: &Path) -> io::Result<()> {
    const SIGNS: [&str; 5] = ["pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt"];
    if !SIGNS.iter().any(|name| checkout.join(name).exists()) {
        return Ok(());
    }
    let own = open_own(own)?;
    let mut folders: Vec<PathBuf> = ["http", "http-v2", "wheels"].map(PathBuf::from).into();
    let mut left = PIP_MAX;
    while let Some(folder) = folders.pop() {
        for entry in entries(&yours.join(&folder)) {
            let place = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(place),
                Ok(kind) if kind.is_file() && left > 0 => {
                    left -= 1;
                    let _ = link(&own, yours, &place, Path::is_file);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// A cache of a session. An earlier one may have left links in it, even in its place; the folder above is Liza's.
pub(super) fn open_own(own: &Path) -> io::Result<UntrustedFolder> {
    let (Some(caches), Some(name)) = (own.parent(), own.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    UntrustedFolder::open(caches)?.make_folder(Path::new(name))
}

/// Links to a file or folder of the person, unless the session has one there. Anything else goes: a tool could not replace
/// it, or would wait at a pipe.
pub(super) fn link(
    own: &UntrustedFolder,
    yours: &Path,
    place: &Path,
    is_usable: impl FnOnce(&Path) -> bool,
) -> io::Result<()> {
    let target = yours.join(place);
    match own.link(place) {
        Ok(link) if target == link && target.exists() => return Ok(()),
        Ok(_) => own.remove(place)?,
        // A folder is not removed so.
        Err(_) if own.file(place).is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) => {
            own.remove(place)?;
        }
        Err(_) => {}
    }
    if !is_usable(&target) {
        return Ok(());
    }
    place.parent().map_or(Ok(()), |folder| own.make_folder(folder).map(drop))?;
    own.new_link(place, target.as_os_str())
}

/// The files of these names in a checkout, and in the folders directly below.
pub(super) fn lock_files(checkout: &Path, names: &[&str]) -> Vec<String> {
    let Ok(folder) = UntrustedFolder::open(checkout) else { return Vec::new() };
    let below = entries(checkout).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let folders = [PathBuf::new()].into_iter().chain(below.map(|entry| PathBuf::from(entry.file_name())));
    let files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let texts = files.filter_map(|file| folder.read(&file, LOCK_MAX).ok());
    texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
}

/// What is in a folder; nothing if it cannot be listed.
pub(super) fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

#[cfg(test)]
pub(super) mod tests {
    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    /// Writes a file, with the folders above it.
    pub(in crate::confine) fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Covers: RO-01
    #[test]
    fn what_a_checkout_locks_is_linked_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let [own, yours, checkout] = ["own", "yours", "checkout"].map(|name| place.path().join(name));
        // The bytes 1 to 4, and 5 to 8.
        let (used, other) =
            ("_cacache/content-v2/sha512/01/02/0304", "_cacache/content-v2/sha512/05/06/0708");
        let module = "cache/download/example.com/!mod/@v/v1.0.0";
        for file in
            [used, other, &format!("{module}.zip"), &format!("{module}.mod"), &format!("{module}.lock")]
        {
            write(&yours.join(file), "yours");
        }
        write(&yours.join("http-v2/a/b"), "yours");
        write(&yours.join("selfcheck/x"), "yours");
        write(&checkout.join("web/package-lock.json"), r#"{"a": {"integrity": "sha512-AQIDBA=="}}"#);
        write(&checkout.join("go.sum"), "example.com/Mod v1.0.0/go.mod h1:x=\n");
        let fill = || {
            fill_npm(&own, &yours, &checkout).unwrap();
            fill_go(&own, &yours, &checkout).unwrap();
            fill_pip(&own, &yours, &checkout).unwrap();
        };
        fill();
        let is_link = |file: &str| fs::symlink_metadata(own.join(file)).is_ok_and(|meta| meta.is_symlink());
        assert!(is_link(used) && is_link(&format!("{module}.zip")) && is_link(&format!("{module}.mod")));
        assert!(!is_link(other) && !is_link(&format!("{module}.lock")) && !is_link("http-v2/a/b"));
        write(&checkout.join("pyproject.toml"), "");
        fs::remove_file(yours.join(used)).unwrap();
        fs::remove_file(own.join(format!("{module}.zip"))).unwrap();
        write(&own.join(format!("{module}.zip")), "own");
        fill();
        assert!(is_link("http-v2/a/b") && !is_link("selfcheck/x"));
        // Neither written nor removed through a link that a session left.
        let other = place.path().join("other");
        write(&other.join("kept"), "");
        fs::remove_dir_all(own.join("http-v2")).unwrap();
        std::os::unix::fs::symlink(&other, own.join("http-v2")).unwrap();
        // A tool would wait at a pipe.
        let pipe = format!("{module}.mod");
        fs::remove_file(own.join(&pipe)).unwrap();
        rustix::fs::mknodat(CWD, own.join(&pipe), FileType::Fifo, Mode::RUSR, 0).unwrap();
        fill();
        assert!(is_link(&pipe));
        assert!(is_link("http-v2/a/b") && !is_link("http-v2"));
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
        assert!(!is_link(used), "a link to nothing would be in the way of a download");
        assert_eq!(fs::read_to_string(own.join(format!("{module}.zip"))).unwrap(), "own");
    }
}
