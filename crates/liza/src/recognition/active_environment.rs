//! Recognizes a Python environment that is active in the person's shell and imports the person's code: a test that finds its
//! programs there judges the person's checkout, and not the work. Reads files; runs nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::Config;
use liza_git::links_into;

use crate::recognition::dependencies::VENV;
use crate::recognition::test_command::SCRIPT;

/// The variables that name the active environment, whose programs are first on PATH.
const VARIABLES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// The use of such an environment by the tests of a project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeadsBack {
    pub problem: String,
    pub fix: String,
}

/// Finds a program of the active environment that a test of the project calls by its name alone.
pub(crate) fn find(
    root: &Path,
    config: &Config,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<LeadsBack> {
    let environment = PathBuf::from(VARIABLES.into_iter().find_map(variable)?);
    let script = fs::read_to_string(root.join(SCRIPT)).unwrap_or_default();
    let lines = script.lines().chain(config.validation.iter().map(String::as_str));
    let mut words = lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let is_program = |word: &&str| {
        let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic()) && !word.contains('/');
        is_name && environment.join("bin").join(word).is_file()
    };
    let program = words.find(is_program)?;
    let (file, place) = links_into(&environment, root).into_iter().next()?;
    let problem = format!(
        "the tests call {program}, which your active environment {} has, and that imports your checkout: {} names {}. \
         They would judge your code, and not the work of a task",
        environment.display(),
        file.file_name().unwrap_or_default().to_string_lossy(),
        place.display()
    );
    let folder = environment.strip_prefix(root).unwrap_or(Path::new(VENV)).display().to_string();
    let module = if program.starts_with("python") { String::new() } else { format!(" -m {program}") };
    let fix = format!(
        "call the environment of the checkout, {folder}/bin/python{module}, and bring it there: liza config copy '[{folder}]', or \
         liza config setup COMMAND"
    );
    Some(LeadsBack { problem, fix })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-21
    #[test]
    fn a_test_that_uses_an_active_environment_with_the_persons_code_is_recognized() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        let write = |name: &str, text: &str| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        };
        write("src/cart.py", "");
        write("env/bin/pytest", "");
        let active = |name: &str| (name == "VIRTUAL_ENV").then(|| root.join("env").into());
        let found = |line: &str, link: &str| {
            write(SCRIPT, &format!("#!/bin/sh\n# pytest\n{line}\n"));
            write("env/lib/python3.14/site-packages/cart.pth", link);
            find(root, &Config::default(), active)
        };
        let src = root.join("src").display().to_string();
        let fix = found("exec pytest -q", &src).unwrap().fix;
        assert!(fix.starts_with("call the environment of the checkout, env/bin/python -m pytest"), "{fix}");
        assert_eq!(found("env/bin/python -m tests", &src), None);
        assert_eq!(found("pytest -q", "/usr/lib\nimport site\n"), None);
        assert!(found("pytest -q", &src).is_some());
        assert_eq!(find(root, &Config::default(), |_| None), None);
    }
}
