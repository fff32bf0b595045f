//! Another YAML implementation reads what we write as what we meant.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use liza_core::Command;

use crate::support::*;

/// A Python with PyYAML; installed below the target folder where it is missing.
fn python() -> Option<(PathBuf, PathBuf)> {
    let extra = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pyyaml");
    let python = PathBuf::from("python3");
    let has = || {
        let run = Process::new(&python).args(["-c", "import yaml"]).env("PYTHONPATH", &extra).output();
        run.is_ok_and(|output| output.status.success())
    };
    if !has() {
        let mut pip = Process::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&extra).arg("pyyaml");
        let _ = pip.output();
    }
    has().then_some((python, extra))
}

/// The file as PyYAML's safe loader sees it, as JSON with sorted keys; times as ISO text.
fn seen_by_pyyaml(path: &Path) -> Option<String> {
    let (python, extra) = python()?;
    let script = "import sys, yaml, json, datetime\n\
        def plain(x):\n\
        \x20   if isinstance(x, dict): return {str(k): plain(v) for k, v in x.items()}\n\
        \x20   if isinstance(x, list): return [plain(v) for v in x]\n\
        \x20   if isinstance(x, datetime.datetime): return x.strftime('%Y-%m-%dT%H:%M:%SZ')\n\
        \x20   return x\n\
        print(json.dumps(plain(yaml.safe_load(open(sys.argv[1], 'rb'))), sort_keys=True))";
    let output =
        Process::new(python).args(["-c", script]).arg(path).env("PYTHONPATH", extra).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Covers: BB-02, BB-04, BB-06
#[test]
fn pyyaml_reads_what_we_write() {
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
        // The command folds what is not one line, so the text also goes where it stays as it is.
        let task_id = format!("t{n}");
        let new = liza_core::command::NewTask {
            description: format!("x{text}"),
            scope: Some((*text).to_owned()),
            draft: true,
            ..Default::default()
        };
        let _ = project.submit(Command::AddTask { task: task(&task_id), new });
        let _ = project.submit(note(text));
    }
    project.run(register("coder-1"));
    if agree(&project) {
        assert!(seen_by_pyyaml(&project.file("log.yaml")).is_some());
    }
}

/// Both readers see the same in the blackboard; says whether there was a second reader.
pub(crate) fn agree(project: &Project) -> bool {
    let Some(theirs) = seen_by_pyyaml(&project.file("state.yaml")) else {
        println!("SKIPPED: no python3 with PyYAML, and pip could not install it");
        return false;
    };
    let ours = project.store().read_path(".").unwrap().remove(0);
    let mut ours_json = String::new();
    json(&mut ours_json, &ours);
    assert_eq!(theirs.trim(), ours_json);
    true
}

/// JSON as Python writes it, keys sorted.
fn json(out: &mut String, value: &liza_core::value::Value) {
    use liza_core::value::Value;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&value.to_string()),
        Value::Time(time) => json_text(out, &time.to_string()),
        Value::Text(text) => json_text(out, text),
        Value::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                json(out, item);
            }
            out.push(']');
        }
        Value::Map(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            out.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                json_text(out, key);
                out.push_str(": ");
                json(out, &fields[key]);
            }
            out.push('}');
        }
    }
}

fn json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}
