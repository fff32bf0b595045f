//! References to specifications as people type them: a file of the project, with an optional anchor.

use std::path::{Component, Path};

use liza_core::protocol::check_spec;
use liza_core::rules::invariants::DiskFacts as _;
use liza_store::ProjectDisk;

use crate::cli::ui::error::CommandError;

/// The default path of the vision document.
pub(crate) const DEFAULT: &str = "specs/vision.md";

/// The reference relative to the project's root; refused if it leads out of the project.
pub(crate) fn within(root: &Path, given: &str) -> Result<String, CommandError> {
    let (file, anchor) = given.split_at(given.find('#').unwrap_or(given.len()));
    let path = Path::new(file);
    let path = path.strip_prefix(root).unwrap_or(path);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let clean = !given.chars().any(char::is_control);
    check_spec(file)?;
    match path.to_str().filter(|text| inside && clean && !text.is_empty()) {
        Some(file) => Ok(format!("{file}{anchor}")),
        None => {
            let message = format!("{given:?} is not a file inside the project");
            Err(CommandError::refused("bad_spec", message).hint(format!("use a path such as {DEFAULT}")))
        }
    }
}

pub(crate) fn exists(root: &Path, reference: &str) -> bool {
    ProjectDisk::new(root).spec_exists(file_of(reference))
}

/// The file of a reference, without the anchor.
pub(crate) fn file_of(reference: &str) -> &str {
    reference.split('#').next().unwrap_or(reference)
}

/// The error for a reference to a file that does not exist.
pub(crate) fn missing(reference: &str) -> CommandError {
    let message = format!("the project has no file {}", file_of(reference));
    CommandError::refused("missing_spec", message).hint("write the file, then repeat the command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_stays_inside_the_project() {
        let root = Path::new("/home/me/project");
        let seen = |given| within(root, given).map_err(|error| error.code);
        assert_eq!(seen("specs/a.md#b"), Ok("specs/a.md#b".to_owned()));
        assert_eq!(seen("/home/me/project/specs/a.md"), Ok("specs/a.md".to_owned()));
        for bad in [
            "",
            "#b",
            "../a.md",
            "specs/../../a.md",
            "/etc/passwd",
            "a\nb.md",
            ".liza/state.yaml",
            "x/.git/config",
        ] {
            assert_eq!(seen(bad), Err("bad_spec".to_owned()), "{bad:?}");
        }
    }
}
