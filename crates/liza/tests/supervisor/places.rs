//! The places that several programs use, and the rule of trust for them: nothing that a session can write is read by a program
//! of a higher label, unless a row says so and names what ends it. The table in docs/safety.md is made from here; each row names
//! what tries it.

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
    /// A test of its own, by the end of its file's path and its name, with the code in which it shows that the attack succeeds
    /// where nothing holds it; empty if it shows only that it is held.
    Test(&'static str, &'static str, &'static str, At),
}

/// The levels at which a test tries its row. Attempts are made at all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// One after the other: `isolated` and `restricted`.
    Levels,
    /// No confinement takes part in it.
    Any,
    /// What it tries is there in rooms only.
    Room,
}

use At::{Any, Levels, Room};

/// What ends the violation of a row.
enum Ends {
    /// The row violates nothing.
    Nothing,
    /// A setting, a command or a way of working of the person, or a rule of Liza.
    With(&'static str),
}

use Ends::{Nothing, With};

use Tried::{Attempt, Test};

struct Place {
    what: &'static str,
    written: &'static [Label],
    read: &'static [Label],
    ends: Ends,
    /// The least level at which the row holds.
    from: Column,
    tried: &'static [Tried],
}

impl Place {
    /// What the attempts of the row have shown at a level.
    fn at(&self, level: Column, page: &str) -> &'static str {
        let is_refused = |tried: &Tried| match tried {
            Attempt(beginning) => column_of(page, attempt(beginning).what, level) == "refused",
            Test(..) => true,
        };
        let is_promised = level == ISOLATED || self.from != ISOLATED;
        match (&self.ends, is_promised && self.tried.iter().all(is_refused)) {
            (With(_), _) => "–",
            (Nothing, true) => "holds",
            (Nothing, false) => "does not hold",
        }
    }
}

/// The only attempt with that beginning.
fn attempt(beginning: &str) -> &'static crate::hostile::Attempt {
    let attempts: Vec<_> = ATTEMPTS.iter().filter(|attempt| attempt.what.starts_with(beginning)).collect();
    assert_eq!(attempts.len(), 1, "{beginning}");
    attempts[0]
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
    Place { what, written, read, ends: Nothing, from, tried }
}

/// A place that a session writes and programs of a higher label read, until it ends with something.
const fn open(
    what: &'static str,
    read: &'static [Label],
    ends: &'static str,
    from: Column,
    tried: &'static [Tried],
) -> Place {
    Place { what, written: &[Session], read, ends: With(ends), from, tried }
}

