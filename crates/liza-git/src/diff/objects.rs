//! Reads several objects with one git command, without interpreting their content.

use liza_ids::Sha;

use crate::program::command::GitCommand;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub name: Sha,
    /// Its type, such as `tree`.
    pub kind: String,
    pub size: u64,
    /// Empty if it was not asked for.
    pub content: Vec<u8>,
}

/// A question about an object. No expression contains a space or a line break.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectQuery<'a> {
    Name(&'a str),
    Content(&'a str),
}

impl GitCommand {
    /// The objects that the expressions name, in the same order; `None` for a missing one.
    pub(crate) fn read_objects(self, queries: &[ObjectQuery<'_>]) -> Result<Vec<Option<Object>>, GitError> {
        let line = |query: &ObjectQuery<'_>| match query {
            ObjectQuery::Name(expression) => format!("info {expression}\n"),
            ObjectQuery::Content(expression) => format!("contents {expression}\n"),
        };
        let input: String = queries.iter().map(line).collect();
        let command = self.args(["cat-file", "--batch-command"]).stdin(input);
        command.read_with(|output| parse(output, queries))
    }
}

fn parse(mut output: &[u8], queries: &[ObjectQuery<'_>]) -> Option<Vec<Option<Object>>> {
    let mut objects = Vec::new();
    for query in queries {
        let end = output.iter().position(|byte| *byte == b'\n')?;
        let header = std::str::from_utf8(&output[..end]).ok()?;
        output = &output[end + 1..];
        // For a missing object git repeats the expression: `… missing`.
        let [name, kind, size] = header.split(' ').collect::<Vec<_>>()[..] else {
            objects.push(None);
            continue;
        };
        let (name, size) = (sha(name.as_bytes())?, size.parse().ok()?);
        let mut object = Object { name, kind: kind.to_owned(), size, content: Vec::new() };
        if let ObjectQuery::Content(_) = query {
            let (content, rest) = output.split_at_checked(usize::try_from(size).ok()?)?;
            object.content = content.to_owned();
            output = rest.strip_prefix(b"\n")?;
        }
        objects.push(Some(object));
    }
    output.is_empty().then_some(objects)
}

impl Repo {
    /// The name that git gives to a content.
    pub fn blob_id(&self, content: &[u8]) -> Result<Sha, GitError> {
        let command = self.command("naming a content").args(["hash-object", "--stdin"]).stdin(content);
        let output = self.ask(&command)?;
        sha(&output).ok_or_else(|| command.unexpected(&output))
    }

    /// The name of a file's content on a branch; `None` if it is missing.
    pub fn blob_at(&self, branch: &Branch, path: &str) -> Result<Option<Sha>, GitError> {
        let name = format!("{}:{path}", branch.full());
        let command = self.command("reading a file's name").args(["rev-parse", "--quiet", "--verify", &name]);
        Ok(sha(command.run()?.stdout.trim_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_and_without_content_are_parsed() {
        let name = "0123456789012345678901234567890123456789";
        let output = format!("a:x missing\n{name} blob 4\na\nb\n\n{name} tree 9\n");
        let queries =
            [ObjectQuery::Content("a:x"), ObjectQuery::Content("a:y"), ObjectQuery::Name("a^{tree}")];
        let objects = parse(output.as_bytes(), &queries).unwrap();
        assert_eq!(objects[0], None);
        assert_eq!(objects[1].as_ref().unwrap().content, b"a\nb\n");
        assert_eq!(objects[2].as_ref().unwrap().kind, "tree");
        assert_eq!(parse(b"", &queries), None);
        assert_eq!(parse(format!("{output}more").as_bytes(), &queries), None);
    }
}
