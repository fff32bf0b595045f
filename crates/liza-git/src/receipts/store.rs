//! The chain of commits in `refs/liza/receipts`. Its tree has `ab/DIGEST.json` for each receipt, and `project/NAME` for the random
//! name of the project, and an empty `about/ab/COMMIT/DIGEST` for each receipt about a submitted commit. Adds and never removes: two chains are joined by union, whatever one of them lacks.
//!
//! Knows no statement: a receipt is a text that has the digest of its name. Sessions cannot write this reference, and work is
//! taken by named references only, so nothing that an agent commits gets here.

use std::collections::BTreeMap;
use std::time::Duration;

use liza_host::random_text::random_hex;
use liza_ids::{Digest, Sha};

use crate::diff::objects::ObjectQuery;
use crate::program::error::GitError;
use crate::program::refs_on_disk::ref_on_disk;
use crate::program::repo::{Repo, sha};

pub const RECEIPTS: &str = "refs/liza/receipts";

/// The chain of the remote as it was last seen here.
pub const REMOTE_RECEIPTS: &str = "refs/liza/remote-receipts";

/// The number of attempts while other processes add receipts.
const ATTEMPTS: u32 = 50;

/// The length of a project's name, in bytes before they become digits.
const NAME: usize = 16;

/// A file that a commit adds to the chain.
enum NewFile<'a> {
    Content {
        path: String,
        content: &'a [u8],
    },
    /// An object that git has already.
    Object {
        path: String,
        id: Sha,
    },
}

impl Repo {
    /// The random name of the project, chosen with its first receipt. Receipts are never removed, so a name remains one.
    pub fn project_name(&self) -> Result<String, GitError> {
        if let Some(name) = self.known_name().get() {
            return Ok(name.clone());
        }
        for _ in 0..ATTEMPTS {
            if let Some(name) = self.project_names()?.into_iter().next() {
                return Ok(self.known_name().get_or_init(|| name).clone());
            }
            let name = random_hex(NAME)
                .map_err(|error| GitError::io("naming the project", self.common_dir(), error))?;
            let path = format!("project/{name}");
            // If another process is faster, its name counts.
            let file = NewFile::Content { path, content: b"" };
            let _ = self.extend_chain(self.receipts_tip().as_ref(), None, &[file])?;
        }
        Err(self.busy())
    }

    /// All names that the project has: more than one if two machines began at the same time.
    pub fn project_names(&self) -> Result<Vec<String>, GitError> {
        let Some(tip) = self.receipts_tip() else { return Ok(Vec::new()) };
        let names = self.names_in(&tip, "project/", "reading the project's name")?;
        Ok(names.lines().filter_map(|path| path.strip_prefix("project/")).map(str::to_owned).collect())
    }

    /// The last commit of the chain; `None` without receipts. Read without git, which would also take a branch of that name.
    pub fn receipts_tip(&self) -> Option<Sha> {
        ref_on_disk(self.common_dir(), RECEIPTS)
    }

    /// The last commit of the remote's chain, as it was last seen here.
    pub fn remote_receipts(&self) -> Option<Sha> {
        ref_on_disk(self.common_dir(), REMOTE_RECEIPTS)
    }

    /// The remote has no receipts any more.
    pub fn forget_remote_receipts(&self) -> Result<(), GitError> {
        match self.remote_receipts() {
            Some(_) => {
                self.command("forgetting receipts").args(["update-ref", "-d", "--", REMOTE_RECEIPTS]).check()
            }
            None => Ok(()),
        }
    }

    /// Adds texts to the chain; returns their names.
    pub fn add_receipts(&self, texts: &[Vec<u8>]) -> Result<Vec<Digest>, GitError> {
        let digests: Vec<Digest> = texts.iter().map(|text| Digest::of(text)).collect();
        let files = digests.iter().zip(texts);
        let files = files.map(|(digest, content)| NewFile::Content { path: path_of(digest), content });
        self.add_files(&files.collect::<Vec<_>>())?;
        Ok(digests)
    }

