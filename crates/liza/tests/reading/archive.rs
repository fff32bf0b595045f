//! `liza archive`.

use serde_json::json;

use crate::boards::dated;
use crate::support::TestProject;

/// A completed sprint, with one old task and one that has just ended.
fn finished() -> TestProject {
    let project = TestProject::new();
    for task in ["old", "new", "open"] {
        project.add_task(task);
    }
    project.liza(&["abandon-task", "old", "--reason", "not needed"]).ok();
    project.liza(&["abandon-task", "new", "--reason", "not needed"]).ok();
    let script = format!(
        "sed -e 's/planned: \\[.*\\]/planned: [open]/' .liza/state.yaml > x && awk -v t='{}' \
         '/- id: /{{it=$3}} it==\"old\" && /time:/{{sub(/20[0-9TZ:-]*/, t)}} {{print}}' x > .liza/state.yaml; rm x",
        dated("@-700000")
    );
    project.liza(&["lock", "modify", &script]).ok();
    project
}

/// Covers: SP-08
#[test]
fn old_tasks_leave_the_board_but_their_ids_stay_taken() {
    let project = finished();
    let dry = project.liza(&["archive", "--dry-run", "--json"]).result();
    assert_eq!(dry["would_archive"], json!(["old"]), "{}", project.state());
    assert!(project.liza(&["archive"]).ok().contains("old"));
    assert!(!project.state().contains("- id: old"));
    assert_eq!(project.liza(&["get", ".archived.old"]).ok(), "ABANDONED\n");
    assert!(project.read(".liza/archive/old.yaml").contains("not needed"));
    assert!(project.liza(&["show", "old"]).ok().contains("in the archive"));
    assert!(project.liza(&["status"]).ok().contains("1 in the archive"));
    let result = project.liza(&["archive", "--older-than", "0s", "--json"]).result();
    assert_eq!(result["archived"], json!(["new"]));
    assert_eq!(project.liza(&["validate"]).ok(), "VALID\n");
    project.liza(&["archive"]).ok();
}

/// Covers: SP-08, AG-12
#[test]
fn only_a_person_archives_and_only_with_a_duration() {
    let project = finished();
    project.liza_as("planner-1", &["archive", "--json"]).refused(1, "not_permitted");
    project.liza(&["archive", "--older-than", "soon", "--json"]).refused(1, "usage");
}
