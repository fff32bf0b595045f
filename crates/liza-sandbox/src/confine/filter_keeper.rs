//! Runs between git and a filter on agents' files: the filter can turn its input into its output, and nothing
//! else.
//!
//! A filter that is tricked into running an agent's file has all that git has in its room, and git can write
//! to the checkout and its index. So the filter is restricted once more, and its leftover processes are
//! adopted and ended. Its command is in a variable: git puts names of files into a setting, which must not
//! meet our quotes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, getppid, setsid};

use crate::sys::confinement::{Grants, TcpGrants, restricted};
use crate::sys::family::ProcessFamily;

use super::exits::{NOT_STARTED, exit_as};
use super::start::STAGE;
use super::system_folders::{PLAIN_DEVICES, SHARED_MEMORY};

/// The option that makes `liza confine` the keeper of a filter; its number and the file follow.
const FILTER: &str = "--filter";

/// The prefix of variables with folders that filters can write (the first for temporary files) or commands.
const FOLDER: &str = "LIZA_FILTER_FOLDER_";
const COMMAND: &str = "LIZA_FILTER_COMMAND_";

/// The interval at which the keeper checks that git still runs.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptFilters {
    pub settings: Vec<(OsString, OsString)>,
    commands: Vec<OsString>,
}

impl KeptFilters {
    /// Replaces a filter; `is_per_file` if git starts it for each file and may pass the file's name.
    pub fn add(&mut self, liza: &Path, key: &OsStr, command: &OsStr, is_per_file: bool) {
        let file = if is_per_file { " %f" } else { "" };
        let number = self.commands.len();
        let mut keeper = quoted(&escaped(liza.as_os_str()));
        keeper.push(format!(" {STAGE} {FILTER} {number}{file}"));
        self.settings.push((key.to_owned(), keeper));
        self.commands.push(command.to_owned());
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Replaces the keepers in git's messages by the commands of their filters.
    pub fn in_own_words(&self, said: Vec<u8>) -> Vec<u8> {
        let keepers = self.settings.iter().map(|(_, keeper)| keeper.as_bytes());
        // The last one first: the number of another one may begin with its own.
        let pairs = keepers.zip(&self.commands).rev();
        pairs.fold(said, |said, (keeper, command)| replaced(&said, keeper, command.as_bytes()))
    }

    /// The variables that the keepers need; filters write to these folders only, first the temporary one.
    pub fn variables(&self, folders: impl IntoIterator<Item = PathBuf>) -> Vec<(OsString, OsString)> {
        let named = |start: &str, number: usize| OsString::from(format!("{start}{number}"));
        let commands = self.commands.iter().enumerate();
        let commands = commands.map(|(number, command)| (named(COMMAND, number), command.clone()));
        let folders = folders.into_iter().enumerate();
        commands.chain(folders.map(|(number, folder)| (named(FOLDER, number), folder.into()))).collect()
    }
}

/// The number of the filter and the file, if these arguments start a keeper.
pub fn kept_filter(arguments: &[OsString]) -> Option<(&OsStr, Option<&OsStr>)> {
    match arguments {
        [_, verb, option, number, file @ ..] if verb == STAGE && option == FILTER && file.len() < 2 => {
            Some((number, file.first().map(OsString::as_os_str)))
        }
        _ => None,
    }
}

/// Runs a filter; returns its exit code once no process of it is left.
pub fn serve_filter(number: &OsStr, file: Option<&OsStr>) -> u8 {
    match start(number, file) {
        Ok(family) => exit_as(family.wait_for_all()),
        Err(error) => {
            eprintln!("liza: a filter could not be started: {error}");
            NOT_STARTED
        }
    }
}

fn start(number: &OsStr, file: Option<&OsStr>) -> io::Result<ProcessFamily> {
    let missing = || io::Error::other("it is started by git only");
    let name = format!("{COMMAND}{}", number.to_string_lossy());
    let words = std::env::var_os(name).ok_or_else(missing)?;
    let folders = (0..).map_while(|number| std::env::var_os(format!("{FOLDER}{number}")));
    let folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
    let temporary = folders.first().ok_or_else(missing)?;
    let words = file.map_or_else(|| words.clone(), |file| with_file(&words, file));
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(words).env("TMPDIR", temporary);
    let grants = Grants {
        // Everything that git can read: its room already restricts this process.
        read: vec!["/".into()],
        write: folders.into_iter().chain([SHARED_MEMORY.into()]).collect(),
        devices: PLAIN_DEVICES.iter().map(PathBuf::from).collect(),
        network: Some(TcpGrants::default()),
        ..Grants::default()
    };
    // A slow git is killed with its group; the keeper must outlive that, to end the filter.
    let _ = setsid();
    let git = getppid();
    let family = ProcessFamily::spawn_by(&mut command, |filter| restricted(&grants, || filter.spawn()))?;
    // Only the filter reads from git.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    end_with(git, family.clone());
    Ok(family)
}

/// Ends the filter as soon as the process above has ended: git waits for its filters.
fn end_with(git: Option<Pid>, family: ProcessFamily) {
    thread::spawn(move || {
        while getppid() == git {
            thread::sleep(LOOK_PAUSE);
        }
        family.kill();
    });
}

/// Inserts the name of a file into a filter's command, as git does.
fn with_file(command: &OsStr, file: &OsStr) -> OsString {
    let mut rest = command.as_bytes().iter().copied().peekable();
    let mut found = Vec::new();
    while let Some(byte) = rest.next() {
        match (byte, rest.peek()) {
            (b'%', Some(b'%')) => {
                rest.next();
                found.push(b'%');
            }
            (b'%', Some(b'f')) => {
                rest.next();
                found.extend_from_slice(quoted(file).as_bytes());
            }
            _ => found.push(byte),
        }
    }
    OsString::from_vec(found)
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> OsString {
    let mut text = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(*byte),
        }
    }
    text.push(b'\'');
    OsString::from_vec(text)
}

