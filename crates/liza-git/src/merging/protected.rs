//! The protected files of a tree: those that match the gate's patterns, and the targets of their links. Makes
//! the tree on which a merge is judged, without a checkout, so no attribute, filter or line end takes part.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use liza_ids::Sha;
use liza_ids::gate::{GatePatterns, Protection, fold};

use crate::diff::tree_changes::TreeEntry;
use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::repo::{Repo, path, sha};
use crate::workspace::rescue::as_liza;

pub(crate) const SCRIPT: &str = "scripts/integration-test.sh";

/// The number of links that are followed before a tree counts as leading out.
const LINKS_MAX: usize = 1_000;

/// The entries of a tree: files, links and submodules.
pub(crate) type Tree = BTreeMap<PathBuf, TreeEntry>;

#[derive(Debug, Default)]
pub struct Protected {
    tree: Tree,
    entries: Tree,
    /// The files that the gate runs from.
    runs: BTreeSet<PathBuf>,
    /// Protected only because a link leads to them.
    targets: BTreeSet<PathBuf>,
    /// Links that lead out of the repository, or in circles.
    outside: BTreeSet<PathBuf>,
    /// Paths that a file system may take for a protected one.
    ambiguous: BTreeSet<PathBuf>,
}

impl Protected {
    /// True if a merge with these files changes those of the integration branch.
    pub fn changes(&self, before: &Protected) -> bool {
        self.entries != before.entries || !self.ambiguous.is_empty()
    }

    /// The files that differ, as text.
    pub fn differing(&self, before: &Protected) -> Vec<String> {
        let differs = |path: &&PathBuf| self.entries.get(*path) != before.entries.get(*path);
        let paths: BTreeSet<&PathBuf> = self.entries.keys().chain(before.entries.keys()).collect();
        let paths = paths.into_iter().filter(differs).chain(&self.ambiguous);
        paths.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// A link that leads out of the repository, and did not before.
    pub fn new_outside(&self, before: &Protected) -> Option<&Path> {
        let is_new = |path: &&PathBuf| self.entries.get(*path) != before.entries.get(*path);
        self.outside.iter().find(is_new).map(PathBuf::as_path)
    }

    pub fn has_test(&self) -> bool {
        self.tree.get(Path::new(SCRIPT)).is_some_and(|entry| !entry.is_submodule())
    }

    /// The protected files, and whether the gate runs from each.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &TreeEntry, bool)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry, self.runs.contains(path)))
    }

    /// The names at the top of the tree and one folder below it.
    pub fn near_the_top(&self) -> impl Iterator<Item = &str> {
        let near = self.tree.keys().filter(|path| path.components().count() <= 2);
        near.filter_map(|path| path.to_str())
    }

    /// True if the entry itself is matched, or is on the way to a match.
    fn is_matched(&self, path: &Path) -> bool {
        self.entries.contains_key(path) && !self.targets.contains(path)
    }

    fn listing(&self) -> Vec<u8> {
        let line = |(path, entry): (&PathBuf, &TreeEntry)| {
            let head = format!("{} {}\t", entry.mode, entry.object);
            [head.as_bytes(), path.as_os_str().as_bytes(), b"\0"].concat()
        };
        self.entries.iter().flat_map(line).collect()
    }
}

impl Repo {
    pub fn protected(&self, commit: &Sha, patterns: &GatePatterns) -> Result<Protected, GitError> {
        let mut search = Search { repo: self, patterns, found: Protected::default(), links: Vec::new() };
        search.found.tree = self.tree_entries(commit)?;
        search.match_paths();
        search.follow_links()?;
        search.find_ambiguous();
        Ok(search.found)
    }

    /// A name for exactly these protected files.
    pub fn digest(&self, protected: &Protected) -> Result<String, GitError> {
        Ok(self.blob_id(&protected.listing())?.to_string())
    }

