//! The walls of the house: how large a crate may be, what may use what, and where `unsafe` is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::help::repository;

/// The most lines of source that a crate may have.
const LARGEST_CRATE: usize = 22_000;

/// A crate with more lines than this keeps its modules in folders.
const LARGE_CRATE: usize = 5_000;

/// The most files beside `lib.rs` and `main.rs` in the `src` of a large crate.
const LOOSE_FILES: usize = 5;

/// The only crate with `unsafe` code.
const UNSAFE: &str = "liza-sandbox";

/// The crates of Liza that a crate may use, for those whose rule depends on it.
const DOORS: [(&str, &[&str]); 15] = [
    ("liza-ids", &[]),
    ("liza-receipts", &["liza-ids"]),
    ("liza-host", &["liza-ids"]),
    ("liza-core", &["liza-ids"]),
    ("liza-status", &["liza-core", "liza-ids"]),
    ("liza-store", &["liza-core", "liza-host", "liza-ids"]),
    ("liza-database", &["liza-core", "liza-host", "liza-ids", "liza-store"]),
    ("liza-sandbox", &["liza-host", "liza-ids"]),
    ("liza-git", &["liza-host", "liza-ids", "liza-sandbox"]),
    ("liza-agents", &["liza-core", "liza-host", "liza-ids", "liza-rehearsal", "liza-sandbox"]),
    ("liza-report", &["liza-core", "liza-host", "liza-store"]),
    ("liza-trial", &["liza-core", "liza-ids"]),
    ("liza-drill", &["liza-core", "liza-git", "liza-host", "liza-sandbox", "liza-store", "liza-team"]),
    ("liza-tui", &["liza-core", "liza-host", "liza-status"]),
    ("liza-web", &["liza-core", "liza-host", "liza-status"]),
];

/// The modules of the core that a crate may use.
const CORE_DOORS: [(&str, &[&str]); 3] = [
    (
        "liza-agents",
        &[
            "model",
            "text",
            "rules::triggers",
            "rules::misspelled",
            "rules::notes",
            "rules::impact",
            "rules::validation",
            "protocol::MergeFailure",
        ],
    ),
    ("liza-tui", &["model", "text", "rules::spending"]),
    ("liza-web", &["model", "text", "rules::spending"]),
];

/// What a crate that neither parses arguments nor prints cannot depend on.
const OF_A_TERMINAL: [&str; 5] = ["clap", "anstream", "anstyle", "ratatui", "liza-tui"];

fn crates() -> Vec<PathBuf> {
    let folders = fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.join("src/lib.rs").exists()).collect()
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// The source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn lines(folder: &Path) -> usize {
    sources(&folder.join("src")).iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
}

/// The names in a section of a manifest.
fn section(folder: &Path, heading: &str) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let Some((_, rest)) = manifest.split_once(&format!("\n[{heading}]\n")) else { return Vec::new() };
    let section = rest.split("\n[").next().unwrap();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let names = section.lines().filter_map(|line| line.split(|c: char| !is_name(c)).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Covers: HO-01
#[test]
fn no_crate_is_larger_than_a_person_can_hold_in_mind() {
    for folder in crates() {
        let lines = lines(&folder);
        assert!(lines <= LARGEST_CRATE, "{} has {lines} lines", name(&folder));
        let loose = fs::read_dir(folder.join("src")).unwrap().filter(|entry| {
            let path = entry.as_ref().unwrap().path();
            path.is_file() && !path.ends_with("lib.rs") && !path.ends_with("main.rs")
        });
        let loose = loose.count();
        assert!(lines <= LARGE_CRATE || loose <= LOOSE_FILES, "{} has {loose} loose files", name(&folder));
    }
}

/// Covers: HO-01
#[test]
fn crates_use_only_what_their_rule_allows() {
    for (crate_name, allowed) in DOORS {
        let folder = repository().join("crates").join(crate_name);
        let used = section(&folder, "dependencies").into_iter().filter(|name| name.starts_with("liza-"));
        let wrong: Vec<String> = used.filter(|name| !allowed.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{crate_name} uses {wrong:?}");
    }
    for (crate_name, allowed) in CORE_DOORS {
        for path in sources(&repository().join("crates").join(crate_name).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            for used in text.split("liza_core::").skip(1) {
                let is_allowed = |door: &&str| used.starts_with(*door) || used.starts_with(['{', 'S']);
                let line = used.lines().next().unwrap();
                assert!(allowed.iter().any(is_allowed), "{}: liza_core::{line}", path.display());
            }
        }
    }
}

/// Covers: HO-01
#[test]
fn the_team_can_neither_parse_arguments_nor_print() {
    let mut known = BTreeSet::new();
    let mut next = vec!["liza-team".to_owned()];
    while let Some(one) = next.pop() {
        let folder = repository().join("crates").join(&one);
        if known.insert(one) && folder.is_dir() {
            next.extend(section(&folder, "dependencies"));
        }
    }
    let wrong: Vec<&&str> = OF_A_TERMINAL.iter().filter(|name| known.contains(**name)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(known.contains("liza-ids") && known.contains("rustix"), "the manifests were read");
}

/// Covers: HO-01
#[test]
fn unsafe_code_is_in_the_sandbox_only() {
    for folder in crates() {
        let lib = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
        let forbids = lib.contains("#![forbid(unsafe_code)]");
        assert_eq!(forbids, name(&folder) != UNSAFE, "{}", name(&folder));
    }
}

/// A module as its path from the crate's root.
type Module = Vec<String>;

/// The modules of a crate with their files.
fn modules(folder: &Path) -> BTreeMap<Module, PathBuf> {
    let src = folder.join("src");
    let module = |path: &PathBuf| {
        let mut parts: Module =
            path.strip_prefix(&src).unwrap().iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        let file = parts.pop().unwrap();
        let stem = file.trim_end_matches(".rs");
        if !matches!(stem, "mod" | "lib" | "main") {
            parts.push(stem.to_owned());
        }
        parts
    };
    let files = sources(&src).into_iter().map(|path| (module(&path), path));
    files.filter(|(module, _)| !module.iter().any(|part| part.ends_with("tests"))).collect()
}

/// The modules that a module names: paths that begin with `crate::` or `super::`.
fn named(module: &Module, text: &str) -> BTreeSet<Module> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).fold(
        String::new(),
        |mut code, line| {
            code.push_str(line);
            code.push('\n');
            code
        },
    );
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = BTreeSet::new();
    for (start, word) in [("crate::", Vec::new()), ("super::", module[..module.len().max(1) - 1].to_vec())] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with("::") {
                continue;
            }
            let (mut base, mut rest) = (word.clone(), &code[at + start.len()..]);
            while let Some(above) = rest.strip_prefix("super::") {
                base.pop();
                rest = above;
            }
            let path = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next().unwrap();
            base.extend(path.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
            found.insert(base);
        }
    }
    found
}

