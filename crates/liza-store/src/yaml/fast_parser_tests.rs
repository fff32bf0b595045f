use proptest::prelude::*;

use super::node::{Node, NodeKind};
use super::*;

/// Equal in everything except the end of block collections, which is never used.
fn same(one: &Node<'_>, other: &Node<'_>) -> bool {
    let begin = |node: &Node<'_>| (node.position, node.range().start);
    let kinds = match (&one.kind, &other.kind) {
        (NodeKind::Scalar(a, style), NodeKind::Scalar(b, other_style)) => {
            a == b && style == other_style && one.range() == other.range()
        }
        (NodeKind::List(a, flow), NodeKind::List(b, other_flow)) => {
            flow == other_flow && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (NodeKind::Map(a, flow), NodeKind::Map(b, other_flow)) => {
            let both =
                |((k, v), (l, w)): (&(Node<'_>, Node<'_>), &(Node<'_>, Node<'_>))| same(k, l) && same(v, w);
            flow == other_flow && a.len() == b.len() && a.iter().zip(b).all(both)
        }
        (NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..), _) => false,
    };
    kinds && begin(one) == begin(other)
}

/// True if the fast parser gives a tree, which must be the one of the parser.
pub(crate) fn check(text: &str) -> bool {
    let Some(node) = parse_fast(text) else { return false };
    match parse(text) {
        Ok((full, None)) => assert!(same(&node, &full), "{text:?}\n{node:#?}\n{full:#?}"),
        other => panic!("{text:?} is not local: {other:?}"),
    }
    true
}

/// Covers: BB-02
#[test]
fn the_fast_parser_reads_what_we_write() {
    for text in [
        "agents:\n  coder-1:\n    role: coder\n    lease_expires: 2025-01-17T14:05:00Z\n    current_task: null\n    generation: 7",
        "  - id: one\n    description: Add retry logic (3x); é, – and \"quotes\"\n    depends_on: [a, b-2]\n    priority: 3\n    done_when: |\n      It works\n\n        and is tested\n    failed_by: []\n    history:\n      - { time: 2025-01-17T14:00:00Z, event: created, agent: human, note: \"half done: see\" }\n      - { time: 2025-01-17T14:01:00Z, event: claimed }\n",
        "revision: 17",
        "config:\n  a: 1\n\n  empty:\n  list:\n  - x\n  - y: 1\n    z: 'it''s'\n  text: \"Do \\\"all\\\" of it\\n\"\n  nothing: {}",
    ] {
        assert!(check(text), "{text}");
    }
}

/// Covers: BB-02, BB-07
#[test]
fn the_fast_parser_leaves_everything_else_to_the_parser() {
    for text in [
        "a: b: c",
        "a: 'x",
        "a: \"x\\q\"",
        "a: x # y",
        "# x\na: 1",
        "a: 1\n# x",
        "a: &x 1",
        "a: *x",
        "a: !!str 1",
        "a: [1,\n 2]",
        "a: b\n  c",
        "a: 1\na: 2",
        "a: { b: 1, b: 2 }",
        "- a\nb: 1",
        "a:\n  b: 1\n c: 2",
        "a: |\n  x",
        "a: >\n  x\nb: 1",
        "a: |+\n  x\nb: 1",
        "a:\tb",
        "a: b\r\n",
        "---\na: 1",
        "? a\n: b",
        "{ a: 1 }",
        "a",
        "",
        "a: ,b: [",
        "a: @x",
        "a: %x",
        "\u{feff}a: 1",
        "a: x\u{85}y",
        "a: [a b: c]",
        "a: [x] y",
        "a: \"x\" y",
        "a: - b",
        "a: [-]",
    ] {
        assert!(!check(text), "{text:?}");
    }
}

/// Random combinations of lines that are nearly valid.
fn lines() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        4 => "[a-zé0-9_./~-]{0,5}( [a-z#:é-]{0,4}){0,2}",
        1 => "[a-z:#,\\[\\]{}&*!|>'\"%@`~?\\\\ -]{0,8}",
        1 => "\"[a-z \\\\\"n:#]{0,6}\"",
        1 => "'[a-z ':#]{0,6}'",
        1 => "\\[( ?[a-z:'\"-]{0,3},?){0,3}\\]",
        1 => "\\{( ?[a-b]: ?[a-z\\[\\]'\"-]{0,3},?){0,3}\\}",
        1 => "(\\||\\|-|>|\\|\\+|null|~|-|--- |\\.\\.\\.|2025-01-17T14:00:00Z|-5|1.5)",
    ];
    let lead = prop_oneof![3 => "[a-d]: ", 2 => "[a-d]:", 2 => "- [a-d]: ", 2 => "- ", 1 => Just(String::new()), 1 => "#", 1 => "- - "];
    let line = (0usize..4, lead, scalar)
        .prop_map(|(indent, lead, scalar)| format!("{}{lead}{scalar}", "  ".repeat(indent)));
    let end = prop_oneof![9 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\n\n"), 1 => Just(" \n")];
    let start = prop_oneof![Just("a:\n"), Just("- a: 1\n"), Just("  - id: x\n    b: |\n"), Just("")];
    (start, prop::collection::vec((line, end), 1..7))
        .prop_map(|(start, lines)| lines.iter().fold(start.to_owned(), |text, (line, end)| text + line + end))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: BB-02, BB-07
    #[test]
    fn the_fast_parser_gives_the_tree_of_the_parser(text in lines()) {
        check(&text);
        check(text.trim_end());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: BB-02, BB-06
    #[test]
    fn the_fast_parser_gives_the_tree_of_the_parser_for_what_we_write(value in super::tests::value(), indent in 0usize..5) {
        let pad = " ".repeat(indent);
        check(&format!("{pad}key:{}", after_key("key", &value, indent)));
        check(&format!("{pad}key:{}\n{pad}more: 1", after_key("key", &value, indent)));
        check(&format!("{pad}{}\n", item(&value, indent)));
    }
}