    /// The commit on which work is judged: its own with the protected files of the integration branch.
    pub fn judged_commit(
        &self,
        commit: &Sha,
        before: &Protected,
        after: &Protected,
    ) -> Result<Sha, GitError> {
        let zero = "0".repeat(commit.as_str().len());
        let mut lines = Vec::new();
        let mut line = |head: String, path: &Path| {
            lines.extend_from_slice(format!("{head}\t").as_bytes());
            lines.extend_from_slice(path.as_os_str().as_bytes());
            lines.push(0);
        };
        for path in after.tree.keys().filter(|path| after.is_matched(path) || before.is_in_the_way(path)) {
            line(format!("0 {zero}"), path);
        }
        for (path, entry) in &before.entries {
            line(format!("{} {}", entry.mode, entry.object), path);
        }
        let isolated = self.isolated_from_settings(commit)?;
        let command = |words: &[&str]| isolated.command("preparing the test").args(words).limit(TREE_LIMIT);
        command(&["read-tree", commit.as_str()]).check()?;
        command(&["update-index", "-z", "--index-info"]).stdin(lines).check()?;
        let tree = command(&["write-tree"]).read_with(sha)?;
        let message = "The work with the protected files of the integration branch\n";
        as_liza(isolated.command("preparing the test")).commit(
            message,
            &tree,
            std::slice::from_ref(commit),
            &[],
        )
    }

    pub(crate) fn tree_entries(&self, commit: &Sha) -> Result<Tree, GitError> {
        let command = self.command("listing a tree").args(["ls-tree", "-r", "-z", "--full-tree"]);
        let command = command.arg(self.full_hash(commit)?.as_str()).limit(TREE_LIMIT);
        let output = self.ask(&command)?;
        let entries = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        entries.map(parse_entry).collect::<Option<Tree>>().ok_or_else(|| command.unexpected(&output))
    }
}

impl Protected {
    /// True if a file of another tree is in the place of a folder of these, or the other way round.
    fn is_in_the_way(&self, other: &Path) -> bool {
        let below = self.entries.range(other.to_owned()..).find(|(path, _)| *path != other);
        below.is_some_and(|(path, _)| path.starts_with(other))
            || other.ancestors().skip(1).any(|parent| self.entries.contains_key(parent))
    }
}

/// An entry of `ls-tree`: `100644 blob OBJECT\tpath`.
fn parse_entry(entry: &[u8]) -> Option<(PathBuf, TreeEntry)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&entry[..tab]).ok()?;
    let [mode, _, object] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some((path(&entry[tab + 1..]), TreeEntry { mode: mode.to_owned(), object: object.to_owned() }))
}

/// A link to follow: the path under which it is reached, its own path, and its protection.
struct LinkToFollow {
    reached_as: PathBuf,
    link: PathBuf,
}

struct Search<'a> {
    repo: &'a Repo,
    patterns: &'a GatePatterns,
    found: Protected,
    links: Vec<LinkToFollow>,
}

/// The target of a link.
enum Destination {
    Outside,
    Inside(PathBuf),
}

