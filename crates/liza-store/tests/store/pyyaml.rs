//! Another YAML implementation reads the same values from what we write.

use std::path::Path;
use std::process::Command as Process;

use liza_core::protocol::{AddTask, Command};

use crate::support::*;

/// How Python programs load a file.
const PYYAML: &str = "import yaml; data = yaml.safe_load(file)";
const RUAMEL: &str = "import ruamel.yaml; data = ruamel.yaml.YAML(typ='safe', pure=True).load(file)";

/// The content of a file according to PyYAML's safe loader; times as ISO text.
fn read_by_pyyaml(path: &Path) -> serde_json::Value {
    read_by(PYYAML, path)
}

fn read_by(loader: &str, path: &Path) -> serde_json::Value {
    let script = format!(
        "import sys, json, datetime\n\
         def plain(x):\n\
         \x20   if isinstance(x, dict): return {{str(k): plain(v) for k, v in x.items()}}\n\
         \x20   if isinstance(x, list): return [plain(v) for v in x]\n\
         \x20   if isinstance(x, datetime.datetime): return x.strftime('%Y-%m-%dT%H:%M:%SZ')\n\
         \x20   return x\n\
         file = open(sys.argv[1], 'rb')\n\
         {loader}\n\
         print(json.dumps(plain(data)))"
    );
    let output = Process::new("python3").args(["-c", &script]).arg(path).output();
    let output = output.expect("python3 has the loader; ./check leaves this test out without it");
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

/// Every special character alone, in pairs, and around a word; then random texts of them.
fn special_texts() -> Vec<String> {
    let special: Vec<char> =
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \t\n\r0a\u{85}\u{a0}\u{2028}\u{feff}\u{200f}\u{e000}é😀"
            .chars()
            .collect();
    let mut texts: Vec<String> = special.iter().map(char::to_string).collect();
    for one in &special {
        texts.extend(special.iter().map(|other| format!("{one}{other}")));
        texts.push(format!("a{one}b"));
        texts.push(format!("From which hour{one}"));
        texts.push(format!("From which hour{one} on"));
        texts.push(format!("a {one} b\nc{one}\n"));
    }
    // A fixed sequence, so that a failure can be repeated.
    let mut state = 42u64;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for _ in 0..3_000 {
        let length = 1 + next(12);
        texts.push((0..length).map(|_| special[next(special.len())]).collect());
    }
    texts
}

/// A document with texts in every place in which the store writes one.
fn every_place(texts: &[String]) -> liza_core::model::Fields {
    use liza_core::model::{Fields, Value};
    let texts = || texts.iter().map(|text| Value::from(text.as_str()));
    let pairs = |n: usize, value: Value| (format!("k{n}"), value);
    let list = |key: &str, value: Value| (key.to_owned(), value);
    let event = |value: Value| {
        Value::Map(Fields::from_iter([
            list("time", Value::from("x")),
            list("event", value.clone()),
            list("n", Value::List(vec![value])),
        ]))
    };
    let keyed = |value: Value| Value::Map(Fields::from_iter([(value.to_string(), value)]));
    Fields::from_iter([
        list("values", Value::Map(texts().enumerate().map(|(n, value)| pairs(n, value)).collect())),
        list("items", Value::List(texts().collect())),
        list("short", Value::List(texts().map(|value| Value::List(vec![value])).collect())),
        list(
            "in_keys",
            Value::Map(texts().enumerate().map(|(n, value)| pairs(n, Value::List(vec![value]))).collect()),
        ),
        list("events", Value::List(texts().map(event).collect())),
        list("keys", Value::List(texts().map(keyed).collect())),
        list(
            "usage",
            Value::List(
                texts().map(|value| Value::Map(Fields::from_iter([list("usage", keyed(value))]))).collect(),
            ),
        ),
    ])
}

fn assert_every_text_is_read_by(loader: &str) {
    let fields = every_place(&special_texts());
    let project = Project::empty("special");
    let path = project.file("special.yaml");
    std::fs::write(&path, liza_store::yaml::document(&fields)).unwrap();
    let theirs = read_by(loader, &path);
    let ours = serde_json::to_value(liza_core::model::Value::Map(fields)).unwrap();
    for (name, section) in ours.as_object().unwrap() {
        let entries = |value: &serde_json::Value| -> Vec<serde_json::Value> {
            value
                .as_array()
                .cloned()
                .or_else(|| Some(value.as_object()?.values().cloned().collect()))
                .unwrap()
        };
        let (ours, theirs) = (entries(section), entries(&theirs[name]));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}

/// Covers: AC-26
#[test]
fn needs_pyyaml_every_special_character_reads_back_the_same() {
    assert_every_text_is_read_by(PYYAML);
}

/// Covers: AC-26
#[test]
fn needs_ruamel_every_special_character_reads_back_the_same() {
    assert_every_text_is_read_by(RUAMEL);
}

/// Checks that PyYAML reads the same blackboard.
pub(crate) fn agree(project: &Project) {
    let theirs = read_by_pyyaml(&project.file("state.yaml"));
    let ours = project.store().read_path(".").unwrap().remove(0);
    assert_eq!(theirs, serde_json::to_value(&ours).unwrap());
}
