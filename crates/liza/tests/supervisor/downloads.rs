//! What the person has downloaded with npm: a session installs it without a network, and changes nothing of it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::Bench;

fn npm(home: &Path, folder: &Path, words: &[&str]) -> String {
    let mut npm = Command::new("npm");
    npm.args(words).arg("--offline").current_dir(folder).env("HOME", home);
    let output = npm.env_remove("npm_config_cache").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A project that locks a package, which is in the person's cache and nowhere else.
fn project(bench: &Bench) {
    let package = bench.home().join("package");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("package.json"), r#"{"name": "locked", "version": "1.0.0"}"#).unwrap();
    fs::write(package.join("index.js"), "module.exports = 'downloaded'").unwrap();
    let packed = npm(bench.home(), &package, &["pack", "--json"]);
    let packed: serde_json::Value = serde_json::from_str(&packed).unwrap();
    npm(bench.home(), &package, &["cache", "add", "./locked-1.0.0.tgz"]);
    fs::remove_dir_all(&package).unwrap();
    let wants = r#""name": "app", "version": "1.0.0", "dependencies": {"locked": "1.0.0"}"#;
    let locked = format!(
        r#""version": "1.0.0", "resolved": "https://registry.npmjs.org/locked/-/locked-1.0.0.tgz", "integrity": {}"#,
        packed[0]["integrity"]
    );
    bench.project.write("package.json", &format!("{{{wants}}}"));
    bench.project.write(
        "package-lock.json",
        &format!(
            r#"{{{wants}, "lockfileVersion": 3, "requires": true, "packages": {{"": {{{wants}}}, "node_modules/locked": {{{locked}}}}}}}"#
        ),
    );
    bench.project.git(&["add", "package.json", "package-lock.json"]);
    bench.project.git(&["commit", "-qm", "an app"]);
    bench.project.liza(&["sync"]).ok();
}

/// The files of the person's cache, with what a change would change.
fn state_of(folder: &Path) -> Vec<(PathBuf, u64, i64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let meta = entry.metadata().unwrap();
        found.push((entry.path(), meta.len(), meta.ctime()));
        if meta.is_dir() {
            found.extend(state_of(&entry.path()));
        }
    }
    found.sort();
    found
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_node_a_session_installs_what_the_person_has_downloaded_without_a_network() {
    let tries = r#"
npm ci --offline > /dev/null 2>&1 && echo "TRIED installed $(node -p 'require("locked")')"
"$LIZA" check -- sh -c 'npm ci --offline > /dev/null 2>&1 && echo TRIED checked $(node -p "require(\"locked\")")'
for file in $(find "$npm_config_cache" -name "*" -type l); do echo x > "$file" && echo "TRIED planted"; done 2> /dev/null
exit 1
"#;
    for config in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100"] {
        let bench = Bench::new(config, &[("c", tries)]);
        project(&bench);
        let yours = bench.home().join(".npm/_cacache/content-v2");
        let before = state_of(&yours);
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        let said = bench.outputs();
        assert!(said.contains("TRIED installed downloaded"), "{config}: {said}");
        assert!(said.contains("TRIED checked downloaded"), "{config}: {said}");
        assert!(!said.contains("TRIED planted"), "{config}: {said}");
        assert_eq!(state_of(&yours), before, "{config}");
    }
}