fn replaced(text: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(at) = rest.windows(part.len()).position(|window| window == part) {
        found.extend_from_slice(&rest[..at]);
        found.extend_from_slice(by);
        rest = &rest[at + part.len()..];
    }
    found.extend_from_slice(rest);
    found
}

/// Escapes a path, so that git finds no place for a file's name in it.
fn escaped(path: &OsStr) -> OsString {
    let bytes =
        path.as_bytes().iter().flat_map(|byte| std::iter::repeat_n(*byte, 1 + usize::from(*byte == b'%')));
    OsString::from_vec(bytes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// Covers: IS-08
    #[test]
    fn a_file_is_named_to_a_filter_as_git_would() {
        for (command, file, expected) in [
            ("tool %f", "a b", "tool 'a b'"),
            ("tool --at=%f %%f %x %", "it's", "tool --at='it'\\''s' %f %x %"),
            ("tool", "x", "tool"),
        ] {
            assert_eq!(with_file(command.as_ref(), file.as_ref()), expected, "{command}");
        }
    }

    /// Covers: IS-08
    #[test]
    fn an_error_names_the_filter_and_not_its_keeper() {
        let mut kept = KeptFilters::default();
        for number in 0..11 {
            let (key, command) = (format!("filter.a{number}.process"), format!("tool-{number} --at=%f"));
            kept.add(Path::new("/it's 100%/liza"), key.as_ref(), command.as_ref(), number == 0);
        }
        let keeper = |number: usize| kept.settings[number].1.to_str().unwrap().to_owned();
        let said = format!(
            "no key\nerror: external filter '{}' failed 3\nerror: '{}', '{}'\nfatal: x: clean filter 'a' failed\n",
            keeper(0),
            keeper(1),
            keeper(10)
        );
        let expected = "no key\nerror: external filter 'tool-0 --at=%f' failed 3\n\
                        error: 'tool-1 --at=%f', 'tool-10 --at=%f'\nfatal: x: clean filter 'a' failed\n";
        assert_eq!(String::from_utf8(kept.in_own_words(said.into_bytes())).unwrap(), expected);
    }

    /// Covers: IS-08
    #[test]
    fn a_filter_is_replaced_by_its_keeper() {
        let mut kept = KeptFilters::default();
        assert!(kept.is_empty());
        kept.add(Path::new("/my 100%/liza"), "filter.a.clean".as_ref(), "tool '%f'".as_ref(), true);
        kept.add(Path::new("/liza"), "filter.b.process".as_ref(), "serve".as_ref(), false);
        let pair = |key: &str, value: &str| (OsString::from(key), OsString::from(value));
        let expected = [
            pair("filter.a.clean", "'/my 100%%/liza' confine --filter 0 %f"),
            pair("filter.b.process", "'/liza' confine --filter 1"),
        ];
        assert_eq!(kept.settings, expected);
        let variables = kept.variables(["/view/filters".into(), "/home/me/cache".into()]);
        let expected = [
            pair("LIZA_FILTER_COMMAND_0", "tool '%f'"),
            pair("LIZA_FILTER_COMMAND_1", "serve"),
            pair("LIZA_FILTER_FOLDER_0", "/view/filters"),
            pair("LIZA_FILTER_FOLDER_1", "/home/me/cache"),
        ];
        assert_eq!(variables, expected);
        let started = words("liza confine --filter 0 a");
        assert_eq!(kept_filter(&started), Some(("0".as_ref(), Some("a".as_ref()))));
        let started = words("liza confine --filter 1");
        assert_eq!(kept_filter(&started), Some(("1".as_ref(), None)));
        for other in ["liza confine", "liza confine --filter", "liza confine 1"] {
            assert_eq!(kept_filter(&words(other)), None, "{other}");
        }
    }
}
