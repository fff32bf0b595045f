//! Another YAML implementation reads the same values from what we write.

use std::path::Path;
use std::process::Command as Process;

use liza_core::protocol::{AddTask, Command};

use crate::support::*;

/// The content of a file according to PyYAML's safe loader; times as ISO text.
fn read_by_pyyaml(path: &Path) -> serde_json::Value {
    let script = "import sys, yaml, json, datetime\n\
        def plain(x):\n\
        \x20   if isinstance(x, dict): return {str(k): plain(v) for k, v in x.items()}\n\
        \x20   if isinstance(x, list): return [plain(v) for v in x]\n\
        \x20   if isinstance(x, datetime.datetime): return x.strftime('%Y-%m-%dT%H:%M:%SZ')\n\
        \x20   return x\n\
        print(json.dumps(plain(yaml.safe_load(open(sys.argv[1], 'rb')))))";
    let output = Process::new("python3").args(["-c", script]).arg(path).output();
    let output = output.expect("python3 has PyYAML; ./check leaves this test out without it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Covers: BB-02, BB-04, BB-06
#[test]
fn needs_pyyaml_other_readers_agree_on_unusual_texts() {
    let project = Project::new("pyyaml");
    let tricky = [
        "no",
        "017",
        "0x1F",
        "12e45",
        "1:30",
        "~",
        "null",
        "2025-01-17",
        "a: b",
        "a #b",
        " x ",
        "- a",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "\"q\"",
        "'q'",
        "a\tb",
        "multi\nline\n",
        "multi\n\n  indented\nend",
        "emoji 😀",
        "é\u{85}x",
        "\u{2028}",
        "\u{feff}",
        "\u{7f}",
        "{a}",
        "[a]",
        "a,b",
        "=",
        "<<",
        "yes",
        "1_000",
        ".inf",
        "---",
        "...",
        "a:",
        "\\",
        "\u{202e}rtl",
        "trailing \nspace",
        "#",
        "\r\n",
        "\u{0}",
    ];
    for (n, text) in tricky.iter().enumerate() {
        // A note is folded to one line, so the text is also used in a field that keeps it.
        let task_id = format!("t{n}");
        let new = liza_core::protocol::NewTask {
            description: format!("x{text}"),
            scope: Some((*text).to_owned()),
            draft: true,
            ..Default::default()
        };
        let _ = project.submit(Command::from(AddTask { task: task(&task_id), new }));
        let _ = project.submit(note(text));
    }
    project.run(register("coder-1"));
    agree(&project);
    assert!(read_by_pyyaml(&project.file("log.yaml")).is_array());
}

/// Checks that PyYAML reads the same blackboard.
pub(crate) fn agree(project: &Project) {
    let theirs = read_by_pyyaml(&project.file("state.yaml"));
    let ours = project.store().read_path(".").unwrap().remove(0);
    assert_eq!(theirs, serde_json::to_value(&ours).unwrap());
}
