//! A git folder that shares the repository's objects and nothing else: no configuration, attributes, hooks or
//! refs. Merges are computed in it, so that nothing planted in the repository takes part.

use std::fs;
use std::path::PathBuf;

use liza_ids::Sha;

use crate::diff::objects::{Object, ObjectQuery};
use crate::program::borrowed_git_dir::BorrowedGitDir;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::output::GitOutput;
use crate::program::repo::{Repo, path, sha};

/// The prefix of these folders in the repository's git folder.
pub(crate) const ISOLATED: &str = "liza-merge-";

/// The settings of a partial clone, without which missing objects cannot be fetched.
const PARTIAL_CLONE: &str = r"^(extensions\.partialclone|remote\..*\.(url|promisor|partialclonefilter))$";

/// A file that is added to a renamed folder is a conflict and does not move: the work decides no path of the other side.
const RENAMES: &str = "[merge]\n\tdirectoryRenames = conflict\n";

/// The two commits of a merge, and the commits at which their histories part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeParents<'a> {
    /// The commit of the branch.
    pub into: &'a Sha,
    pub commit: &'a Sha,
    pub bases: &'a [Sha],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeTrees {
    pub into: Sha,
    pub commit: Sha,
    pub bases: Vec<Sha>,
}

/// The result of git's own merge.
#[derive(Debug)]
pub(crate) struct ComputedMerge {
    /// The merged files, with marks where they conflict.
    pub tree: Sha,
    pub trees: MergeTrees,
    pub is_clean: bool,
    pub conflicts: Vec<PathBuf>,
}

/// Deleted on drop.
pub(crate) struct IsolatedRepo<'a>(BorrowedGitDir<'a>);

impl Repo {
    /// Creates an isolated git folder for a merge; also returns the trees that take part. Only the attributes
    /// in the root of the branch apply, with drivers that are built in, global, or accepted.
    pub(crate) fn isolated(
        &self,
        parents: &MergeParents<'_>,
    ) -> Result<(IsolatedRepo<'_>, MergeTrees), GitError> {
        let settings = format!("{RENAMES}{}", self.accepted_drivers());
        let isolated = IsolatedRepo::create(self, parents.into, &settings)?;
        let trees = isolated.read_trees(parents)?;
        Ok((isolated, trees))
    }

    /// Git's own merge; `None` if the histories have nothing in common.
    pub(crate) fn compute_merge(
        &self,
        parents: &MergeParents<'_>,
    ) -> Result<Option<ComputedMerge>, GitError> {
        let (isolated, trees) = self.isolated(parents)?;
        let command = isolated
            .command("computing a merge")
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args([parents.into.as_str(), parents.commit.as_str()])
            .limit(TREE_LIMIT);
        let GitOutput { status, stdout, .. } = &command.run().and_then(|output| match output.status {
            Some(0 | 1) => Ok(output),
            _ if output.message().contains("unrelated histories") => Ok(GitOutput { status: None, ..output }),
            _ => Err(command.failed(&output)),
        })?;
        let mut fields = stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        match (status, fields.next().and_then(sha)) {
            (None, _) => Ok(None),
            (Some(status), Some(tree)) => {
                let conflicts = fields.map(path).collect();
                Ok(Some(ComputedMerge { tree, trees, is_clean: *status == 0, conflicts }))
            }
            (Some(_), None) => Err(command.unexpected(stdout)),
        }
    }

