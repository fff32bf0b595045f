//! Finds the command that tests a project, to propose it as the integration test. Reads files; runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The script that is run on every merge.
pub(crate) const SCRIPT: &str = "scripts/integration-test.sh";

/// The command that probably tests the project, by the files in its root.
pub(crate) fn find(root: &Path) -> Option<&'static str> {
    let has = |name: &str| root.join(name).is_file();
    let contains = |name: &str, text: &str| {
        fs::read_to_string(root.join(name)).is_ok_and(|content| content.contains(text))
    };
    let makes_test = |name: &str| {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        text.lines().any(|line| line.starts_with("test:"))
    };
    if has("Cargo.toml") {
        Some("cargo test")
    // The script of npm init fails always.
    } else if contains("package.json", "\"test\"") && !contains("package.json", "no test specified") {
        Some("npm test")
    } else if has("go.mod") {
        Some("go test ./...")
    } else if has("pytest.ini") || contains("pyproject.toml", "pytest") || has("tests/conftest.py") {
        Some("pytest")
    } else if makes_test("Makefile") {
        Some("make test")
    } else {
        of_python_tests(root)
    }
}

/// The test command of a Python project without other signs.
fn of_python_tests(root: &Path) -> Option<&'static str> {
    let places = [("tests", "python3 -m unittest discover -s tests"), ("", "python3 -m unittest discover")];
    let found = places.into_iter().map(|(place, command)| (python_tests(&root.join(place)), command));
    let (tests, command) = found.into_iter().find(|(tests, _)| !tests.is_empty())?;
    let uses_pytest =
        |test: &PathBuf| fs::read_to_string(test).is_ok_and(|text| text.contains("import pytest"));
    Some(if tests.iter().any(uses_pytest) { "pytest" } else { command })
}

fn python_tests(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_test = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("test_") && name.ends_with(".py") && path.is_file()
    };
    entries.map(|entry| entry.path()).filter(is_test).collect()
}

pub(crate) fn script(command: &str) -> String {
    format!(
        "#!/bin/sh\n# Liza runs this on every merge before the integration branch moves.\nset -e\n{command}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_project_tell_how_it_is_tested() {
        let cases = [
            ("Cargo.toml", "", Some("cargo test")),
            ("package.json", "{\"scripts\": {\"test\": \"jest\"}}", Some("npm test")),
            ("package.json", "{}", None),
            ("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#, None),
            ("go.mod", "", Some("go test ./...")),
            ("pyproject.toml", "[tool.pytest.ini_options]", Some("pytest")),
            ("Makefile", "all:\n\ttrue\ntest: all\n", Some("make test")),
            ("Makefile", "all:\n\ttrue\n", None),
            ("tests/test_cart.py", "import unittest", Some("python3 -m unittest discover -s tests")),
            ("test_cart.py", "import unittest", Some("python3 -m unittest discover")),
            ("tests/test_cart.py", "import pytest", Some("pytest")),
            ("tests/helper.py", "", None),
        ];
        for (name, text, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), text).unwrap();
            assert_eq!(find(folder.path()), expected, "{name} {text}");
        }
    }
}