/// A module that can be reached from itself, among those of one folder.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<&String> {
    edges.keys().find(|start| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(one) = next.pop() {
            for reached in edges.get(one).into_iter().flatten() {
                if reached == *start {
                    return true;
                }
                if seen.insert(reached) {
                    next.push(reached);
                }
            }
        }
        false
    })
}

/// Covers: HO-01
#[test]
fn modules_of_one_folder_do_not_use_each_other_in_circles() {
    for folder in crates() {
        let modules = modules(&folder);
        let mut levels: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, path) in &modules {
            for used in named(module, &fs::read_to_string(path).unwrap()) {
                // What is named is an item of the longest module that its path begins with.
                let known = (1..=used.len()).rev().map(|length| used[..length].to_vec());
                let Some(used) = known.into_iter().find(|path| modules.contains_key(path)) else { continue };
                let common = module.iter().zip(&used).take_while(|(one, other)| one == other).count();
                if let (Some(from), Some(to)) = (module.get(common), used.get(common)) {
                    let level = levels.entry(module[..common].to_vec()).or_default();
                    level.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        for (level, edges) in &levels {
            let found = circle(edges);
            assert!(found.is_none(), "{} {level:?}: {found:?} is part of a circle", name(&folder));
        }
    }
}

/// The folders that make or lay out sentences for people.
const OF_SENTENCES: [&str; 8] = [
    "liza-core/src/rules",
    "liza-core/src/protocol",
    "liza-core/src/supervise",
    "liza-status/src",
    "liza-tui/src",
    "liza-web/src/pages",
    "liza/src/cli/ui",
    "liza/src/cli/commands/status.rs",
];

/// The texts in these folders that are not ours: names of settings, keys, and what git, agents, programs and files say.
const FOREIGN_TEXTS: [&str; 8] = [
    "key.",
    "setting.",
    "message.split_once(\"issing environment",
    "diff.rs",
    "settings_text.rs",
    "story.rs",
    "names_error",
    "line.",
];

/// Covers: UI-03
#[test]
fn no_screen_takes_a_sentence_apart() {
    let methods = ["starts_with", "ends_with", "strip_prefix", "strip_suffix", "split_once", "rsplit_once"];
    let others = ["find", "contains", "trim_start_matches", "trim_end_matches"];
    let calls: Vec<String> = methods.iter().chain(&others).map(|method| format!(".{method}(\"")).collect();
    let mut wrong = Vec::new();
    for place in OF_SENTENCES {
        let place = repository().join("crates").join(place);
        let paths = if place.is_file() { vec![place] } else { sources(&place) };
        for path in paths.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for line in code.lines().filter(|line| calls.iter().any(|call| line.contains(call))) {
                let shown = format!("{}: {}", path.display(), line.trim());
                if !FOREIGN_TEXTS.iter().any(|known| shown.contains(known)) {
                    wrong.push(shown);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "data is passed on, and its words are made once:\n{}", wrong.join("\n"));
}

/// A suggestion to start the team names the programs of the last run, so it is made of these and is no text:
/// `last_run`, `View::start`, or the arguments of the team itself. What is left describes the command, names a
/// program itself, or belongs to a project in which no team has run.
///
/// Covers: AX-31
#[test]
fn no_text_suggests_to_start_a_team_without_its_programs() {
    let described = [
        "next liza run",
        "in liza run",
        "liza run uses",
        "liza run refuses",
        "liza run and liza agent",
        "once(\"liza run\")",
    ];
    let of_new_projects = ["commands/init.rs", "commands/join.rs"];
    let mut wrong = Vec::new();
    for path in crates().iter().flat_map(|folder| sources(&folder.join("src"))) {
        let shown = path.display().to_string();
        if of_new_projects.iter().any(|file| shown.ends_with(file)) || shown.contains("/tests") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//") && line.contains('"')) {
            let is_described = described.iter().any(|words| line.to_lowercase().contains(words));
            let mut rest = line.split("liza run").skip(1);
            if !is_described && rest.any(|rest| !rest.starts_with(" --cli") && !rest.starts_with('`')) {
                wrong.push(format!("{shown}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "use the command of the last run:\n{}", wrong.join("\n"));
}

/// The crates that open files of Liza's own.
const WITH_OWN_FILES: [&str; 6] = [
    "liza-store/src",
    "liza-team/src",
    "liza-sandbox/src/confine",
    "liza-database/src",
    "liza-host/src",
    "liza/src",
];

/// The files of these crates that open other files: of the person, of a session, of git or of the system.
const OF_OTHERS: [&str; 34] = [
    "liza-database/src/address.rs",
    "liza-host/src/durable.rs",
    "liza-sandbox/src/confine/cargo_home.rs",
    "liza-sandbox/src/confine/filter_keeper.rs",
    "liza-sandbox/src/confine/program_keeper.rs",
    "liza-sandbox/src/confine/readable.rs",
    "liza-sandbox/src/confine/room/init.rs",
    "liza-sandbox/src/confine/room/mounts.rs",
    "liza-sandbox/src/confine/room/outer.rs",
    "liza-sandbox/src/confine/room/network.rs",
    "liza-sandbox/src/confine/stage.rs",
    "liza-store/src/backend/accepted_settings.rs",
    "liza-store/src/file/lock.rs",
    "liza-team/src/project/team_file.rs",
    "liza-team/src/run/demo.rs",
    "liza-team/src/run/front.rs",
    "liza-team/src/run/playbook.rs",
    "liza-team/src/run/rehearsal_copy.rs",
    "liza-team/src/session/conversations.rs",
    "liza-team/src/session/login.rs",
    "liza-team/src/session/login_copies.rs",
    "liza-team/src/session/login_turn.rs",
    "liza-team/src/session/settings_guard.rs",
    "liza/src/cli/commands/edit.rs",
    "liza/src/cli/commands/init.rs",
    "liza/src/cli/commands/man.rs",
    "liza/src/cli/commands/remove.rs",
    "liza/src/cli/context.rs",
    "liza/src/cli/session/forward.rs",
    "liza/src/cli/session/modify.rs",
    "liza/src/cli/starting_files.rs",
    "liza/src/recognition/active_environment.rs",
    "liza/src/recognition/collectors.rs",
    "liza/src/recognition/test_command.rs",
];

/// Covers: AX-12
#[test]
fn files_of_its_own_are_opened_in_one_way() {
    let ways =
        ["File::open(", "File::create", "File::options(", "OpenOptions::new(", "fs::write(", "fs::copy("];
    let ways: Vec<&str> = ways.into_iter().chain(["fs::read(", "fs::read_to_string("]).collect();
    let mut found = BTreeSet::new();
    for place in WITH_OWN_FILES {
        let is_test = |path: &PathBuf| path.to_str().unwrap().ends_with("tests.rs");
        for path in sources(&repository().join("crates").join(place)).iter().filter(|path| !is_test(path)) {
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            if ways.iter().any(|way| code.contains(way)) {
                let inside = path.strip_prefix(repository().join("crates")).unwrap();
                found.insert(inside.display().to_string());
            }
        }
    }
    let known = OF_OTHERS.map(str::to_owned).into();
    let new: Vec<&String> = found.difference(&known).collect();
    assert!(new.is_empty(), "use liza_host::durable for a file below .liza: {new:#?}");
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(gone.is_empty(), "no longer needed in the list: {gone:#?}");
}

/// The history has one reader for rules, `model/past.rs`: what else they ask would make equal boards behave differently.
///
/// Covers: PV-01
#[test]
fn rules_ask_the_history_through_one_projection() {
    let core = repository().join("crates/liza-core/src");
    let asks = ["rules", "protocol", "supervise"].map(|part| sources(&core.join(part)));
    for path in asks.iter().flatten() {
        let text = fs::read_to_string(path).unwrap();
        let wrong = [".events()", "last_event(", ".history.iter", ".history.as_"]
            .into_iter()
            .find(|way| text.contains(way));
        assert_eq!(wrong, None, "{}", path.display());
    }
}
