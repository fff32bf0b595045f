//! What the person has downloaded with npm, pip and Go: a session installs it without a network, and changes nothing of it.

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

/// Lets a session and its check install what is downloaded, at two levels; `installs` prints the package's word.
fn tried(prepare: impl Fn(&Bench), installs: &str, cache: &str, yours: &str) {
    let tries = format!(
        r#"
install() {{ {installs}; }}
echo "TRIED session: $(install)"
"$LIZA" check -- sh -c 'install() {{ {installs}; }}; echo "TRIED check: $(install)"'
for file in $(find "${cache}" -type l); do echo x > "$file" && echo "TRIED planted"; done 2> /dev/null
exit 1
"#
    );
    for config in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100"] {
        let bench = Bench::new(config, &[("c", &tries)]);
        prepare(&bench);
        bench.project.git(&["add", "."]);
        bench.project.git(&["commit", "-qm", "an app"]);
        bench.project.liza(&["sync"]).ok();
        let before = state_of(&bench.home().join(yours));
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        let said = bench.outputs();
        for place in ["session", "check"] {
            assert!(said.contains(&format!("TRIED {place}: downloaded\n")), "{config}: {said}");
        }
        assert!(!said.contains("TRIED planted"), "{config}: {said}");
        assert_eq!(state_of(&bench.home().join(yours)), before, "{config}");
    }
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_node_a_session_installs_what_the_person_has_downloaded_without_a_network() {
    let installs = r#"npm ci --offline > /dev/null 2>&1 && node -p "require(\"locked\")""#;
    tried(project, installs, "npm_config_cache", ".npm/_cacache/content-v2");
}

/// A wheel in the project, and something in the person's cache.
const WHEEL: &str = r#"
import zipfile
info = "locked-1.0.0.dist-info/"
files = {"locked.py": "WORD = 'downloaded'\n", info + "METADATA": "Metadata-Version: 2.1\nName: locked\nVersion: 1.0.0\n",
    info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
with zipfile.ZipFile("locked-1.0.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items(): wheel.writestr(name, text)
    wheel.writestr(info + "RECORD", "".join(name + ",,\n" for name in [*files, info + "RECORD"]))
"#;

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_venv_a_session_installs_a_wheel_without_a_network_and_changes_no_cache_of_the_person() {
    let prepare = |bench: &Bench| {
        for file in ["http-v2/a/b/answer", "wheels/a/b/other-1.0.0-py3-none-any.whl"] {
            let path = bench.home().join(".cache/pip").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "yours").unwrap();
        }
        bench.project.write("pyproject.toml", "[project]\nname = \"app\"\nversion = \"1.0.0\"\n");
        bench.project.write(".gitignore", ".venv\n");
        let mut python = Command::new("/usr/bin/python3");
        let made = python.args(["-c", WHEEL]).current_dir(&bench.project.root).status().unwrap();
        assert!(made.success());
    };
    let installs = "/usr/bin/python3 -m venv .venv > /dev/null && \
                    .venv/bin/pip install --no-index --find-links . locked > /dev/null 2>&1 && \
                    .venv/bin/python -c \"import locked; print(locked.WORD)\"";
    tried(prepare, installs, "PIP_CACHE_DIR", ".cache/pip");
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_go_a_session_builds_with_the_modules_that_the_person_has_downloaded_without_a_network() {
    let prepare = |bench: &Bench| {
        let place = bench.home().join("proxy/example.com/locked/@v");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("v1.0.0.mod"), "module example.com/locked\n").unwrap();
        fs::write(place.join("v1.0.0.info"), "{\"Version\": \"v1.0.0\"}").unwrap();
        let archive = "import zipfile\nwith zipfile.ZipFile('v1.0.0.zip', 'w') as module:\n \
                       module.writestr('example.com/locked@v1.0.0/go.mod', 'module example.com/locked\\n')\n \
                       module.writestr('example.com/locked@v1.0.0/locked.go', 'package locked\\nconst Word = \"downloaded\"\\n')\n";
        let mut python = Command::new("/usr/bin/python3");
        assert!(python.args(["-c", archive]).current_dir(&place).status().unwrap().success());
        bench.project.write("go.mod", "module app\nrequire example.com/locked v1.0.0\n");
        let main = "package main\nimport \"example.com/locked\"\nfunc main() { println(locked.Word) }\n";
        bench.project.write("main.go", main);
        let mut go = Command::new("go");
        go.args(["mod", "tidy"]).current_dir(&bench.project.root).env("HOME", bench.home());
        go.env("GOPROXY", format!("file://{}", bench.home().join("proxy").display()));
        go.env("GONOSUMDB", "*").env("GOFLAGS", "-modcacherw").env_remove("GOPATH").env_remove("GOMODCACHE");
        let output = go.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    tried(prepare, "GOPROXY=off GONOSUMDB=\"*\" go run . 2>&1", "GOMODCACHE", "go/pkg/mod");
}
