//! The commands of a session go through its channel: same output, same exit codes, and nothing that a session may not do.

use std::fs;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// Runs a coder with these steps before its work; returns the content of the files that they wrote.
fn coder_with(steps: &str) -> Bench {
    let bench = Bench::new("", &[("c", &format!("{steps}\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", bench.outputs());
    wait_for("the work is submitted", || (bench.status("t1") == Status::ReadyForReview).then_some(()));
    bench
}

/// Waits for a note, then asks for something twice.
const NOTED: &str = r#"
touch "$HOME/began"
until [ -e "$HOME/go-on" ]; do sleep 0.05; done
"$LIZA" get .goal.id > "$HOME/told" 2>&1
"$LIZA" get .goal.id >> "$HOME/told" 2>&1
"#;

fn written(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.project.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Covers: IS-01
#[test]
fn texts_on_standard_input_output_and_exit_codes_are_those_of_the_command() {
    let bench = coder_with(
        r#"
printf 'first line\nsecond line' | "$LIZA" discover --task "$1" --desc - --severity low > "$HOME/out" 2> "$HOME/err"
echo "exit $?" >> "$HOME/out"
"$LIZA" show no-such-task > "$HOME/missing" 2>&1; echo "exit $?" >> "$HOME/missing"
"$LIZA" get .goal.id > "$HOME/goal"
(cd / && "$LIZA" get .goal.id > "$HOME/elsewhere")
"$LIZA" log -f > "$HOME/follow" 2>&1; echo "exit $?" >> "$HOME/follow"
"$LIZA" nonsense > "$HOME/usage" 2>&1; echo "exit $?" >> "$HOME/usage"
"#,
    );
    let out = written(&bench, "out");
    assert!(out.ends_with("exit 0\n"), "{out} {}", written(&bench, "err"));
    assert!(fs::read_to_string(bench.project.root.join(".liza/state.yaml")).unwrap().contains("second line"));
    assert!(
        written(&bench, "missing").contains("no-such-task")
            && written(&bench, "missing").ends_with("exit 1\n")
    );
    assert_eq!(written(&bench, "goal"), "goal-1\n");
    assert_eq!(written(&bench, "elsewhere"), "goal-1\n", "the session fixes the project");
    assert!(written(&bench, "follow").contains("does not work in a session"));
    assert!(
        written(&bench, "usage").contains("unrecognized") && written(&bench, "usage").ends_with("exit 1\n")
    );
}

/// Covers: AX-23
#[test]
fn a_note_reaches_the_running_session_and_the_next_prompt_and_show_says_who_has_read_it() {
    let bench = Bench::new("", &[("c", &format!("{NOTED}\n{CODER}"))]);
    bench.project.add_task("t1");
    let note = |text: &str| bench.project.liza(&["note", text, "--for", "t1"]).ok().to_owned();
    let said = note("before the claim");
    assert!(
        said.starts_with("note added; it is read by the coder that takes t1, the code reviewer"),
        "{said}"
    );
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    wait_for("the session runs", || bench.project.home().join("began").exists().then_some(()));
    wait_for("show names the reader", || {
        let shown = bench.project.liza(&["show", "t1"]).ok().to_owned();
        shown.contains("before the claim (read by coder-1)").then_some(())
    });
    let said = note("while it works");
    assert!(
        said.contains(
            "read by coder-1 with the answer to its next command, the code reviewer that takes t1, "
        ),
        "{said}"
    );
    let shown = bench.project.liza(&["show", "t1"]).ok().to_owned();
    assert!(shown.contains("while it works (not read yet)"), "{shown}");
    fs::write(bench.project.home().join("go-on"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", bench.outputs());
    let told = written(&bench, "told");
    assert_eq!(told.matches("note of the human: while it works").count(), 1, "once: {told}");
    assert!(!told.contains("before the claim"), "that was in its prompt: {told}");
    assert!(bench.prompts().concat().contains("before the claim"));
    let shown = bench.project.liza(&["show", "t1", "--json"]).result();
    assert_eq!(shown["notes"][1]["read_by"], serde_json::json!(["coder-1"]), "{shown:#}");
}

/// Covers: IS-01
#[test]
fn lock_modify_runs_on_a_copy_with_the_rights_of_the_session() {
    let bench = coder_with(
        r#"
"$LIZA" lock modify "pwd > \"$HOME/where\"; sed -i 's/^goal:/own_note: mine\ngoal:/' .liza/state.yaml" > "$HOME/own" 2>&1
"$LIZA" lock modify "sed -i 's/^goal:/second: \"\$(ps -o comm= -p \$PPID)\"\ngoal:/' \"\$LIZA_STATE\"" > "$HOME/second" 2>&1
"$LIZA" lock modify "sed -i 's/^config:/config:\n  max_review_cycles: 999/' .liza/state.yaml" > "$HOME/config" 2>&1
"$LIZA" lock modify "echo '}' > .liza/state.yaml" > "$HOME/broken" 2>&1
"$LIZA" lock modify true > "$HOME/same" 2>&1
"$LIZA" lock modify false > "$HOME/failed" 2>&1; echo "exit $?" >> "$HOME/failed"
"#,
    );
    assert_eq!(written(&bench, "own"), "change applied\n");
    let state = fs::read_to_string(bench.project.root.join(".liza/state.yaml")).unwrap();
    assert!(state.contains("own_note: mine") && !state.contains("max_review_cycles: 999"), "{state}");
    assert!(written(&bench, "where").contains("liza-modify-"), "{}", written(&bench, "where"));
    assert!(written(&bench, "config").contains("coder-1"), "{}", written(&bench, "config"));
    assert!(written(&bench, "broken").contains("unchanged"), "{}", written(&bench, "broken"));
    assert_eq!(written(&bench, "same"), "nothing was changed\n");
    assert!(written(&bench, "failed").ends_with("exit 1\n"), "{}", written(&bench, "failed"));
}

/// Covers: IS-01, IS-02
#[test]
fn a_session_uses_only_its_own_channel_and_only_what_its_role_may() {
    let bench = coder_with(
        r#"
"$LIZA" add-task --id other --desc d --done x --scope y --json > "$HOME/plan" 2>&1
"$LIZA" submit-verdict "$1" APPROVED "all green" --json > "$HOME/approve" 2>&1
"$LIZA" run --json > "$HOME/run" 2>&1
"$LIZA" edit --json > "$HOME/edit" 2>&1
"$LIZA" doctor --json > "$HOME/doctor" 2>&1
"$LIZA" retro --json > "$HOME/retro" 2>&1
LIZA_CHANNEL="0$LIZA_CHANNEL" "$LIZA" status --json > "$HOME/secret" 2>&1
LIZA_CHANNEL="x:/no/such/socket" "$LIZA" status --json > "$HOME/gone" 2>&1; echo " exit $?" >> "$HOME/gone"
echo '"$LIZA" status --json; true' > "$HOME/check"; export LIZA
(cd "$HOME" && bash check --of this) > "$HOME/tested" 2>&1
printf '%s' "$LIZA_CHANNEL" > "$HOME/channel"
"#,
    );
    for name in ["plan", "approve", "run", "edit", "doctor", "retro"] {
        let text = written(&bench, name);
        assert!(text.contains("not_permitted") && text.contains("coder-1"), "{name}: {text}");
    }
    let tested = written(&bench, "tested");
    assert!(tested.contains("not_permitted") && tested.contains("under test"), "{tested}");
    assert!(written(&bench, "secret").contains("not_this_session"), "{}", written(&bench, "secret"));
    let gone = written(&bench, "gone");
    assert!(gone.contains("no_supervisor") && gone.ends_with("exit 42\n"), "{gone}");
    let channel = written(&bench, "channel");
    let socket = channel.split_once(':').unwrap().1;
    assert!(!std::path::Path::new(socket).exists(), "the socket of an ended session is gone");
}
