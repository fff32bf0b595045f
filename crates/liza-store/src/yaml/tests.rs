use liza_core::model::{Fields, Timestamp, Value};
use proptest::prelude::*;

use super::emit::inline;
use super::node::NonLocalSyntax;
use super::*;
use crate::document::same_value;

fn read(text: &str) -> Value {
    let (node, _) = parse(text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    decode(&node).unwrap()
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[a-z]{1,8}( [a-z]{1,8}){0,3}",
        "[-+.0-9a-fxoeTZ:_ ]{1,12}",
        "[a-z #:,{}\\[\\]&*!|>'\"%@`~?-]{0,12}",
        "( ?[a-z#-]{0,4}\n){1,4}[a-z]{0,3}",
        "(no|On|YES|null|~|True|=|<<|---|\\.\\.\\.|- a|\\.inf|\u{85}|\u{feff}|\u{2028}x|😀|é)",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1e15..1e15f64).prop_map(Value::Float),
        (0i64..4_000_000_000).prop_map(|s| Value::Time(Timestamp::from_unix(s))),
        text.prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::vec(("[a-z_]{1,6}|any|no|1|a: b|", inner), 0..5)
                .prop_map(|entries| Value::Map(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Covers: BB-02, BB-06
    #[test]
    fn a_written_value_reads_back(value in value(), indent in 0usize..5) {
        let pad = " ".repeat(indent);
        let text = format!("{pad}key:{}\n", after_key("key", &value, indent));
        let expected = Value::Map(Fields::from_iter([("key".to_owned(), value.clone())]));
        prop_assert!(same_value(&read(&text), &expected), "{}", text);
        let text = format!("{pad}{}\n", item(&value, indent));
        prop_assert!(same_value(&read(&text), &Value::List(vec![value.clone()])), "{}", text);
        let list = Value::List(vec![value]);
        prop_assert!(same_value(&read(&inline(&list)), &list));
    }
}

/// Covers: BB-04
#[test]
fn ambiguous_texts_are_quoted() {
    let tricky = [
        "no",
        "On",
        "y",
        "017",
        "0x1F",
        "0o17",
        "12e45",
        "1e3",
        "1:30",
        "1_000",
        "~",
        "null",
        "2025-01-17",
        "2025-01-17T14:00:00Z",
        " a",
        "a ",
        "a: b",
        "a #b",
        "",
        "- a",
        "? a",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "a\tb",
        "\u{85}",
        "\u{2028}",
        "\u{feff}a",
        ".inf",
        "=",
        "<<",
        "{a",
        "[a",
        "a,b",
        "'a'",
        "+1",
        "-1",
        "1.5",
        "true",
        "12345678",
        "a:",
        "---",
        "...",
        "\u{7f}",
    ];
    for text in tricky {
        let written = inline(&Value::from(text));
        assert!(written.starts_with('"'), "{text:?} was written as {written}");
        assert_eq!(
            read(&format!("k: {written}")),
            Value::Map(Fields::from_iter([("k".into(), text.into())]))
        );
    }
    for text in
        ["coder-1", "READY_FOR_REVIEW", "a1b2c3d4", ".worktrees/task-2", "Add retry (v2)", "ok 😀", "a:b"]
    {
        assert_eq!(inline(&Value::from(text)), text);
    }
    let time: Timestamp = "2025-01-17T14:00:00Z".parse().unwrap();
    assert_eq!(inline(&Value::Time(time)), "2025-01-17T14:00:00Z");
}

#[test]
fn the_layout_follows_the_schema() {
    let event = Fields::from_iter([
        ("time".to_owned(), Value::Time("2025-01-17T14:05:00Z".parse().unwrap())),
        ("event".to_owned(), "created".into()),
    ]);
    let task = Fields::from_iter([
        ("id".to_owned(), Value::from("task-1")),
        ("depends_on".to_owned(), Value::List(vec!["a".into(), "b".into()])),
        ("questions".to_owned(), Value::List(vec!["Is it so?".into()])),
        ("summary".to_owned(), "one\n\ntwo\n".into()),
        ("none".to_owned(), Value::List(vec![])),
        ("history".to_owned(), Value::List(vec![Value::Map(event)])),
    ]);
    let expected = "- id: task-1\n    depends_on: [a, b]\n    questions:\n      - Is it so?\n    summary: |\n      one\n\n      two\n    none: []\n    history:\n      - { time: 2025-01-17T14:05:00Z, event: created }";
    assert_eq!(item(&Value::Map(task), 2), expected);
}

/// Covers: BB-07
#[test]
fn an_error_has_its_position_and_its_key() {
    let (node, _) = parse("a: 1\nb:\n  count: many\n").unwrap();
    #[derive(serde::Deserialize, Debug)]
    #[expect(dead_code, reason = "only the error matters")]
    struct Inner {
        count: u32,
    }
    #[derive(serde::Deserialize, Debug)]
    #[expect(dead_code, reason = "only the error matters")]
    struct Outer {
        b: Inner,
    }
    let error = decode::<Outer>(&node).unwrap_err();
    assert_eq!(
        (error.position, error.key.as_deref()),
        (Some(Position { line: 3, column: 10 }), Some("count"))
    );
    assert_eq!(error.message, "expected a whole number, found \"many\"");
    let twice = parse("a: 1\na: 2\n").unwrap_err();
    assert_eq!(twice.position, Some(Position { line: 2, column: 1 }));
}

/// Covers: BB-07
#[test]
fn an_alias_bomb_is_refused_and_a_normal_alias_is_not() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let previous = format!("*a{}", n - 1);
        bomb += &format!("a{n}: &a{n} [{}]\n", [previous.as_str(); 10].join(", "));
    }
    assert!(parse(&bomb).unwrap_err().message.contains("aliases"));
    let (node, non_local) = parse("a: &x [1, 2]\nb: *x\n").unwrap();
    assert_eq!(non_local, Some(NonLocalSyntax::Anchor));
    assert_eq!(node.get("b").unwrap().items().len(), 2);
    assert!(parse(&"[".repeat(5000)).is_err());
    assert!(parse(&"- ".repeat(5000)).is_err());
}

