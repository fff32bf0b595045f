//! Receipts in a chain of commits: added by several at once, joined by union, never lost.

use std::collections::BTreeMap;

use liza_git::RECEIPTS;
use liza_ids::{Digest, Sha};

use crate::support::TestRepo;

fn text(words: &str) -> Vec<u8> {
    words.as_bytes().to_vec()
}

fn tip(test: &TestRepo) -> Sha {
    test.repo.receipts_tip().unwrap()
}

/// A chain from `from` with these files in place of all others.
fn other_chain(test: &TestRepo, from: &Sha, files: &[(&str, &str)]) -> Sha {
    let index = test.home.path().join("index");
    let mut entries = String::new();
    for (path, words) in files {
        let file = test.home.path().join("content");
        std::fs::write(&file, words).unwrap();
        let id = test.git(&["hash-object", "-w", file.to_str().unwrap()]);
        entries.push_str(&format!("100644 {id}\t{path}\n"));
    }
    let _ = std::fs::remove_file(&index);
    let indexed = |arguments: &[&str], input: &str| {
        let command = test.repo.command("making a chain").env("GIT_INDEX_FILE", &index);
        command.args(arguments).stdin(input).read_text().unwrap()
    };
    indexed(&["update-index", "--add", "--index-info"], &entries);
    let tree = indexed(&["write-tree"], "");
    test.git(&["commit-tree", &tree, "-p", from.as_str(), "-m", "theirs"]).parse().unwrap()
}

fn path(digest: &Digest) -> String {
    format!("{}/{digest}.json", digest.parts().0)
}

/// Covers: JU-04
#[test]
fn receipts_are_added_and_read_by_their_digest() {
    let test = TestRepo::new();
    assert_eq!(test.repo.receipts_tip(), None);
    assert!(test.repo.list_receipts().unwrap().is_empty());
    let name = test.repo.project_name().unwrap();
    assert_eq!((name.len(), test.repo.project_name().unwrap()), (32, name.clone()));
    let first = test.repo.add_receipts(&[text("one"), text("two\n\0")]).unwrap();
    assert_eq!(first, [Digest::of(b"one"), Digest::of(b"two\n\0")]);
    let second = test.repo.add_receipts(&[text("three")]).unwrap();
    let unknown = Digest::of(b"unknown");
    let read = test.repo.read_receipts(&[first[1].clone(), unknown, second[0].clone()]).unwrap();
    let expected = [(first[1].clone(), text("two\n\0")), (second[0].clone(), text("three"))];
    assert_eq!(read, BTreeMap::from(expected));
    assert_eq!(test.repo.list_receipts().unwrap().len(), 3);
    assert_eq!(test.repo.project_names().unwrap(), [name]);
    assert_eq!(test.git(&["log", "--format=%an %ce", "-1", RECEIPTS]), "Liza liza@localhost");
}

