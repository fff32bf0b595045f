//! Who speaks for a code reviewer whose program is a real one: a commit with settings for many tools tries to.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::fixture::{Client, Scripted, liza_of, role};
use crate::model_server::{Conversation, Move};
use crate::support::TestProject;
use crate::support::attack::{HONEST, SETTINGS, attempts, check_attempts};

/// A submission that attacks its reviewer.
fn submit_hostile_work(project: &TestProject) {
    project.add_task("t1");
    project.register("coder-1");
    project.liza(&["claim-task", "t1", "coder-1"]).ok();
    let tree = project.tree("t1");
    project.run(project.command("sh").args(["-c", SETTINGS]).current_dir(&tree)).ok();
    std::fs::write(tree.join("t1.txt"), "done\n").unwrap();
    project.git_at(&tree, &["add", "-A"]);
    project.git_at(&tree, &["commit", "-qm", "hostile work"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project.liza_as("coder-1", &["pre-check", "t1", "--intent", "do it", "--validation", "cat t1.txt"]).ok();
    project.liza_as("coder-1", &["submit-for-review", "t1", &head]).ok();
}

/// A reviewer that runs everything that the work brings, each in its program's own tool, and then rejects it.
fn is_not_spoken_for(client: Client) {
    let steps: Vec<String> = attempts(true).into_iter().chain([HONEST.to_owned()]).collect();
    let seen: Arc<Mutex<String>> = Arc::default();
    let transcript = Arc::clone(&seen);
    let scripted = Scripted::new(move |conversation: &Conversation| {
        assert_eq!(role(conversation), "Code Reviewer");
        conversation.text.clone_into(&mut transcript.lock().unwrap());
        match steps.get(conversation.tool_results) {
            Some(step) => Move::Run(format!("export LIZA='{}'; exec 2>&1\n{step}", liza_of(conversation))),
            None => Move::Say("Done.".to_owned()),
        }
    });
    let project = &scripted.project;
    project.set_config("sandbox", "require");
    let toolchain = Path::new(env!("CARGO")).ancestors().nth(2).unwrap();
    project.set_config("sandbox_readable", &format!("[\"{}\"]", toolchain.display()));
    project.set_config("pass_env", "[BASH_ENV, ENV, GIT_EXTERNAL_DIFF]");
    submit_hostile_work(project);
    let mut liza = scripted.liza(&[client]);
    let path = liza.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap();
    let path = format!("tools:{}", path.to_str().unwrap());
    liza.args(["agent", "code-reviewer", "--cli", client.name(), "--once"]).env("PATH", path);
    for name in ["BASH_ENV", "ENV", "GIT_EXTERNAL_DIFF"] {
        liza.env(name, "./approve.sh");
    }
    let run = project.run(&mut liza);
    let log = seen.lock().unwrap().clone();
    assert_eq!((run.code, project.status("t1")), (0, "REJECTED"), "{run:#?}\n{log}");
    check_attempts(&log, true);
}

/// Covers: JU-08
#[test]
fn needs_claude_no_commit_speaks_for_its_reviewer() {
    is_not_spoken_for(Client::Claude);
}

/// Covers: JU-08
#[test]
fn needs_codex_no_commit_speaks_for_its_reviewer() {
    is_not_spoken_for(Client::Codex);
}

/// Covers: JU-08
#[test]
fn needs_goose_no_commit_speaks_for_its_reviewer() {
    is_not_spoken_for(Client::Goose);
}
