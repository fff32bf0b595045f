//! The folders in a person's checkout that `init`, a goal or the person made for Liza: they are the person's.
//! Only looks.

use liza_team::project::Project;

/// The folders for specifications and the integration test.
const FOLDERS: [&str; 2] = ["specs", "scripts"];

pub(crate) fn own_folders(project: &Project) -> impl Iterator<Item = &'static str> {
    FOLDERS.into_iter().filter(|folder| project.root().join(folder).is_dir())
}

/// True if a folder has files that no commit would keep.
pub(crate) fn has_uncommitted(project: &Project, folder: &str) -> bool {
    project.repo().is_ok_and(|repo| repo.has_untracked(folder).unwrap_or(false))
}

/// The advice about each folder with uncommitted files.
pub(crate) fn not_committed(project: &Project) -> Vec<String> {
    let left = own_folders(project).filter(|folder| has_uncommitted(project, folder));
    left.map(|folder| format!("{folder}/ is not committed; {}", advice(folder))).collect()
}

/// The advice about a folder that is not committed.
pub(crate) fn advice(folder: &str) -> String {
    format!("to keep it: git add {folder} && git commit; or delete it")
}
