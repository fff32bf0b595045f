//! A team in the middle of its work: something in every state, with histories, questions, usage and sessions.

use liza_core::rules::triggers::planner_triggers;
use liza_team::project::now;

use crate::support::TestProject;

/// A project with a rich blackboard. `@-90` in the text means ninety seconds ago, `@+90` in ninety seconds.
pub(crate) fn rich_project() -> TestProject {
    let project = TestProject::new();
    project.place_board(&dated(include_str!("rich.yaml")));
    project.write(".liza/log.yaml", &dated(include_str!("log.yaml")));
    for task in ["retry-users", "retry-orders"] {
        project.write(&format!(".worktrees/{task}/file"), "");
    }
    // The planner has looked at everything: what is left is the human's.
    let keys: Vec<String> =
        planner_triggers(&project.snapshot(), now()).into_iter().map(|trigger| trigger.key).collect();
    let seen = format!("seen_triggers: {}", serde_json::json!(keys));
    project.place_board(&project.state().replace("seen_triggers: []", &seen));
    let name = "coder-1-20260117T140000Z-1-retry-users";
    project
        .write(&format!(".liza/agent-prompts/{name}.md"), "# You are coder-1\n\nRetry <b>everything</b>.\n");
    project.write(
        &format!(".liza/agent-outputs/{name}.log"),
        "I read the client of the user service first.\nThe test for a timeout fails as expected.\n",
    );
    project
}

fn dated(text: &str) -> String {
    liza_testkit::boards::dated(text, now())
}