#[rustfmt::skip]
const PLACES: &[Place] = &[
    place("your checkout with its build folders", &[Person], &[Person, Role, Session], RESTRICTED,
        &[Attempt("write to your checkout"), Attempt("leave a program in your build folder")]),
    place("what cargo has downloaded and unpacked for you", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("change what cargo has downloaded"), Test("supervisor/cargo.rs", "what_a_session_plants_in_cargos_downloads_is_built_by_no_other_role_and_not_by_the_person", "\"planted beside cloned\"", Levels)]),
    place("your caches of npm, pip and go", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("leave something in your cache of npm"), Attempt("leave something in your cache of pip"), Attempt("leave something in go's cache of builds"), Attempt("leave something in your modules of go"), Test("supervisor/downloads.rs", "needs_node_a_session_installs_what_the_person_has_downloaded_without_a_network", "", Levels)]),
    place("caches and downloads of a role", &[Role], &[Role], RESTRICTED,
        &[Attempt("change the reviewer's caches"), Test("supervisor/cargo.rs", "what_a_session_plants_in_cargos_downloads_is_built_by_no_other_role_and_not_by_the_person", "coder after the attack: planted", Levels)]),
    place("caches and build folders of tests", &[Commit], &[Commit], RESTRICTED,
        &[Attempt("leave something for the tests"), Test("work/merge.rs", "the_test_of_a_merge_reads_nothing_that_the_test_of_another_merge_left", "", Levels), Test("supervisor/copies.rs", "nothing_that_is_written_in_a_copy_reaches_what_it_is_a_copy_of", "", Room), Test("work/head_build.rs", "work_changes_neither_the_build_nor_the_next_run", "", Room), Test("work/head_build.rs", "without_rooms_or_by_a_setting_every_run_begins_with_nothing", "", Levels)]),
    place("the checkout of a task, until it is submitted", &[Session], &[Session], RESTRICTED,
        &[Attempt("write to another worktree")]),
    place("the checkout of a review", &[Person], &[Role, Commit], RESTRICTED,
        &[Attempt("change the checkout that the reviewer reads"), Attempt("be run by the reviewer outside")]),
    open("checkouts of agents below `.worktrees`, for tools that look into all folders of a project", &[Person], "`liza config worktrees outside`", RESTRICTED,
        &[Test("supervisor/outside.rs", "needs_node_a_test_runner_of_the_project_meets_no_file_of_an_agent", "(\"inside\", true)", Any)]),
    open("what an agent has written, once you run it", &[Person], "`liza shell TASK`", RESTRICTED,
        &[Test("supervisor/shell.rs", "needs_script_a_shell_reads_and_reaches_what_its_coder_does_and_nothing_else", "", Levels)]),
    open("commits of agents", &[Person, Role, Commit], "a review and the gate, before they are merged", RESTRICTED,
        &[Attempt("merge its own work"), Attempt("submit settings that agent programs obey"), Attempt("submit a link that leads out")]),
    place("git's settings, hooks and attributes in a worktree, between sessions", &[Person], &[Person], RESTRICTED,
        &[Attempt("have your git run a program"), Test("git/workspace.rs", "git_starts_nothing_for_a_person_who_enters_a_worktree_after_a_session", "assert!(mark.exists(), \"{name} would run\")", Any)]),
    open("the same during a session", &[Person], "`liza shell TASK`", RESTRICTED,
        &[Test("supervisor/shell.rs", "needs_script_a_shell_beside_a_running_session_disturbs_neither_it_nor_its_lease", "the settings are the session's until it ends", Levels)]),
    place("references, notes, hooks and settings of the project's git", &[Person], &[Person, Role, Session], RESTRICTED,
        &[Attempt("create a branch in the project"), Attempt("add a note to a commit"), Attempt("plant a tag"), Attempt("plant a hook"), Attempt("change the project's git configuration")]),
    open("the blackboard, by commands", &[Person, Role], "the rules, which decide each command", RESTRICTED,
        &[Attempt("write to `.liza`"), Attempt("approve its own work"), Attempt("switch the confinement off"), Attempt("act as another agent")]),
    open("the output of sessions", &[Person], "`liza tail`, which shows text and no control characters, to sessions of the team too", RESTRICTED,
        &[Attempt("read another session's output"), Test("reading/show.rs", "what_a_session_prints_for_a_terminal_is_shown_as_text", "", Any)]),
    place("`/tmp`", &[Person], &[Person], RESTRICTED, &[Attempt("leave a file in your `/tmp`")]),
    place("`/dev/shm`", &[Person], &[Person], ISOLATED,
        &[Attempt("read what you keep in `/dev/shm`"), Attempt("leave a file in your `/dev/shm`")]),
    place("shared memory of System V", &[Person], &[Person], RESTRICTED,
        &[Attempt("read your shared memory"), Attempt("leave shared memory")]),
    place("your logins, but for the tokens in them", &[Person], &[Person], RESTRICTED,
        &[Attempt("change the login of its program"), Test("session/login.rs", "nothing_but_tokens_and_times_is_taken", "", Any)]),
    open("the tokens in your logins, which its program refreshes", &[Person, Role], "a key in a variable instead of a login", RESTRICTED,
        &[Test("session/login.rs", "nothing_but_tokens_and_times_is_taken", "", Any)]),
    place("settings of agent programs", &[Person], &[Person, Role], RESTRICTED,
        &[Attempt("change the settings of its program"), Attempt("leave settings for the next session")]),
    place("answers at a port of this machine", &[Person], &[Person], ISOLATED,
        &[Attempt("answer for a server of yours"), Test("supervisor/rooms.rs", "no_session_answers_for_a_service_of_the_person_or_of_another_session", "{restarts} hostile", Room)]),
    place("the files that judge a merge, where tested code runs", &[Person], &[Person, Commit], ISOLATED,
        &[Attempt("accept its own change of what judges it"), Test("supervisor/copies.rs", "sealed_files_cannot_be_changed_replaced_or_moved_away", "contains(\"DONE \")", Room)]),
    place("hidden acceptance tests (`holdout`)", &[Person], &[Person], RESTRICTED,
        &[Attempt("read your hidden acceptance tests"), Test("work/holdout.rs", "what_it_runs_is_a_copy_at_a_random_path_and_no_other_code_reads_it", "", Levels), Test("work/holdout.rs", "what_it_runs_reaches_no_place_that_the_person_has_opened_to_sessions", "", Levels)]),
    place("accepted settings of a shared blackboard", &[Person], &[Person], RESTRICTED,
        &[Attempt("accept settings for you"), Test("machines/settings.rs", "needs_postgres_what_another_machine_or_an_sql_writer_sets_runs_nothing_until_it_is_accepted", "assert!(ran(&two));", Any)]),
];