/// Covers: BB-04
#[test]
fn untyped_scalars_are_numbers_only_if_all_readers_agree() {
    let texts = ["017", "0x1F", "12e45", "1:30", "no", "1_000", ".inf", "2025-01-17", "+1", "1.", "1e3"];
    for text in texts {
        assert_eq!(resolve(text, Style::Plain), Value::from(text));
    }
    assert_eq!(resolve("-3", Style::Plain), Value::Int(-3));
    assert_eq!(resolve("0.25", Style::Plain), Value::Float(0.25));
    assert_eq!(resolve("true", Style::Quoted), Value::from("true"));
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    Alone,
    Named(String),
    Many(Vec<u8>),
    Pair { left: u8, right: u8 },
}

fn choices(text: &str) -> Result<Vec<Choice>, String> {
    super::read(text).map_err(|error| format!("{} {error}", error.position.unwrap()))
}

#[test]
fn a_variant_is_a_word_or_a_word_with_a_value() {
    let text = "- alone\n- alone:\n- named: x\n- many\n- many: [1, 2]\n- pair: {left: 1, right: 2}\n";
    let wanted = [
        Choice::Alone,
        Choice::Alone,
        Choice::Named("x".to_owned()),
        Choice::Many(Vec::new()),
        Choice::Many(vec![1, 2]),
        Choice::Pair { left: 1, right: 2 },
    ];
    assert_eq!(choices(text).unwrap(), wanted);
    let written = serde_json::to_string(&super::encode::to_value(&wanted[..]).unwrap()).unwrap();
    assert_eq!(choices(&written).unwrap(), wanted, "{written}");
}

#[test]
fn an_invalid_variant_is_reported_with_its_position() {
    for (text, wanted) in [
        ("- alone\n- other\n", "line 2, column 3 \"other\" is not valid"),
        ("- other: 1\n", "line 1, column 3 \"other\" is not valid"),
        ("- alone: 1\n", "line 1, column 10 expected one word, found \"1\""),
        ("- {alone: , named: x}\n", "line 1, column 3 expected one word, found a mapping"),
        ("- [alone]\n", "line 1, column 3 expected one word, found a list"),
        ("- alone\n- named\n", "line 2, column 3 expected text"),
        ("- alone\n- pair\n", "line 2, column 3 the key \"left\" is missing"),
        ("- pair: {left: 1, right: x}\n", "line 1, column 26 expected a whole number"),
    ] {
        let message = choices(text).unwrap_err();
        assert!(message.starts_with(wanted), "{text}: {message}");
    }
}

/// Covers: BB-04
#[test]
fn the_fast_path_for_times_gives_the_same_times() {
    for seconds in (0..7_258_118_400i64).step_by(86_399 * 3) {
        let text = Timestamp::from_unix(seconds).to_string();
        if let Some(time) = canonical_time(&text) {
            assert_eq!(time.unix(), seconds, "{text}");
        }
        assert_eq!(as_time(&text), Some(Timestamp::from_unix(seconds)));
    }
    assert!(canonical_time("2024-02-29T00:00:00Z").is_none());
    assert!(canonical_time("2024-02-28T23:59:59Z").is_some());
}

/// Covers: PV-05, BB-06
#[test]
fn a_long_key_is_read_back() {
    for length in [900, 1_100, 5_000] {
        let fields: Fields = [("k\"".repeat(length), Value::Int(1))].into_iter().collect();
        let nested = Value::Map([("a".to_owned(), Value::Map(fields.clone()))].into_iter().collect());
        for text in [document(&fields), format!("x: {}\n", inline(&nested)), item(&nested, 0)] {
            let (node, _) = parse(&text).unwrap_or_else(|error| panic!("{error:?}: {text}"));
            assert!(crate::document::plain_value(&node).to_string().len() > length);
        }
    }
}
