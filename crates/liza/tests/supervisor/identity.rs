//! Inside a session, no command acts as the human or as another agent: the session is the identity.

use std::fs;

use liza_core::model::Status;
use liza_testkit::evidence::tried;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// Ways to act as somebody else, each with the file that its answer goes to.
const TRICKS: &str = r#"
root=$(cd ../.. && pwd)
env -u LIZA_AGENT_ID -u LIZA_AGENT_GENERATION "$LIZA" accept-integration --json > "$HOME/unset" 2>&1
env -i PATH="$PATH" HOME="$HOME" "$LIZA" -C "$root" accept-integration --json > "$HOME/empty" 2>&1
(cd / && env -i PATH="$PATH" HOME="$HOME" "$LIZA" -C "$root" accept-integration --json > "$HOME/elsewhere" 2>&1)
LIZA_AGENT_ID=planner-1 LIZA_AGENT_GENERATION=1 "$LIZA" supersede-task t1 --reason x --root-cause y --by t2 --json > "$HOME/other" 2>&1
export LIZA root
setsid sh -c '(sleep 0.2; env -i PATH="$PATH" HOME="$HOME" "$LIZA" -C "$root" accept-integration --json > "$HOME/part" 2>&1; mv "$HOME/part" "$HOME/detached") &' &
while [ ! -e "$HOME/detached" ]; do sleep 0.1; done
echo '"$LIZA" -C "$root" accept-integration --json; true' > "$HOME/session"
(cd "$HOME" && bash session --of "$root" code-reviewer-1 1) > "$HOME/pretended" 2>&1
mkdir -p "$TMPDIR/other" && cd "$TMPDIR/other" && git init -q && git commit -q --allow-empty -m start
"$LIZA" init "Another project" > "$HOME/init" 2>&1
"$LIZA" accept-integration --json > "$HOME/foreign" 2>&1
cd "$root/.worktrees/$1"
"#;

/// Covers: IS-02
#[test]
#[cfg(target_os = "linux")]
fn nobody_in_a_session_is_the_human_or_another_agent() {
    let bench = Bench::new("", &[("c", &format!("{TRICKS}\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", bench.outputs());
    let answer = |name: &str| fs::read_to_string(bench.project.home().join(name)).unwrap();
    for trick in ["unset", "other", "pretended"] {
        let text = answer(trick);
        assert!(text.contains("not_permitted") && text.contains("coder-1"), "{trick}: {text}");
    }
    // Without the session's secret they do not even speak for the agent.
    for trick in ["empty", "elsewhere", "detached"] {
        let text = answer(trick);
        assert!(text.contains("no_channel") && text.contains("coder-1"), "{trick}: {text}");
    }
    tried("a session speaks as the human or as another agent", 6);
    assert!(answer("foreign").contains("\"ok\":true"), "{} {}", answer("init"), answer("foreign"));
    wait_for("the work is submitted", || (bench.status("t1") == Status::ReadyForReview).then_some(()));
}

/// Covers: AX-06, IS-10
#[test]
fn a_session_can_submit_a_persons_commit_but_not_another_agents() {
    let coder = r#"
echo "work" > "$1.txt"; git add .; GIT_AUTHOR_NAME="coder-7 for Ada" git commit -qm "as another agent"
"$LIZA" pre-check "$1" --intent "do it" --validation "cat $1.txt"
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)" > "$HOME/refused" 2>&1 && exit 1
git reset -q --soft HEAD^; GIT_AUTHOR_NAME=Ada git commit -qm "as Ada"
echo "more" >> "$1.txt"; git commit -qam "as itself"
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)"
exit 42"#;
    let bench = Bench::new("", &[("c", coder)]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    assert_eq!(bench.project.status("t1"), "READY_FOR_REVIEW");
    let refused = fs::read_to_string(bench.project.home().join("refused")).unwrap();
    assert!(refused.contains("is the work of coder-7") && !refused.contains("author"), "{refused}");
    let authors = bench.project.git(&["log", "-2", "--format=%an", "task/t1"]);
    assert!(authors.starts_with("coder-1 for ") && authors.ends_with("\nAda"), "{authors}");
    assert!(bench.project.log().contains("with commits by Ada"), "{}", bench.project.log());
}