    /// Adds a text about a submitted commit, by which it is found.
    pub fn add_receipt_about(&self, text: &[u8], commit: &Sha) -> Result<Digest, GitError> {
        let digest = Digest::of(text);
        let file = NewFile::Content { path: path_of(&digest), content: text };
        let entry = NewFile::Content { path: format!("{}{digest}", folder_about(commit)), content: b"" };
        self.add_files(&[file, entry])?;
        Ok(digest)
    }

    /// The names of the receipts about a submitted commit.
    pub fn receipts_about(&self, commit: &Sha) -> Result<Vec<Digest>, GitError> {
        let Some(tip) = self.receipts_tip() else { return Ok(Vec::new()) };
        let names = self.names_in(&tip, &folder_about(commit), "looking for receipts")?;
        Ok(names.lines().filter_map(|path| path.rsplit('/').next()?.parse().ok()).collect())
    }

    /// The paths in a folder of the chain, one in each line.
    fn names_in(&self, tip: &Sha, folder: &str, action: &str) -> Result<String, GitError> {
        let command = self.command(action).args(["ls-tree", "--name-only", tip.as_str(), folder]);
        Ok(String::from_utf8_lossy(&self.ask(&command)?).into_owned())
    }

    fn add_files(&self, files: &[NewFile<'_>]) -> Result<(), GitError> {
        for attempt in 0..ATTEMPTS {
            if self.extend_chain(self.receipts_tip().as_ref(), None, files)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(u64::from(attempt % 7) * 3));
        }
        Err(self.busy())
    }

    /// The receipts of these names that are in the chain and have the content that their name says.
    pub fn read_receipts(&self, digests: &[Digest]) -> Result<BTreeMap<Digest, Vec<u8>>, GitError> {
        let Some(tip) = self.receipts_tip().filter(|_| !digests.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let names: Vec<String> = digests.iter().map(|digest| format!("{tip}:{}", path_of(digest))).collect();
        let queries: Vec<ObjectQuery<'_>> = names.iter().map(|name| ObjectQuery::Content(name)).collect();
        let objects = self.command("reading receipts").read_objects(&queries)?;
        let contents = digests.iter().zip(objects);
        let contents = contents.filter_map(|(digest, object)| Some((digest.clone(), object?.content)));
        Ok(contents.filter(|(digest, content)| Digest::of(content) == *digest).collect())
    }

    /// Everything in the chain by its name; a content of another digest is there too: somebody has edited it.
    pub fn list_receipts(&self) -> Result<BTreeMap<Digest, Vec<u8>>, GitError> {
        let Some(tip) = self.receipts_tip() else { return Ok(BTreeMap::new()) };
        let command = self.command("listing receipts").args(["ls-tree", "-r", "-z", tip.as_str()]);
        let files = command.read_with(|output| Some(parse_files(output)))?;
        self.receipt_contents(&files)
    }

    fn receipt_contents(&self, files: &[(Digest, Sha)]) -> Result<BTreeMap<Digest, Vec<u8>>, GitError> {
        let queries: Vec<ObjectQuery<'_>> =
            files.iter().map(|(_, id)| ObjectQuery::Content(id.as_str())).collect();
        let objects = self.command("reading receipts").read_objects(&queries)?;
        let contents = files.iter().zip(objects);
        Ok(contents.filter_map(|((digest, _), object)| Some((digest.clone(), object?.content))).collect())
    }

    /// Adds what another chain has and this one lacks; returns the new end of this chain.
    pub fn join_receipts(&self, theirs: &Sha) -> Result<Sha, GitError> {
        for _ in 0..ATTEMPTS {
            let Some(ours) = self.receipts_tip() else {
                if self.update_ref(RECEIPTS, theirs.as_str(), "", "liza: receipts").is_ok() {
                    return Ok(theirs.clone());
                }
                continue;
            };
            if self.is_ancestor(theirs, &ours)? {
                return Ok(ours);
            }
            let files = self.only_in(&ours, theirs)?;
            if self.extend_chain(Some(&ours), Some(theirs), &files)? {
                return self.receipts_tip().ok_or_else(|| self.busy());
            }
        }
        Err(self.busy())
    }

    /// The receipts and names of another chain that this one lacks, or has in an edited form.
    fn only_in(&self, ours: &Sha, theirs: &Sha) -> Result<Vec<NewFile<'static>>, GitError> {
        let command = self.command("comparing receipts");
        let command = command.args(["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AM"]);
        let output = command.args([ours.as_str(), theirs.as_str()]).read()?;
        let (mut files, mut receipts) = (Vec::new(), Vec::new());
        let mut fields = output.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(raw), Some(path)) = (fields.next(), fields.next()) {
            let Some(id) = raw.split(' ').nth(3).and_then(|id| sha(id.as_bytes())) else { continue };
            match digest_of(&path) {
                Some(digest) => receipts.push((digest, id)),
                None if is_name(&path) || is_about(&path) => {
                    files.push(NewFile::Object { path: path.into_owned(), id })
                }
                None => {}
            }
        }
        let contents = self.receipt_contents(&receipts)?;
        let is_valid = |digest: &Digest| contents.get(digest).is_some_and(|text| Digest::of(text) == *digest);
        let valid = receipts.into_iter().filter(|(digest, _)| is_valid(digest));
        files.extend(valid.map(|(digest, id)| NewFile::Object { path: path_of(&digest), id }));
        Ok(files)
    }

    /// Adds one commit with these files, by one process; false if the reference has moved since.
    fn extend_chain(
        &self,
        from: Option<&Sha>,
        other: Option<&Sha>,
        files: &[NewFile<'_>],
    ) -> Result<bool, GitError> {
        let mut input =
            format!("commit {RECEIPTS}\ncommitter Liza <liza@localhost> now\ndata 9\nreceipts\n\n")
                .into_bytes();
        input.extend(from.map(|from| format!("from {from}\n")).unwrap_or_default().into_bytes());
        input.extend(other.map(|other| format!("merge {other}\n")).unwrap_or_default().into_bytes());
        for file in files {
            match file {
                NewFile::Content { path, content } => {
                    let head = format!("M 100644 inline {path}\ndata {}\n", content.len());
                    input.extend_from_slice(head.as_bytes());
                    input.extend_from_slice(content);
                    input.push(b'\n');
                }
                NewFile::Object { path, id } => {
                    input.extend_from_slice(format!("M 100644 {id} {path}\n").as_bytes());
                }
            }
        }
        input.extend_from_slice(b"done\n");
        let command = self.command("adding receipts").args(["fast-import", "--quiet", "--done"]);
        let command = command.arg("--date-format=now").stdin(input);
        let output = command.run()?;
        match output.status {
            Some(0) => Ok(true),
            // Git has compared the reference with what it began from.
            Some(1) => Ok(false),
            _ => Err(command.failed(&output)),
        }
    }

    fn busy(&self) -> GitError {
        let error = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
        GitError::io("adding receipts", self.common_dir(), error)
    }
}

