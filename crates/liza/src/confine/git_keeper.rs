//! Between Liza and a git that runs filters among agents' files: adopts what they leave behind, and ends with the last of it.
//!
//! A filter that was led to run a file of an agent could leave a process that goes on writing to the checkout while it is
//! reviewed. Its order stands at the beginning of its standard input; the rest of the input is git's.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sys::confinement::{Grants, restricted};
use crate::sys::family::ProcessFamily;

use super::program_keeper::exit_as;
use super::stage::NOT_STARTED;
use super::start::STAGE;

/// The option of `liza confine` that makes it a keeper of git; the git program and its arguments follow.
const KEEP_GIT: &str = "--keep-git";

/// The longest order that is read.
const LONGEST: u64 = 64 << 20;

/// How git is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GitOrder {
    /// What it may use.
    pub(crate) grants: Grants,
    /// How long it may run.
    pub(crate) limit: Duration,
}

impl GitOrder {
    /// The command that starts a keeper; git's arguments are added to it.
    pub(crate) fn command(liza: &Path, git: &Path) -> Command {
        let mut command = Command::new(liza);
        command.args([STAGE, KEEP_GIT]).arg(git);
        command
    }

    /// The standard input of a keeper whose git reads `input`.
    ///
    /// # Errors
    ///
    /// When a path is not UTF-8.
    pub(crate) fn before(&self, input: &[u8]) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self).map_err(io::Error::other)?;
        let length = u64::try_from(order.len()).map_err(io::Error::other)?;
        Ok([&length.to_le_bytes()[..], &order, input].concat())
    }

    /// Reads an order; nothing of what follows it, which git will read from the same file.
    fn read(input: &mut impl io::Read) -> io::Result<Self> {
        let mut length = [0; 8];
        input.read_exact(&mut length)?;
        let mut order = Vec::new();
        input.take(u64::from_le_bytes(length).min(LONGEST)).read_to_end(&mut order)?;
        serde_json::from_slice(&order).map_err(io::Error::other)
    }
}

/// The git program and its arguments, if these arguments start a keeper of git.
pub(crate) fn kept_git(arguments: &[OsString]) -> Option<&[OsString]> {
    match arguments {
        [_, verb, option, git @ ..] if verb == STAGE && option == KEEP_GIT && !git.is_empty() => Some(git),
        _ => None,
    }
}

/// Runs git by the order that arrives on standard input; returns git's exit code once no process of it is left.
pub(crate) fn serve_git_keeper(git: &[OsString]) -> u8 {
    match start(git) {
        Ok(family) => exit_as(family.wait_for_all()),
        Err(error) => {
            eprintln!("liza: git could not be started: {error}");
            NOT_STARTED
        }
    }
}

fn start(git: &[OsString]) -> io::Result<ProcessFamily> {
    let (program, arguments) = git.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // Not through `io::stdin`, which reads ahead.
    let order = GitOrder::read(&mut File::from(rustix::io::dup(rustix::stdio::stdin())?))?;
    let mut command = Command::new(program);
    command.args(arguments);
    let family = ProcessFamily::spawn_by(&mut command, |git| restricted(&order.grants, || git.spawn()))?;
    // Only git reads the rest.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let kept = family.clone();
    thread::spawn(move || {
        thread::sleep(order.limit);
        kept.kill();
    });
    Ok(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-08
    #[test]
    fn an_order_ends_where_the_input_of_git_begins() {
        let grants = Grants { read: vec!["/usr".into()], ..Grants::default() };
        let order = GitOrder { grants, limit: Duration::from_millis(1500) };
        let bytes = order.before(b"for git\n").unwrap();
        let mut input = bytes.as_slice();
        assert_eq!(GitOrder::read(&mut input).unwrap(), order);
        assert_eq!(input, b"for git\n");
        let mut cut = &bytes[..bytes.len() - 20];
        assert!(GitOrder::read(&mut cut).is_err());
    }

    /// Covers: IS-08
    #[test]
    fn only_its_own_option_makes_a_keeper() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            kept_git(&words("liza confine --keep-git git status")),
            Some(words("git status").as_slice())
        );
        for other in ["liza confine --keep-git", "liza confine", "liza status --keep-git git"] {
            assert_eq!(kept_git(&words(other)), None, "{other}");
        }
    }
}
