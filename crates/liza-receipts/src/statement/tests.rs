use super::*;

fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().unwrap()
}

fn maker() -> Maker {
    Maker { git: "2.47.1".into(), liza: "0.1.0".into(), machine: "5f2a".into() }
}

fn statement(predicate: Predicate) -> Statement {
    let task = Some("one".parse().unwrap());
    Statement { project: "c0ffee".into(), task, purpose: Purpose::Merge, predicate }
}

fn validation(command: &str) -> Validation {
    let run = CommandRun::new(command, Origin::Task, Some(0), 3, Digest::of(b"ok\n"));
    let (protected, level) = ("9f".to_owned(), Level::Restricted);
    let (commit, tree, commands, began_with) = (sha('c'), sha('d'), vec![run], None);
    let setup = Some(Digest::of(b"npm ci"));
    Validation { commit, tree, commands, protected, setup, began_with, level, made_by: maker() }
}

fn all() -> Vec<Statement> {
    let review = Review {
        agent: "code-reviewer-1".parse().unwrap(),
        program: Some("codex".into()),
        model: None,
        commit: sha('c'),
        head: sha('a'),
        change: Digest::of(b"change"),
        verdict: ReviewVerdict::Approved,
        made_by: maker(),
    };
    let merge = Merge {
        tree: sha('d'),
        head: sha('a'),
        commit: sha('c'),
        approved_by: Some(Approver::Human),
        without_validation: false,
        evidence: vec![Digest::of(b"x")],
        made_by: maker(),
    };
    let accepted = Acceptance { old: None, head: sha('a'), made_by: maker() };
    let predicates = [
        Predicate::Validation(validation("cargo test")),
        Predicate::Review(review),
        Predicate::Merge(merge),
        Predicate::Acceptance(accepted),
    ];
    predicates.into_iter().map(statement).collect()
}

/// Covers: JU-04
#[test]
fn a_statement_has_one_spelling() {
    for statement in all() {
        let text = statement.encode().unwrap();
        assert_eq!(Statement::decode(&text), Ok(statement.clone()));
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["_type"], TYPE);
        assert!(value["subject"][0]["digest"].is_object(), "{value}");
        let pretty = serde_json::to_vec_pretty(&value).unwrap();
        assert_eq!(Statement::decode(&pretty), Err(StatementError::NotCanonical));
        let mut blank = text.clone();
        blank.push(b'\n');
        assert_eq!(Statement::decode(&blank), Err(StatementError::NotCanonical));
        let mut more = value.clone();
        more["predicate"]["details"]["more"] = true.into();
        more.sort_all_objects();
        let more = Statement::decode(&serde_json::to_vec(&more).unwrap());
        assert!(matches!(more, Err(StatementError::Malformed(_))), "{more:?}");
        let mut other_subject = value;
        other_subject["subject"][0]["name"] = "x".into();
        let other_subject = serde_json::to_vec(&other_subject).unwrap();
        assert_eq!(Statement::decode(&other_subject), Err(StatementError::NotCanonical));
        let twice = String::from_utf8(text).unwrap().replacen("{\"_type\"", "{\"_type\":\"x\",\"_type\"", 1);
        assert!(Statement::decode(twice.as_bytes()).is_err());
    }
    let text = String::from_utf8(all()[2].encode().unwrap()).unwrap();
    assert!(
        text.starts_with(r#"{"_type":"https://in-toto.io/Statement/v1","predicate":{"details":{"#),
        "{text}"
    );
}

/// Covers: JU-04
#[test]
fn a_long_command_is_named_by_its_digest_and_a_statement_stays_small() {
    let command = "x".repeat(100_000);
    let long = validation(&command);
    assert_eq!(long.commands[0].digest, Digest::of(command.as_bytes()));
    assert!(statement(Predicate::Validation(long.clone())).encode().unwrap().len() < 2_000);
    let commands = vec![long.commands[0].clone(); 40];
    let many = statement(Predicate::Validation(Validation { commands, ..long })).encode();
    assert!(matches!(many, Err(StatementError::TooLarge(_))), "{many:?}");
    assert!(matches!(Statement::decode(&[b' '; STATEMENT_MAX + 1]), Err(StatementError::TooLarge(_))));
}

/// `MAX_COMMANDS` of the core is this number: a validation that may run can be stated.
///
/// Covers: JU-04
#[test]
fn thirty_commands_of_any_length_fit_and_keep_their_digests() {
    let mut long = validation("");
    let run = |number: usize| CommandRun {
        exit: Some(i32::MIN),
        seconds: 86_400,
        origin: Origin::Project,
        ..CommandRun::new(&"\u{1}".repeat(1_000 + number), Origin::Task, None, 0, Digest::of(b"ok\n"))
    };
    long.commands = (0..30).map(run).collect();
    let digests = |runs: &[CommandRun]| runs.iter().map(|run| run.digest.clone()).collect::<Vec<_>>();
    let expected = digests(&long.commands);
    let text = statement(Predicate::Validation(long)).encode_shortened().unwrap();
    let Predicate::Validation(kept) = Statement::decode(&text).unwrap().predicate else { panic!() };
    assert_eq!(digests(&kept.commands), expected);
    // One that fits is not shortened.
    for one in all() {
        assert_eq!(one.encode(), one.encode_shortened());
    }
}

/// Covers: JU-04
#[test]
fn a_long_name_of_a_model_keeps_no_review_from_being_stated() {
    let mut one = all().remove(1);
    let Predicate::Review(review) = &mut one.predicate else { panic!() };
    (review.program, review.model) = (Some("p".repeat(9_000)), Some("m".repeat(9_000)));
    assert!(matches!(one.encode(), Err(StatementError::TooLarge(_))));
    assert!(Statement::decode(&one.encode_shortened().unwrap()).is_ok());
}

#[test]
fn levels_are_ordered() {
    assert!(Level::Off < Level::Unenforced && Level::Restricted < Level::Isolated);
    assert_eq!("restricted".parse(), Ok(Level::Restricted));
}

/// Covers: PV-05
#[test]
fn fuzz_statement() {
    liza_testkit::fuzz::fuzz("statement", |bytes, _| {
        if let Ok(statement) = Statement::decode(bytes) {
            assert_eq!(statement.encode().as_deref(), Ok(bytes));
        }
    });
}