fn path_of(digest: &Digest) -> String {
    format!("{}/{digest}.json", digest.parts().0)
}

fn digest_of(path: &str) -> Option<Digest> {
    let digest: Digest = path.get(3..)?.strip_suffix(".json")?.parse().ok()?;
    (path_of(&digest) == path).then_some(digest)
}

/// True for the file that names the project.
fn is_name(path: &str) -> bool {
    let name = path.strip_prefix("project/");
    name.is_some_and(|name| name.len() == 2 * NAME && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn folder_about(commit: &Sha) -> String {
    format!("about/{}/{commit}/", commit.as_str().get(..2).unwrap_or_default())
}

/// True for an entry that leads from a commit to a receipt.
fn is_about(path: &str) -> bool {
    let parse = || {
        let (folder, digest) = path.rsplit_once('/')?;
        let commit: Sha = folder.rsplit('/').next()?.parse().ok()?;
        let digest: Digest = digest.parse().ok()?;
        Some(commit.is_full() && format!("{}{digest}", folder_about(&commit)) == path)
    };
    parse().unwrap_or(false)
}

/// The receipts in the output of `ls-tree`.
fn parse_files(output: &[u8]) -> Vec<(Digest, Sha)> {
    let entry = |entry: &[u8]| {
        let (head, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        Some((digest_of(path)?, sha(head.rsplit(' ').next()?.as_bytes())?))
    };
    output.split(|byte| *byte == 0).filter_map(entry).collect()
}
