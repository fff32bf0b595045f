//! The places that several programs use, and the rule of trust for them: nothing that a session can write is read by a program
//! of a higher label. The table in docs/safety.md is made from here; each row names what tries it.

use std::fs;
use std::path::Path;

use crate::hostile::{ATTEMPTS, Column, column_of};

/// The programs that use a place, the least trusted first. A place has the label of the least that writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// One session of an agent program.
    Session,
    /// The code under test of one task, in a review of one commit.
    Commit,
    /// The sessions of one role in one project.
    Role,
    /// Your programs, and Liza.
    Person,
}

impl Label {
    fn name(self) -> &'static str {
        match self {
            Label::Session => "one session",
            Label::Commit => "tests of a commit",
            Label::Role => "sessions of a role",
            Label::Person => "you and Liza",
        }
    }
}

use Label::{Commit, Person, Role, Session};

/// The test that tries a row.
enum Tried {
    /// A row of the table of attempts, with that beginning.
    Attempt(&'static str),
    /// A test of its own, by the end of its file's path and its name.
    Test(&'static str, &'static str),
}

use Tried::{Attempt, Test};

struct Place {
    what: &'static str,
    written: &'static [Label],
    read: &'static [Label],
    /// The least level at which the row holds.
    from: Column,
    tried: &'static [Tried],
}

const RESTRICTED: Column = Column::Restricted;
const ISOLATED: Column = Column::Isolated;

const fn place(
    what: &'static str,
    written: &'static [Label],
    read: &'static [Label],
    from: Column,
    tried: &'static [Tried],
) -> Place {
    Place { what, written, read, from, tried }
}

#[rustfmt::skip]
const PLACES: &[Place] = &[
    place("your checkout with its build folders", &[Person], &[Person, Role, Session], RESTRICTED,
        &[Attempt("write to your checkout"), Attempt("leave a program in your build folder")]),
    place("what cargo has downloaded and unpacked for you", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("change what cargo has downloaded"), Test("supervisor/cargo.rs", "what_a_session_plants_in_cargos_downloads_is_built_by_no_other_role_and_not_by_the_person")]),
    place("your caches of npm, pip and go", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("leave something in your caches"), Test("supervisor/downloads.rs", "needs_node_a_session_installs_what_the_person_has_downloaded_without_a_network")]),
    place("caches and downloads of a role", &[Role], &[Role], RESTRICTED,
        &[Attempt("change the reviewer's caches"), Test("supervisor/cargo.rs", "what_a_session_plants_in_cargos_downloads_is_built_by_no_other_role_and_not_by_the_person")]),
    place("caches and build folders of tests", &[Commit], &[Commit], RESTRICTED,
        &[Attempt("leave something for the tests"), Test("work/merge.rs", "the_test_of_a_merge_reads_nothing_that_the_test_of_another_merge_left"), Test("supervisor/copies.rs", "nothing_that_is_written_in_a_copy_reaches_what_it_is_a_copy_of"), Test("work/head_build.rs", "work_changes_neither_the_build_nor_the_next_run")]),
    place("the checkout of a task, until it is submitted", &[Session], &[Session], RESTRICTED,
        &[Attempt("write to another worktree")]),
    place("the checkout of a review", &[Person], &[Role, Commit], RESTRICTED,
        &[Attempt("change the checkout that the reviewer reads"), Attempt("be run by the reviewer outside")]),
    place("git's settings, hooks and attributes in a worktree, between sessions", &[Person], &[Person], RESTRICTED,
        &[Attempt("have your git run a program"), Test("git/workspace.rs", "git_starts_nothing_for_a_person_who_enters_a_worktree_after_a_session")]),
    place("references, notes, hooks and settings of the project's git", &[Person], &[Person, Role, Session], RESTRICTED,
        &[Attempt("create a branch in the project"), Attempt("add a note to a commit"), Attempt("plant a tag"), Attempt("plant a hook"), Attempt("change the project's git configuration")]),
    place("`/tmp`", &[Person], &[Person], RESTRICTED, &[Attempt("leave a file in your `/tmp`")]),
    place("`/dev/shm`", &[Person], &[Person], ISOLATED,
        &[Attempt("read what you keep in `/dev/shm`"), Attempt("leave a file in your `/dev/shm`")]),
    place("your logins", &[Person], &[Person], RESTRICTED,
        &[Attempt("change the login of its program"), Test("session/login.rs", "nothing_but_tokens_and_times_is_taken")]),
    place("settings of agent programs", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("change the settings of its program"), Attempt("leave settings for the next session")]),
    place("answers at a port of this machine", &[Person], &[Person], ISOLATED,
        &[Attempt("answer for a server of yours"), Test("supervisor/rooms.rs", "no_session_answers_for_a_service_of_the_person_or_of_another_session")]),
    place("the files that judge a merge, where tested code runs", &[Person], &[Person, Commit], ISOLATED,
        &[Attempt("accept its own change of what judges it"), Test("supervisor/copies.rs", "sealed_files_cannot_be_changed_replaced_or_moved_away")]),
    place("hidden acceptance tests (`holdout`)", &[Person], &[Person], RESTRICTED,
        &[Attempt("read your hidden acceptance tests"), Test("work/holdout.rs", "what_it_runs_is_a_copy_at_a_random_path_and_no_other_code_reads_it"), Test("work/holdout.rs", "what_it_runs_reaches_no_place_that_the_person_has_opened_to_sessions")]),
    place("accepted settings of a shared blackboard", &[Person], &[Person], RESTRICTED,
        &[Attempt("accept settings for you"), Test("machines/settings.rs", "needs_postgres_what_another_machine_or_an_sql_writer_sets_runs_nothing_until_it_is_accepted")]),
];