    /// Creates an isolated git folder for merges without attributes or programs.
    pub(crate) fn isolated_for_merges(&self, commit: &Sha) -> Result<IsolatedRepo<'_>, GitError> {
        IsolatedRepo::create(self, commit, RENAMES)
    }

    /// Creates an isolated git folder without attributes or programs, to compare or build trees in its format.
    pub(crate) fn isolated_from_settings(&self, commit: &Sha) -> Result<IsolatedRepo<'_>, GitError> {
        IsolatedRepo::create(self, commit, "")
    }

    /// The accepted merge drivers, as lines of a configuration file.
    fn accepted_drivers(&self) -> String {
        let place = self.accepted();
        let accepted = place.read();
        let drivers = accepted.iter().filter(|setting| setting.key.starts_with(b"merge."));
        let drivers = drivers.filter(|setting| place.may_run(setting, &accepted));
        let lines = drivers.filter_map(|setting| {
            let text = (std::str::from_utf8(&setting.key).ok()?, std::str::from_utf8(&setting.value).ok()?);
            Some(setting_lines(text))
        });
        lines.collect()
    }

    /// As lines of a configuration file; usually none.
    fn partial_clone(&self) -> Result<String, GitError> {
        // Git reads this setting from this file only, and a name in it cannot be written in any other way.
        let file = fs::read(self.common_dir().join("config")).unwrap_or_default();
        if !String::from_utf8_lossy(&file).to_ascii_lowercase().contains("partialclone") {
            return Ok(String::new());
        }
        let command = self.command("looking for a partial clone");
        let output = command.args(["config", "--local", "-z", "--get-regexp", PARTIAL_CLONE]).run()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains("extensions.partialclone\n") {
            return Ok(String::new());
        }
        Ok(text.split('\0').filter_map(|entry| entry.split_once('\n')).map(setting_lines).collect())
    }
}

impl<'a> IsolatedRepo<'a> {
    /// Makes a git folder with these settings and those without which its objects cannot be read.
    fn create(repo: &'a Repo, commit: &Sha, settings: &str) -> Result<Self, GitError> {
        let folder = BorrowedGitDir::create(repo, ISOLATED, "preparing a merge", None)?;
        let config = format!("{}{}{settings}", format_settings(commit), repo.partial_clone()?);
        folder.make_folder("refs")?;
        folder.write("config", config.as_bytes())?;
        Ok(Self(folder))
    }

    /// Reads the trees of a merge, and takes the attributes in the root of the branch.
    fn read_trees(&self, parents: &MergeParents<'_>) -> Result<MergeTrees, GitError> {
        let commits = [parents.into, parents.commit].into_iter().chain(parents.bases);
        let trees: Vec<String> = commits.map(|commit| format!("{commit}^{{tree}}")).collect();
        let file = format!("{}:.gitattributes", parents.into);
        let queries = trees.iter().map(|tree| ObjectQuery::Name(tree));
        let queries: Vec<ObjectQuery<'_>> = queries.chain([ObjectQuery::Content(&file)]).collect();
        let mut objects = self.command("reading the commits of a merge").read_objects(&queries)?;
        if let Some(attributes) = objects.pop().flatten().filter(|object| object.kind == "blob") {
            self.0.write("info/attributes", &attributes.content)?;
        }
        let missing = |expression: &str| GitError::UnknownCommit {
            name: expression.trim_end_matches("^{tree}").to_owned(),
            message: "its files are missing".to_owned(),
        };
        let name = |(object, expression): (Option<Object>, &String)| {
            object.map(|object| object.name).ok_or_else(|| missing(expression))
        };
        let mut names = objects.into_iter().zip(&trees).map(name).collect::<Result<Vec<_>, _>>()?;
        let bases = names.split_off(2);
        match <[Sha; 2]>::try_from(names) {
            Ok([into, commit]) => Ok(MergeTrees { into, commit, bases }),
            Err(_) => Err(missing(parents.into.as_str())),
        }
    }

    pub(crate) fn command(&self, action: &str) -> GitCommand {
        let common = self.0.repo().common_dir();
        let command = self.0.command_in(action, self.0.path());
        let command = command.env("GIT_OBJECT_DIRECTORY", common.join("objects"));
        let shallow = common.join("shallow");
        if shallow.exists() { command.env("GIT_SHALLOW_FILE", shallow) } else { command }
    }
}

/// The settings for the format of the objects.
pub(crate) fn format_settings(commit: &Sha) -> String {
    let format = if commit.as_str().len() == 64 { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
    format!("[core]\n\trepositoryformatversion = 1\n\tbare = true\n{format}")
}

/// A setting as a section of a configuration file.
pub(crate) fn setting_lines((key, value): (&str, &str)) -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let head = match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{}\"]", quote(sub)),
        None => format!("[{section}]"),
    };
    format!("{head}\n\t{name} = \"{}\"\n", quote(value))
}
