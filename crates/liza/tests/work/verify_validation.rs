//! `liza verify` about validations: what is changed about the statement of one gives its merge another class.

use liza_ids::Digest;
use liza_receipts::{Level, Merge, Predicate, Statement, Validation};

use crate::fixture::*;
use crate::verify::{Clone, newest};

/// The statement of the validation on which the newest merge rests.
fn validation(clone: &Clone<'_>) -> (Digest, Statement, Validation) {
    let evidence = clone.merge_statement("integration").1.evidence;
    let texts = clone.repo().read_receipts(&evidence).unwrap();
    let found = texts.into_iter().find_map(|(digest, text)| {
        let statement = Statement::decode(&text).unwrap();
        let Predicate::Validation(validation) = statement.predicate.clone() else { return None };
        Some((digest, statement, validation))
    });
    found.unwrap()
}

/// Replaces it, and lets the merge rest on the other one; the merge rests on none if there is no other one.
fn replace(clone: &Clone<'_>, other: Option<Statement>, without_validation: bool) {
    let (old, ..) = validation(clone);
    let (statement, mut merge) = clone.merge_statement("integration");
    merge.evidence.retain(|digest| *digest != old);
    let others = other.map(|other| other.encode().unwrap());
    merge.evidence.extend(clone.repo().add_receipts(&others.into_iter().collect::<Vec<_>>()).unwrap());
    let merge = Merge { without_validation, ..merge };
    clone.forge(&Statement { predicate: Predicate::Merge(merge), ..statement });
}

fn edit(clone: &Clone<'_>, edit: impl FnOnce(&mut Validation)) {
    let (_, statement, mut stated) = validation(clone);
    edit(&mut stated);
    replace(clone, Some(Statement { predicate: Predicate::Validation(stated), ..statement }), false);
}

fn of_another(clone: &Clone<'_>, edit: impl FnOnce(&mut Statement)) {
    let (_, mut statement, _) = validation(clone);
    edit(&mut statement);
    replace(clone, Some(statement), false);
}

/// Covers: JU-04, JU-05
#[test]
fn each_kind_of_tampering_with_a_validation_gets_its_class() {
    let project = team();
    project.liza(&["config", "validation", "[\"test -d specs\"]"]).ok();
    for task in ["one", "two"] {
        approved(&project, task);
        merge(&project, task).ok();
    }
    let exit = |clone: &Clone<'_>, exit| edit(clone, |stated| stated.commands[0].exit = exit);
    type Tampering<'t> = (&'t str, &'t str, &'t str, Box<dyn Fn(&Clone<'_>) + 't>);
    let cases: Vec<Tampering<'_>> = vec![
        ("off", "CONSISTENT", "", Box::new(|_| {})),
        (
            "off",
            "CONTRADICTED",
            "was edited",
            Box::new(|clone| clone.edit_receipt(&validation(clone).0, Some("{}"))),
        ),
        ("off", "MISSING", "no receipt", Box::new(|clone| clone.edit_receipt(&validation(clone).0, None))),
        ("off", "CONTRADICTED", "a validation that failed", Box::new(|clone| exit(clone, Some(1)))),
        ("off", "CONTRADICTED", "a validation that failed", Box::new(|clone| exit(clone, None))),
        (
            "off",
            "CONTRADICTED",
            "something else",
            Box::new(|clone| {
                let other = clone.merge_statement("integration^1").1.commit;
                edit(clone, |stated| stated.commit = other);
            }),
        ),
        (
            "off",
            "CONTRADICTED",
            "something else",
            Box::new(|clone| of_another(clone, |statement| statement.task = "one".parse().ok())),
        ),
        (
            "off",
            "CONTRADICTED",
            "another project",
            Box::new(|clone| of_another(clone, |statement| statement.project = "f".repeat(32))),
        ),
        (
            "restricted",
            "MISSING",
            "a validation at off, below restricted",
            Box::new(|clone| edit(clone, |stated| stated.level = Level::Off)),
        ),
        ("off", "MISSING", "no validation at off", Box::new(|clone| replace(clone, None, false))),
        ("off", "OVERRIDDEN", "without validation", Box::new(|clone| replace(clone, None, true))),
    ];
    let mut wrong = Vec::new();
    for (number, (min, class, why, tamper)) in cases.iter().enumerate() {
        let clone = Clone::of(&project);
        tamper(&clone);
        let found = newest(&clone.verify(&["--min", min]));
        if found.0 != *class || !found.1.contains(why) {
            wrong.push(format!("case {number}: {found:?}, expected {class} {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