/// Covers: JU-04
#[test]
fn no_receipt_is_lost_when_several_add_at_once() {
    let test = TestRepo::new();
    let digests: Vec<Digest> = std::thread::scope(|scope| {
        let add = |number: usize| {
            let repo = test.repo.clone();
            scope.spawn(move || {
                repo.project_name().unwrap();
                let add = |round: usize| repo.add_receipts(&[text(&format!("{number} {round}"))]).unwrap();
                (0..5).flat_map(add).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..4).map(add).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(digests.len(), 20);
    assert_eq!(test.repo.read_receipts(&digests).unwrap().len(), 20);
    assert_eq!(test.repo.project_names().unwrap().len(), 1, "one name, whoever was first");
}

/// Covers: JU-04
#[test]
fn two_chains_are_joined_by_union_and_only_by_what_is_a_receipt() {
    let test = TestRepo::new();
    test.repo.project_name().unwrap();
    let ours = test.repo.add_receipts(&[text("ours"), text("both")]).unwrap();
    let base = tip(&test);
    let (theirs, edited) = (Digest::of(b"theirs"), Digest::of(b"another text"));
    let (own_place, wrong_place) = (path(&theirs), format!("aa/{}", Digest::of(b"theirs")));
    let files = [
        (own_place.as_str(), "theirs"),
        (&wrong_place, "theirs"),
        (&path(&edited), "edited"),
        (&path(&ours[1]), "edited too"),
        ("hooks/post-merge", "x"),
        ("project/00000000000000000000000000000000", ""),
    ];
    let chain = other_chain(&test, &base, &files);
    let later = test.repo.add_receipts(&[text("later")]).unwrap();
    let joined = test.repo.join_receipts(&chain).unwrap();
    assert_eq!((tip(&test), test.repo.join_receipts(&chain).unwrap()), (joined.clone(), joined.clone()));
    let all = [ours[0].clone(), ours[1].clone(), later[0].clone(), theirs, edited.clone()];
    let read = test.repo.read_receipts(&all).unwrap();
    assert_eq!(read.len(), 4, "what they lack stays, what is edited is not taken: {read:?}");
    assert!(!read.contains_key(&edited));
    assert_eq!(test.repo.project_names().unwrap().len(), 2);
    assert_eq!(test.git(&["ls-tree", joined.as_str(), "hooks"]), "");
    for parent in [&base, &chain] {
        assert!(test.repo.is_ancestor(parent, &joined).unwrap());
    }
}

/// Covers: JU-04
#[test]
fn an_edited_receipt_is_not_read_and_is_replaced_by_a_valid_one() {
    let test = TestRepo::new();
    test.repo.project_name().unwrap();
    let digest = &test.repo.add_receipts(&[text("true")]).unwrap()[0];
    let valid = tip(&test);
    let edited = other_chain(&test, &valid, &[(&path(digest), "false")]);
    test.git(&["update-ref", RECEIPTS, edited.as_str()]);
    assert!(test.repo.read_receipts(std::slice::from_ref(digest)).unwrap().is_empty());
    assert_eq!(test.repo.list_receipts().unwrap()[digest], text("false"));
    let again = other_chain(&test, &valid, &[(&path(digest), "true")]);
    test.repo.join_receipts(&again).unwrap();
    assert_eq!(test.repo.read_receipts(std::slice::from_ref(digest)).unwrap()[digest], text("true"));
}

/// Covers: JU-04
#[test]
fn receipts_about_a_commit_are_found_by_it_also_those_of_another_machine() {
    let test = TestRepo::new();
    test.repo.project_name().unwrap();
    let base = tip(&test);
    let (one, other) = (test.sha("HEAD"), Sha::clone(&base));
    let first = test.repo.add_receipt_about(b"first", &one).unwrap();
    let theirs = tip(&test);
    test.git(&["update-ref", RECEIPTS, base.as_str()]);
    assert_eq!(test.repo.receipts_about(&one).unwrap(), []);
    let second = test.repo.add_receipt_about(b"second", &one).unwrap();
    test.repo.add_receipt_about(b"third", &other).unwrap();
    test.repo.join_receipts(&theirs).unwrap();
    let mut found = test.repo.receipts_about(&one).unwrap();
    found.sort();
    let mut expected = [first, second];
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(test.repo.read_receipts(&found).unwrap().len(), 2);
}

/// Covers: JU-04
#[test]
fn a_branch_of_the_same_name_is_no_chain() {
    let test = TestRepo::new();
    test.git(&["update-ref", &format!("refs/heads/{RECEIPTS}"), "HEAD"]);
    assert_eq!(test.repo.receipts_tip(), None);
    let name = test.repo.project_name().unwrap();
    test.git(&["pack-refs", "--all"]);
    assert_eq!(test.repo.project_name().unwrap(), name);
    let digest = &test.repo.add_receipts(&[text("one")]).unwrap()[0];
    assert_eq!(test.repo.read_receipts(std::slice::from_ref(digest)).unwrap().len(), 1);
}
