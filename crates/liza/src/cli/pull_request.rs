//! Opens a pull request with the program of the forge, `gh` or `glab`, which has the person's login. Knows
//! nothing of goals; gets title and text.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use liza_sandbox::sys::find_program_in;
use liza_sandbox::sys::process::wait_until;

/// The longest time for the program; it asks a server.
const LIMIT: Duration = Duration::from_secs(120);

/// A program that opens pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forge {
    kind: ForgeKind,
    program: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForgeKind {
    GitHub,
    GitLab,
}

#[derive(Debug)]
pub(crate) struct PullRequest<'a> {
    /// The branch that it should be merged into.
    pub(crate) base: &'a str,
    /// The branch with the commits.
    pub(crate) head: &'a str,
    pub(crate) title: &'a str,
    /// The description, as Markdown.
    pub(crate) body: &'a str,
}

impl ForgeKind {
    fn program(self) -> &'static str {
        match self {
            ForgeKind::GitHub => "gh",
            ForgeKind::GitLab => "glab",
        }
    }
}

impl Forge {
    /// The installed program that fits the address of a remote; none if there is none.
    pub(crate) fn for_remote(url: &str, search_path: &OsStr) -> Option<Self> {
        let order = match url.contains("gitlab") {
            true => [ForgeKind::GitLab, ForgeKind::GitHub],
            false => [ForgeKind::GitHub, ForgeKind::GitLab],
        };
        let find =
            |kind: ForgeKind| Some(Self { kind, program: find_program_in(kind.program(), search_path)? });
        order.into_iter().find_map(find)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.kind.program()
    }

    pub(crate) fn arguments<'a>(&self, request: &PullRequest<'a>) -> Vec<&'a str> {
        let PullRequest { base, head, title, body } = *request;
        match self.kind {
            ForgeKind::GitHub => {
                vec!["pr", "create", "--base", base, "--head", head, "--title", title, "--body", body]
            }
            ForgeKind::GitLab => vec![
                "mr",
                "create",
                "--target-branch",
                base,
                "--source-branch",
                head,
                "--title",
                title,
                "--description",
                body,
                "--yes",
            ],
        }
    }

    /// Opens it. Returns the output of the program, normally the address.
    pub(crate) fn open(&self, folder: &Path, request: &PullRequest<'_>) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments(request)).current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| format!("{} cannot start: {error}", self.name());
        let mut child = command.spawn().map_err(failed)?;
        if wait_until(&mut child, Instant::now() + LIMIT).map_err(failed)?.is_none() {
            let _ = child.kill();
            return Err(format!("{} did not answer within {} s", self.name(), LIMIT.as_secs()));
        }
        let output = child.wait_with_output().map_err(failed)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = match text(&output.stderr) {
            empty if empty.is_empty() => output.status.to_string(),
            said => said,
        };
        // A person may have opened it after an earlier try.
        if said.contains("already exists") {
            return Ok(said);
        }
        Err(format!("{} refused: {said}", self.name()))
    }
}