/// Covers: RO-01
#[test]
fn no_place_that_a_session_writes_is_read_by_a_program_of_a_higher_label() {
    for Place { what, written, read, .. } in PLACES {
        let label = written.iter().min().unwrap();
        assert!(
            read.iter().all(|reader| reader <= label),
            "{what}: written by {written:?}, read by {read:?}"
        );
    }
}

/// Covers: RO-01
#[test]
fn each_place_is_tried_at_its_level_by_an_attack_that_succeeds_without_it() {
    let page = fs::read_to_string(crates().join("../docs/safety.md")).unwrap();
    let is_attempt = |tried: &Tried| matches!(tried, Attempt(_));
    let others: Vec<_> = PLACES.iter().filter(|place| !place.tried.iter().any(is_attempt)).collect();
    assert!(others.is_empty(), "a hostile session tries each place: {}", others[0].what);
    for Place { what, from, tried, .. } in PLACES {
        for tried in *tried {
            match tried {
                Attempt(beginning) => {
                    let attempts: Vec<_> =
                        ATTEMPTS.iter().filter(|attempt| attempt.what.starts_with(beginning)).collect();
                    assert_eq!(attempts.len(), 1, "{what}: {beginning}");
                    let cell = |column| column_of(&page, attempts[0].what, column);
                    assert_eq!(cell(*from), "refused", "{what}: {beginning}");
                    assert_eq!(cell(ISOLATED), "refused", "{what}: {beginning}");
                }
                Test(file, name) => assert!(is_test(file, name), "{what}: {file} has no test {name}"),
            }
        }
        let succeeds = |tried: &Tried| match tried {
            Attempt(beginning) => {
                let attempt = ATTEMPTS.iter().find(|attempt| attempt.what.starts_with(beginning)).unwrap();
                column_of(&page, attempt.what, Column::Off) == "allowed"
            }
            // It shows by itself what it is about.
            Test(..) => true,
        };
        assert!(tried.iter().any(succeeds), "{what}: no attempt succeeds without protection");
    }
}

fn crates() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// True if a file with that end has a test of that name.
fn is_test(file: &str, name: &str) -> bool {
    let places =
        ["liza/tests", "liza-git/tests", "liza-team/src"].map(|folder| crates().join(folder).join(file));
    let texts = places.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.into_iter().any(|text| text.contains(&format!("fn {name}()")))
}

const BEGIN: &str = "<!-- places: generated by `just bless` -->\n";
const END: &str = "<!-- end of places -->\n";

/// Covers: RO-01
#[test]
fn the_places_with_their_labels_are_in_the_safety_page() {
    let mut table =
        "| Place | Written by | Read by | Holds from | Tried by |\n|---|---|---|---|---|\n".to_owned();
    for Place { what, written, read, from, tried } in PLACES {
        let names = |labels: &[Label]| labels.iter().map(|label| label.name()).collect::<Vec<_>>().join(", ");
        let mut tries: Vec<String> = tried.iter().map(in_words).collect();
        tries.dedup();
        let cells = [*what, &names(written), &names(read), from.name(), &tries.join("; ")].join(" | ");
        table.push_str(&format!("| {cells} |\n"));
    }
    let page = crates().join("../docs/safety.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("LIZA_BLESS").is_some() {
        fs::write(&page, &expected).unwrap();
    }
    assert_eq!(text, expected, "docs/safety.md has other places; run: just bless");
}

fn in_words(tried: &Tried) -> String {
    match tried {
        Attempt(beginning) => {
            ATTEMPTS.iter().find(|attempt| attempt.what.starts_with(beginning)).unwrap().what.to_owned()
        }
        Test(file, _) => format!("`{file}`"),
    }
}
