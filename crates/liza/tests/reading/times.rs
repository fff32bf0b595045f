//! Times for people are local; those for programs are UTC.

use liza_core::model::Timestamp;

use crate::support::TestProject;

/// Covers: UI-09
#[test]
fn people_read_local_times_with_seconds_and_programs_utc() {
    let project = TestProject::new();
    project.add_task("one");
    let entries = project.liza(&["log", "--json"]).result();
    let created: Timestamp = entries[1]["timestamp"].as_str().unwrap().parse().unwrap();
    let utc = created.to_string().replace('T', " ").replace('Z', "");
    let nine_later = Timestamp::from_unix(created.unix() + 9 * 3600).to_string();
    let tokyo = nine_later.replace('T', " ").replace('Z', "");
    let printed =
        |words: &[&str]| project.run(project.program().args(words).env("TZ", "JST-9")).ok().to_owned();
    assert!(printed(&["show", "one"]).contains(&tokyo), "{}", printed(&["show", "one"]));
    assert!(printed(&["log"]).contains(&tokyo[5..]), "{}", printed(&["log"]));
    assert!(printed(&["--utc", "show", "one"]).contains(&utc));
    assert!(printed(&["log", "--utc"]).contains(&utc[5..]));
    assert!(printed(&["show", "one", "--json"]).contains(&created.to_string()));
    let set = printed(&["sprint", "deadline", "2199-08-01T18:00:00Z"]);
    assert!(set.contains("2199-08-02 03:00:00"), "{set}");
    assert!(printed(&["sprint", "show"]).contains("deadline    2199-08-02 03:00:00"));
    assert!(project.state().contains("deadline: 2199-08-01T18:00:00Z"));
    project.write(".liza/state.yaml", &project.state().replace("deadline: 2199", "deadline: 2020"));
    let status = printed(&["status"]);
    assert!(status.contains("sprint-1 was due at 2020-08-02 03:00:00"), "{status}");
}
