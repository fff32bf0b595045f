//! Finds the command that tests a project, to propose it as the integration test. Reads files; runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::recognition::dependencies::VENV;

/// The script that is run on every merge.
pub(crate) const SCRIPT: &str = "scripts/integration-test.sh";

/// The command that probably tests the project, by the files in its root.
pub(crate) fn find(root: &Path) -> Option<String> {
    let has = |name: &str| root.join(name).is_file();
    let contains = |name: &str, text: &str| {
        fs::read_to_string(root.join(name)).is_ok_and(|content| content.contains(text))
    };
    let makes_test = |name: &str| {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        text.lines().any(|line| line.starts_with("test:"))
    };
    let command = if has("Cargo.toml") {
        "cargo test"
    // The script of npm init fails always.
    } else if contains("package.json", "\"test\"") && !contains("package.json", "no test specified") {
        if has("pnpm-lock.yaml") { "pnpm test" } else { "npm test" }
    } else if has("go.mod") {
        "go test ./..."
    } else if has("pytest.ini") || contains("pyproject.toml", "pytest") || has("tests/conftest.py") {
        return Some(of_python(root, "pytest"));
    } else if makes_test("Makefile") {
        "make test"
    } else {
        return of_python_tests(root);
    };
    Some(command.to_owned())
}

/// The way to a tested merge, as a command that works in this project.
pub(crate) fn how_to_test(root: &Path) -> String {
    match find(root) {
        // It is written, and the agents do not have it.
        _ if root.join(SCRIPT).exists() => format!("commit {SCRIPT}, then: liza sync"),
        Some(_) => "liza init --test".to_owned(),
        None => format!("write {SCRIPT}, commit it, then: liza sync"),
    }
}

/// The call of a Python module. Programs in the environment of a project are not on PATH, and after a copy
/// their first line still names the original.
fn of_python(root: &Path, module: &str) -> String {
    let has_environment = root.join(VENV).is_dir() || root.join("uv.lock").is_file();
    match (has_environment, module) {
        (true, _) => format!("{VENV}/bin/python -m {module}"),
        (false, "pytest") => module.to_owned(),
        (false, _) => format!("python3 -m {module}"),
    }
}

/// The test command of a Python project without other signs.
fn of_python_tests(root: &Path) -> Option<String> {
    let places = [("tests", "unittest discover -s tests"), ("", "unittest discover")];
    let found = places.into_iter().map(|(place, module)| (python_tests(&root.join(place)), module));
    let (tests, module) = found.into_iter().find(|(tests, _)| !tests.is_empty())?;
    let uses_pytest =
        |test: &PathBuf| fs::read_to_string(test).is_ok_and(|text| text.contains("import pytest"));
    Some(of_python(root, if tests.iter().any(uses_pytest) { "pytest" } else { module }))
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
    fn the_next_step_to_tested_merges_is_the_one_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join(SCRIPT);
        assert_eq!(how_to_test(folder.path()), format!("write {SCRIPT}, commit it, then: liza sync"));
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(how_to_test(folder.path()), "liza init --test");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(script, "").unwrap();
        assert_eq!(how_to_test(folder.path()), format!("commit {SCRIPT}, then: liza sync"));
    }

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
            assert_eq!(find(folder.path()).as_deref(), expected, "{name} {text}");
        }
    }

    /// Covers: AX-21
    #[test]
    fn a_test_command_uses_the_programs_that_a_checkout_has() {
        let cases = [
            (&["pytest.ini", ".venv/bin/python"][..], Some(".venv/bin/python -m pytest")),
            (&["pytest.ini", "uv.lock"], Some(".venv/bin/python -m pytest")),
            (&["test_cart.py", "uv.lock"], Some(".venv/bin/python -m unittest discover")),
            (&["package.json", "pnpm-lock.yaml"], Some("pnpm test")),
            (&["README.md"], None),
        ];
        for (names, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
                fs::write(folder.path().join(name), "{\"test\": 1}").unwrap();
            }
            assert_eq!(find(folder.path()).as_deref(), expected, "{names:?}");
            let works = how_to_test(folder.path()) == "liza init --test";
            assert_eq!(works, expected.is_some(), "{names:?}");
        }
    }
}