/// Covers: RO-01
#[test]
fn no_place_that_a_session_writes_is_read_by_a_program_of_a_higher_label_unless_its_row_says_what_ends_that()
{
    for Place { what, written, read, ends, .. } in PLACES {
        let label = written.iter().min().unwrap();
        let is_violated = read.iter().any(|reader| reader > label);
        assert_eq!(is_violated, matches!(ends, With(_)), "{what}: written by {written:?}, read by {read:?}");
    }
}

/// Covers: RO-01
#[test]
fn each_place_is_tried_at_its_level_by_an_attack_that_succeeds_without_it() {
    let page = fs::read_to_string(crates().join("../docs/safety.md")).unwrap();
    for Place { what, ends, from, tried, .. } in PLACES {
        let is_held = matches!(ends, Nothing);
        let is_attempt = |tried: &Tried| matches!(tried, Attempt(_));
        assert!(!is_held || tried.iter().any(is_attempt), "a hostile session tries each place: {what}");
        for tried in *tried {
            match tried {
                Attempt(beginning) => {
                    let cell = |column| column_of(&page, attempt(beginning).what, column);
                    assert_eq!(cell(*from), "refused", "{what}: {beginning}");
                    assert_eq!(cell(ISOLATED), "refused", "{what}: {beginning}");
                }
                Test(file, name, shown, at) => {
                    let body =
                        body_of(file, name).unwrap_or_else(|| panic!("{what}: {file} has no test {name}"));
                    assert!(body.contains(shown), "{what}: {name} does not show {shown}");
                    let goes_through = body.contains("sandbox_max_abi");
                    assert_eq!(goes_through, *at == Levels, "{what}: {name} tries other levels than it says");
                }
            }
        }
        let is_for_level = |tried: &Tried| !matches!(tried, Test(.., Room)) || *from == ISOLATED;
        assert!(tried.iter().any(is_for_level), "{what}: nothing tries it at {}", from.name());
        let succeeds = |tried: &Tried| match tried {
            Attempt(beginning) => column_of(&page, attempt(beginning).what, Column::Off) == "allowed",
            Test(_, _, shown, _) => !shown.is_empty(),
        };
        assert!(!is_held || tried.iter().any(succeeds), "{what}: no attempt succeeds without protection");
    }
}

fn crates() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The code of a test of that name in a file with that end, with the functions of that file which it calls.
fn body_of(file: &str, name: &str) -> Option<String> {
    let places =
        ["liza/tests", "liza-git/tests", "liza-team/src"].map(|folder| crates().join(folder).join(file));
    let texts = places.iter().filter_map(|path| fs::read_to_string(path).ok());
    let body = |text: String| {
        let (_, rest) = text.split_once(&format!("fn {name}()"))?;
        let body = rest.split("\n}\n").next()?;
        let functions = text.split("\nfn ").filter_map(|function| function.split("\n}\n").next());
        let is_called = |function: &&str| {
            function.split_once('(').is_some_and(|(name, _)| body.contains(&format!("    {name}(")))
        };
        Some(functions.filter(is_called).chain([body]).collect::<String>())
    };
    texts.into_iter().find_map(body)
}

const BEGIN: &str = "<!-- places: generated by `just bless` -->\n";
const END: &str = "<!-- end of places -->\n";

/// Covers: RO-01
#[test]
fn the_places_with_their_labels_are_in_the_safety_page() {
    let mut table =
        "| Place | Written by | Read by | isolated | restricted | off | Breaks the rule; ends with | Tried by |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let page = crates().join("../docs/safety.md");
    let text = fs::read_to_string(&page).unwrap();
    for place @ Place { what, written, read, ends, tried, .. } in PLACES {
        let names = |labels: &[Label]| labels.iter().map(|label| label.name()).collect::<Vec<_>>().join(", ");
        let mut tries: Vec<String> = tried.iter().map(in_words).collect();
        tries.dedup();
        let ends = match ends {
            Nothing => "–",
            With(what) => what,
        };
        let at = [ISOLATED, RESTRICTED, Column::Off].map(|level| place.at(level, &text));
        let cells = [*what, &names(written), &names(read), at[0], at[1], at[2], ends, &tries.join("; ")];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
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
        Attempt(beginning) => attempt(beginning).what.to_owned(),
        Test(file, ..) => format!("`{file}`"),
    }
}
