//! The tools that real programs offer to their model, by role: those that the role needs, and no others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::fixture::{Client, Scripted, role};
use crate::goal::{reach_goal_in, work};

/// The tools and the size of the first request of each role.
type FirstRequests = BTreeMap<String, (Vec<String>, usize)>;

/// What a program offers in a goal that is reached.
fn offered(client: Client, settings: &[(&str, &str)]) -> FirstRequests {
    let offered: Arc<Mutex<FirstRequests>> = Arc::default();
    let seen = Arc::clone(&offered);
    let scripted = Scripted::new(move |conversation| {
        let mut tools = conversation.tools.clone();
        tools.sort();
        let first = (tools, conversation.size);
        seen.lock().unwrap().entry(role(conversation).to_owned()).or_insert(first);
        work(conversation)
    });
    for (path, text) in settings {
        scripted.write(path, text);
    }
    reach_goal_in(&scripted, &[client], &["--cli", client.name()]);
    let offered = offered.lock().unwrap().clone();
    println!("{offered:#?}");
    offered
}

/// Covers: AX-28
#[test]
fn needs_claude_a_session_is_offered_the_tools_of_its_role_and_no_others() {
    // A person who plans first, and has a server with tools.
    let settings = [
        (".claude/settings.json", r#"{"permissions": {"defaultMode": "plan"}}"#),
        (".claude.json", r#"{"mcpServers": {"mine": {"command": "cat"}}}"#),
    ];
    let offered = offered(Client::Claude, &settings);
    for (role, expected) in [
        ("Planner", "Bash Glob Grep Read"),
        ("Coder", "Bash Edit Glob Grep Read Write"),
        ("Code Reviewer", "Bash Glob Grep Read"),
    ] {
        let (tools, size) = &offered[role];
        assert_eq!(tools.join(" "), expected, "{role}");
        // The prompt has about 12 kB of it; with all tools it was 60 kB.
        assert!(*size < 45_000, "{role}: {size}");
    }
}

/// Covers: AX-28
#[test]
fn needs_goose_a_session_is_offered_the_developer_tools_and_no_others() {
    for (role, (tools, _)) in offered(Client::Goose, &[]) {
        let unneeded: Vec<&String> = tools
            .iter()
            .filter(|tool| {
                !["edit", "read_image", "shell", "text_editor", "tree", "write"]
                    .contains(&tool.trim_start_matches("developer__"))
            })
            .collect();
        assert!(unneeded.is_empty(), "{role}: {unneeded:?}");
    }
}

/// Covers: AX-28
#[test]
fn needs_codex_a_session_is_not_offered_agents_goals_or_the_web() {
    for (role, (tools, _)) in offered(Client::Codex, &[]) {
        let unneeded = ["multi_agent", "spawn_agent", "goal", "web_search"];
        let found: Vec<&String> =
            tools.iter().filter(|tool| unneeded.iter().any(|name| tool.contains(name))).collect();
        assert!(found.is_empty(), "{role}: {found:?}");
    }
}

/// Covers: AX-34, AX-28
#[test]
fn needs_copilot_needs_qwen_a_session_is_offered_the_tools_of_its_role_and_no_others() {
    let cases = [
        (Client::Copilot, "bash glob grep view", "bash create edit glob grep view"),
        (
            Client::Qwen,
            "glob grep_search read_file run_shell_command",
            "edit glob grep_search read_file run_shell_command write_file",
        ),
    ];
    for (client, reading, writing) in cases {
        let offered = offered(client, &[]);
        for (role, expected) in [("Planner", reading), ("Coder", writing), ("Code Reviewer", reading)] {
            assert_eq!(offered[role].0.join(" "), expected, "{client:?} {role}");
        }
    }
}
