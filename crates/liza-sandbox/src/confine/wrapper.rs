//! Another runner in front of a session, such as bubblewrap or podman: fills in its command line.

use std::path::Path;

use super::plan::Plan;

/// The words of the runner's command line. A word with `{writable}` or `{readable}` is split at its spaces
/// and repeated for each path; `{directory}` is the working folder.
pub fn wrapper_words(template: &[String], plan: &Plan, directory: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in template {
        let paths = if word.contains("{writable}") {
            Some(("{writable}", plan.grants.write.clone()))
        } else if word.contains("{readable}") {
            Some(("{readable}", [plan.grants.read.clone(), plan.grants.only_read.clone()].concat()))
        } else {
            None
        };
        match paths {
            Some((name, paths)) => words.extend(paths.iter().flat_map(|path| repeated(word, name, path))),
            None => words.push(word.replace("{directory}", directory)),
        }
    }
    words
}

fn repeated(word: &str, name: &str, path: &Path) -> Vec<String> {
    word.split_whitespace().map(|part| part.replace(name, &path.to_string_lossy())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::confinement::Grants;

    /// Covers: IS-07
    #[test]
    fn paths_are_repeated_and_may_contain_spaces() {
        let grants = Grants {
            read: vec!["/usr".into()],
            write: vec!["/work/a b".into(), "/tmp/x".into()],
            ..Grants::default()
        };
        let plan = Plan { grants, ..Plan::default() };
        let template = [
            "bwrap",
            "--ro-bind {readable} {readable}",
            "--bind {writable} {writable}",
            "--chdir",
            "{directory}",
        ];
        let words = wrapper_words(&template.map(str::to_owned), &plan, "/work/a b");
        let expected = [
            "bwrap",
            "--ro-bind",
            "/usr",
            "/usr",
            "--bind",
            "/work/a b",
            "/work/a b",
            "--bind",
            "/tmp/x",
            "/tmp/x",
            "--chdir",
            "/work/a b",
        ];
        assert_eq!(words, expected);
    }
}
