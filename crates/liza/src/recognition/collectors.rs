//! Recognizes tools of a project that collect files below its root, such as a test runner that looks for tests in every
//! folder: they would read and run what agents have written. Runs and changes nothing.

use std::fs;
use std::path::Path;

use liza_core::model::{Fields, Value};

/// Files that name such a tool.
const FILES: [(&str, &[&str]); 4] = [
    ("vitest", &["vitest.config.ts", "vitest.config.js", "vitest.config.mts", "vitest.config.mjs"]),
    ("jest", &["jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json"]),
    ("deno", &["deno.json", "deno.jsonc"]),
    ("bazel", &["MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE"]),
];

/// Words of a script in `package.json`.
const WORDS: [&str; 5] = ["vitest", "jest", "ava", "deno test", "bazel"];

/// The first tool of the project that walks through all its folders, as a person calls it.
pub(crate) fn find(root: &Path) -> Option<&'static str> {
    let has = |names: &&[&str]| names.iter().any(|name| root.join(name).is_file());
    let by_file = FILES.iter().find(|(_, names)| has(names)).map(|(tool, _)| *tool);
    by_file.or_else(|| in_scripts(&fs::read_to_string(root.join("package.json")).ok()?))
}

fn in_scripts(package: &str) -> Option<&'static str> {
    let package: Fields = serde_json::from_str(package).ok()?;
    let scripts = package.get("scripts").and_then(Value::as_map)?;
    scripts.values().filter_map(Value::as_text).find_map(|script| {
        // Options may be between both words.
        let is_node = script.split_whitespace().any(|word| word == "--test");
        let words: Vec<&str> = script.split_whitespace().collect();
        let has = |tool: &&&str| words.windows(tool.split(' ').count()).any(|part| part.join(" ") == ***tool);
        is_node.then_some("node --test").or_else(|| WORDS.iter().find(has).copied())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-03
    #[test]
    fn a_tool_that_walks_through_the_project_is_recognized() {
        let script = |line: &str| format!(r#"{{"scripts": {{"build": "tsc", "test": "{line}"}}}}"#);
        let cases = [
            ("package.json", script("node --test"), Some("node --test")),
            ("package.json", script("node --import tsx --test"), Some("node --test")),
            ("package.json", script("npx jest --ci"), Some("jest")),
            ("package.json", script("mocha"), None),
            ("package.json", "{}".to_owned(), None),
            ("package.json", "no JSON".to_owned(), None),
            ("vitest.config.ts", String::new(), Some("vitest")),
            ("deno.json", String::new(), Some("deno")),
            ("MODULE.bazel", String::new(), Some("bazel")),
            ("Cargo.toml", String::new(), None),
        ];
        for (name, text, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), &text).unwrap();
            assert_eq!(find(folder.path()), expected, "{name} {text}");
        }
    }
}
