//! Recognizes refusals of the confinement, from the words of tools and of errors.

use std::path::Path;

/// The system's words, without and with a room.
const DENIED: [&str; 2] = ["Permission denied", READ_ONLY];

const READ_ONLY: &str = "Read-only file system";

/// The words of tools that wanted to change a path, before its name.
const WRITES: [&str; 9] =
    ["create", "touch", "write", "remove", "move", "rename", "delete", "unlink", "changing"];

/// What a room says of other paths.
const MISSING: &str = "No such file or directory";

/// The prompt itself explains the words, and some programs repeat their prompt.
const EXPLAINED: [&str; 2] = ["\" elsewhere", "\\\" elsewhere"];

/// What tools say when they find no other machine. A refused connection is not among them: a service that the work should have
/// started refuses it too.
const NO_NETWORK: [&str; 10] = [
    "Could not resolve host",
    "Could not resolve proxy",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "failed to lookup address information",
    "Network is unreachable",
    "no such host",
    "ENOTFOUND",
    "EAI_AGAIN",
];

/// True if the text says that another machine was not found.
pub fn misses_network(text: &str) -> bool {
    NO_NETWORK.iter().any(|words| text.contains(words))
}

/// The refused path, if the text names a refusal; empty if it names no path.
pub fn denied_path(text: &str) -> Option<&str> {
    let is_own = |(at, words): &(usize, &str)| {
        let after = text.get(at + words.len()..).unwrap_or_default();
        !EXPLAINED.iter().any(|explained| after.starts_with(explained))
    };
    let (at, _) = DENIED.iter().flat_map(|words| text.match_indices(words)).find(is_own)?;
    Some(path_before(text.get(..at).unwrap_or_default()))
}

/// The same; also a path that is here, and that a session did not find: in a room, nothing else is there.
pub fn refused_path(text: &str) -> Option<&str> {
    let missing = || {
        let path = path_before(text.get(..text.find(MISSING)?)?);
        (!path.is_empty() && Path::new(path).exists()).then_some(path)
    };
    denied_path(text).or_else(missing)
}

/// True if the words are those of a program that wanted to change the path, and not only to read it.
pub fn is_write(text: &str, path: &str) -> bool {
    let (before, after) = text.rsplit_once(path).unwrap_or((text, ""));
    let words = before.rsplit([':', '\n']).next().unwrap_or_default();
    let reason = after.trim_start_matches(|c: char| !c.is_alphabetic());
    reason.starts_with(READ_ONLY) || WRITES.iter().any(|write| words.contains(write))
}

/// The path at the end of a text such as `cannot create '/etc/x': `, or nothing.
fn path_before(text: &str) -> &str {
    let line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    // Output inside of an event has its line breaks written out.
    let line = line.rsplit("\\n").next().unwrap_or_default();
    let line = line.trim_end().trim_end_matches([':', '(']).trim_end();
    for quote in ['\'', '"', '`', '’'] {
        let Some(inner) = line.strip_suffix(quote) else { continue };
        let open = if quote == '’' { '‘' } else { quote };
        let path = inner.rsplit(open).next().unwrap_or_default().trim_end_matches('\\');
        return if path.starts_with('/') { path } else { "" };
    }
    let word = line.rsplit([' ', '\t', '=']).next().unwrap_or_default();
    if word.starts_with('/') { word } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-03
    #[test]
    fn a_missing_network_is_named_by_the_tools_and_a_service_that_does_not_answer_is_none() {
        for said in [
            "fatal: unable to access 'https://host.example/x/': Could not resolve host: host.example",
            "npm error errno ENOTFOUND",
            "dial tcp: lookup proxy.example: no such host",
            "connect: Network is unreachable",
        ] {
            assert!(misses_network(said), "{said}");
        }
        for said in ["connect ECONNREFUSED 127.0.0.1:5432", "Connection refused", "test network ... FAILED"] {
            assert!(!misses_network(said), "{said}");
        }
    }

    /// Covers: IS-03
    #[test]
    fn the_path_is_found_in_the_words_of_common_tools() {
        for (text, expected) in [
            ("touch: cannot touch '/etc/x': Permission denied", Some("/etc/x")),
            ("sh: 1: cannot create /home/a/x: Permission denied", Some("/home/a/x")),
            ("bash: /home/a/x: Permission denied", Some("/home/a/x")),
            ("cannot read /a/b: Permission denied (os error 13)", Some("/a/b")),
            ("mkdir: cannot create directory ‘/srv/a b’: Permission denied", Some("/srv/a b")),
            (r#"{"output":"first\nmkdir: cannot create '/x y': Permission denied\n"}"#, Some("/x y")),
            ("error: Permission denied", Some("")),
            ("touch: cannot touch '/home/a/x': Read-only file system", Some("/home/a/x")),
            ("permission was denied", None),
            (r#"("Permission denied" elsewhere is caused by your confinement"#, None),
            (r#"{"prompt":"(\"Permission denied\" elsewhere is caused by your confinement"}"#, None),
        ] {
            assert_eq!(denied_path(text), expected, "{text}");
        }
        for (text, path) in [
            ("touch: cannot touch '/etc/x': Permission denied", "/etc/x"),
            ("sh: 1: cannot create /home/a/x: Permission denied", "/home/a/x"),
            ("bash: /home/a/x: Read-only file system", "/home/a/x"),
            (r#"{"output":"first\nmkdir: cannot create directory ‘/x y’: Permission denied\n"}"#, "/x y"),
        ] {
            assert!(is_write(text, path), "{text}");
        }
        for (text, path) in [
            ("cat: /created/x: Permission denied", "/created/x"),
            ("to write: sh: 1: cannot open /a/b: Permission denied", "/a/b"),
            ("ls: cannot access '/a b': No such file or directory", "/a b"),
        ] {
            assert!(!is_write(text, path), "{text}");
        }
        for (text, expected) in [
            ("cat: /etc: No such file or directory", Some("/etc")),
            ("cat: /not/here: No such file or directory", None),
            ("cat: /not/here: Permission denied", Some("/not/here")),
        ] {
            assert_eq!(refused_path(text), expected, "{text}");
        }
    }
}