impl Search<'_> {
    fn match_paths(&mut self) {
        let paths: Vec<(PathBuf, TreeEntry)> =
            self.found.tree.iter().map(|(path, entry)| (path.clone(), entry.clone())).collect();
        for (path, entry) in paths {
            let protection = self.patterns.protection(&path.to_string_lossy());
            let leads_on = entry.is_link() || entry.is_submodule();
            let counts = match protection {
                Protection::None => false,
                Protection::OnTheWay => leads_on,
                Protection::Watched | Protection::Runs => true,
            };
            if !counts {
                continue;
            }
            if entry.is_link() {
                self.links.push(LinkToFollow { reached_as: path.clone(), link: path.clone() });
            }
            self.add(&path, protection, false);
        }
    }

    fn add(&mut self, path: &Path, protection: Protection, as_target: bool) {
        let Some(entry) = self.found.tree.get(path) else { return };
        let is_new = self.found.entries.insert(path.to_owned(), entry.clone()).is_none();
        if is_new && as_target {
            self.found.targets.insert(path.to_owned());
        }
        if protection == Protection::Runs {
            self.found.runs.insert(path.to_owned());
        }
    }

    fn follow_links(&mut self) -> Result<(), GitError> {
        let mut followed = 0;
        while let Some(LinkToFollow { reached_as, link }) = self.links.pop() {
            followed += 1;
            let destination = match followed > LINKS_MAX {
                true => Destination::Outside,
                false => self.destination(&link)?,
            };
            match destination {
                Destination::Outside => drop(self.found.outside.insert(link)),
                Destination::Inside(target) => self.protect_target(&reached_as, &target),
            }
            if followed > LINKS_MAX {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Protects the target of a link, as far as the patterns match the path under which it is reached.
    fn protect_target(&mut self, reached_as: &Path, target: &Path) {
        let at = self.found.tree.range(target.to_owned()..).take_while(|(path, _)| path.starts_with(target));
        let at: Vec<(PathBuf, bool)> = at.map(|(path, entry)| (path.clone(), entry.is_link())).collect();
        for (path, is_link) in at {
            let rest = path.strip_prefix(target).unwrap_or(Path::new(""));
            let virtual_path =
                if rest.as_os_str().is_empty() { reached_as.to_owned() } else { reached_as.join(rest) };
            let protection = self.patterns.protection(&virtual_path.to_string_lossy());
            if protection >= Protection::Watched {
                self.add(&path, protection, true);
            }
            if is_link && protection >= Protection::OnTheWay && path != target {
                self.links.push(LinkToFollow { reached_as: virtual_path, link: path });
            }
        }
    }

    /// Resolves all links on the way to a link's target; these are protected too.
    fn destination(&mut self, link: &Path) -> Result<Destination, GitError> {
        let protection = self.patterns.protection(&link.to_string_lossy());
        let mut place: PathBuf = link.parent().unwrap_or(Path::new("")).to_owned();
        let mut steps = self.target_of(link)?;
        let mut links = 0;
        while let Some(step) = steps.pop() {
            match step {
                Step::Root => return Ok(Destination::Outside),
                Step::Up if place.as_os_str().is_empty() => return Ok(Destination::Outside),
                Step::Up => drop(place.pop()),
                Step::Name(name) => place.push(OsStr::from_bytes(&name)),
            }
            if self.found.tree.get(&place).is_some_and(TreeEntry::is_link) {
                links += 1;
                if links > 40 {
                    return Ok(Destination::Outside);
                }
                self.add(&place.clone(), protection, true);
                let further = self.target_of(&place)?;
                place.pop();
                steps.extend(further);
            }
        }
        // A link to the whole repository would protect everything: it leads nowhere in particular.
        Ok(if place.as_os_str().is_empty() { Destination::Outside } else { Destination::Inside(place) })
    }

    /// The steps of a link's target, the last one first.
    fn target_of(&self, link: &Path) -> Result<Vec<Step>, GitError> {
        let Some(entry) = self.found.tree.get(link) else { return Ok(Vec::new()) };
        let command = self.repo.command("reading a link").args(["cat-file", "blob", &entry.object]);
        let target = path(&command.read()?);
        let step = |part: Component<'_>| match part {
            Component::RootDir | Component::Prefix(_) => Some(Step::Root),
            Component::CurDir => None,
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Name(name.as_bytes().to_owned())),
        };
        let mut steps: Vec<Step> = target.components().filter_map(step).collect();
        steps.reverse();
        Ok(steps)
    }

    /// Finds paths that equal a protected one, or a folder of one, after folding.
    fn find_ambiguous(&mut self) {
        let folded = |path: &Path| fold(&path.to_string_lossy());
        let mut names: BTreeMap<String, &Path> = BTreeMap::new();
        for protected in self.found.entries.keys() {
            for parent in protected.ancestors().filter(|parent| !parent.as_os_str().is_empty()) {
                names.insert(folded(parent), parent);
            }
        }
        let is_other =
            |path: &&PathBuf| names.get(&folded(path)).is_some_and(|protected| *protected != path.as_path());
        let twins = self.found.entries.keys().filter(is_other).cloned();
        let others = self.found.tree.keys().filter(is_other).cloned();
        let ambiguous: BTreeSet<PathBuf> = twins.chain(others).collect();
        self.found.ambiguous = ambiguous;
    }
}

enum Step {
    Root,
    Up,
    Name(Vec<u8>),
}
