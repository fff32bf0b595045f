//! What cargo has downloaded: sessions build with it, and no session changes it for the person or for another role.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use crate::fixture::Bench;

/// A package whose build script decides what it says.
const MANIFEST: &str =
    "[package]\nname = \"planted\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const BUILD: &str = "fn main() { println!(\"cargo:rustc-env=WORD=downloaded\"); }\n";
const LIBRARY: &str = "pub const WORD: &str = env!(\"WORD\");\n";

/// A registry with that one package, until the test ends.
struct Registry {
    port: u16,
}

impl Registry {
    fn start(folder: &Path) -> Self {
        let package = folder.join("planted");
        fs::create_dir_all(package.join("src")).unwrap();
        for (file, text) in [("Cargo.toml", MANIFEST), ("build.rs", BUILD), ("src/lib.rs", LIBRARY)] {
            fs::write(package.join(file), text).unwrap();
        }
        let mut pack = cargo(folder);
        pack.current_dir(&package).env_remove("CARGO_TARGET_DIR").args([
            "package",
            "--offline",
            "--no-verify",
            "--allow-dirty",
            "-q",
        ]);
        assert!(pack.status().unwrap().success());
        let archive = package.join("target/package/planted-0.1.0.crate");
        let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let entry = format!(
            r#"{{"name":"planted","vers":"0.1.0","deps":[],"cksum":"{sum}","features":{{}},"yanked":false}}"#
        );
        let files = Arc::new([
            ("/config.json", format!(r#"{{"dl":"http://127.0.0.1:{port}/dl"}}"#).into_bytes()),
            ("/pl/an/planted", entry.into_bytes()),
            ("/dl/planted/0.1.0/download", fs::read(archive).unwrap()),
        ]);
        thread::spawn(move || listener.incoming().flatten().for_each(|client| answer(client, &files[..])));
        Self { port }
    }
}

/// Answers one request.
fn answer(mut client: TcpStream, files: &[(&str, Vec<u8>)]) {
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    while lines.next().is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default();
    let found = files.iter().find(|(name, _)| *name == path).map(|(_, content)| content);
    let (status, content) = found.map_or(("404 Not Found", &b""[..]), |content| ("200 OK", content));
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
    let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(content));
}

/// The toolchain of this test, wherever it is.
fn cargo(home: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env("HOME", home).env("RUSTC", rustc()).env_remove("CARGO_HOME").env_remove("RUSTFLAGS");
    cargo
}

fn rustc() -> PathBuf {
    Path::new(env!("CARGO")).with_file_name("rustc")
}

/// Runs the program of the checkout, offline, and prints what it says behind a word.
fn run(place: &str) -> String {
    format!("echo \"{place}: $(RUSTC=$HOME/rust/rustc $HOME/rust/cargo run --offline -q 2>&1)\"")
}

/// A project with a downloaded package and one of its own, as the person has built it; `cargo_home` is below the home folder.
fn built_project(setting: &str, cargo_home: &str, scripts: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(setting, scripts);
    // A short name for what is in `~/.rustup`.
    symlink(bench.rust(), bench.home().join("rust")).unwrap();
    let registry = Registry::start(&bench.home().join("upstream"));
    let cargo_home = bench.home().join(cargo_home);
    fs::create_dir_all(&cargo_home).unwrap();
    let settings = format!("[registries.mine]\nindex = \"sparse+http://127.0.0.1:{}/\"\n", registry.port);
    fs::write(cargo_home.join("config.toml"), settings).unwrap();
    fs::write(cargo_home.join("credentials.toml"), "[registry]\ntoken = \"very-secret\"\n").unwrap();
    let repository = bench.home().join("upstream/cloned");
    bench.project.git_at(bench.home(), &["init", "-q", repository.to_str().unwrap()]);
    fs::create_dir(repository.join("src")).unwrap();
    fs::write(repository.join("Cargo.toml"), MANIFEST.replace("planted", "cloned")).unwrap();
    fs::write(repository.join("src/lib.rs"), "pub const WORD: &str = \"cloned\";\n").unwrap();
    bench.project.git_at(&repository, &["add", "."]);
    bench.project.git_at(&repository, &["commit", "-qm", "package"]);
    bench.project.write(".gitignore", "target\n");
    bench.project.write("scripts/integration-test.sh", &format!("#!/bin/sh\n{}\n", run("test")));
    write_program(&bench.project.root, &repository);
    write_program(&bench.home().join("second"), &repository);
    assert_eq!(said_outside(&bench, &bench.project.root, &cargo_home, &[]), "downloaded beside cloned");
    bench.project.git(&["add", "."]);
    bench.project.git(&["commit", "-qm", "program"]);
    bench.project.liza(&["sync"]).ok();
    bench.project.add_task("t1");
    bench
}

/// Writes a program that uses the downloaded packages and one of its own.
fn write_program(folder: &Path, repository: &Path) {
    let manifest = format!(
        "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n\
         planted = {{version = \"0.1.0\", registry = \"mine\"}}\nbeside = {{path = \"beside\"}}\n\
         cloned = {{git = \"file://{}\"}}\n[workspace]\n",
        repository.display()
    );
    for (file, text) in [
        ("Cargo.toml", manifest.as_str()),
        ("src/main.rs", "fn main() { println!(\"{} {} {}\", planted::WORD, beside::WORD, cloned::WORD); }\n"),
        ("beside/Cargo.toml", "[package]\nname = \"beside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("beside/src/lib.rs", "pub const WORD: &str = \"beside\";\n"),
    ] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }
}

/// What the program in a folder says if the person builds it.
fn said_outside(bench: &Bench, folder: &Path, cargo_home: &Path, options: &[&str]) -> String {
    let mut program = cargo(bench.home());
    program.current_dir(folder).env("CARGO_HOME", cargo_home).args(["run", "-q"]).args(options);
    let output = program.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

fn start(bench: &Bench, cargo_home: &str, role: &str, program: &str) {
    let mut command = bench.project.program();
    command.args(["agent", role, "--cli", program, "--once"]).env("LIZA", env!("CARGO_BIN_EXE_liza"));
    command.env("CARGO_HOME", bench.home().join(cargo_home));
    let run = bench.project.run(&mut command);
    assert_eq!(run.code, 0, "{run:?}\n{}", bench.outputs());
}

/// Everything that sessions and tests printed.
fn said(bench: &Bench) -> String {
    let logs = [bench.kept("agent-outputs"), bench.kept("integration-tests")].concat();
    logs.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Replaces the build script of the downloaded package in its own home folder of cargo, where it can do what it wants.
const PLANT: &str = r#"for folder in "$CARGO_HOME"/registry/src/*/; do
  cp -rL "$folder/planted-0.1.0" copy && rm -rf "$folder/planted-0.1.0" && mv copy "$folder/planted-0.1.0"
  echo 'fn main() { println!("cargo:rustc-env=WORD=planted"); }' > "$folder/planted-0.1.0/build.rs"
done"#;

/// What the coder tries.
fn attack() -> String {
    format!(
        r#"{first}
for file in "$YOURS"/registry/src/*/planted-0.1.0/build.rs "$CARGO_HOME"/registry/src/*/planted-0.1.0/build.rs \
  "$YOURS"/registry/cache/*/planted-0.1.0.crate "$YOURS"/registry/index/*/config.json; do
  if echo 'x' >> "$file"; then echo "WROTE $file"; fi
done
if cat "$YOURS/credentials.toml"; then echo READ; fi
{PLANT}
rm -rf target
{second}
"$LIZA" check -- sh -c 'rm -rf target; {check}'
rm -rf target
echo x > "$1.txt"; git add . && git commit -qm work
"$LIZA" pre-check "$1" --intent "do it" --validation true
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)"; exit 42"#,
        first = run("coder"),
        second = run("coder after the attack"),
        check = run("coder-check"),
    )
}

/// Lets both roles work, and returns everything that they printed.
fn attacked(setting: &str, place: &str) -> (Bench, String) {
    let reviewer = format!(
        "export CARGO_TARGET_DIR=\"$TMPDIR/target\"\n{}\n\"$LIZA\" check -- sh -c '{}'\n\"$LIZA\" submit-verdict \"$1\" APPROVED \"cargo run: it says what it should\"",
        run("reviewer"),
        run("reviewer-check"),
    );
    let yours = |script: &str| format!("YOURS=\"$HOME/{place}\"\n{script}");
    let bench = built_project(setting, place, &[("c", &yours(&attack())), ("r", &yours(&reviewer))]);
    start(&bench, place, "coder", "c");
    start(&bench, place, "code-reviewer", "r");
    let said = said(&bench);
    (bench, said)
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn what_a_session_plants_in_cargos_downloads_is_built_by_no_other_role_and_not_by_the_person() {
    // The usual place, whose settings cargo finds above the project too, and another one.
    for (setting, place) in
        [("sandbox: auto", ".cargo"), ("sandbox: auto\nsandbox_max_abi: 100", "elsewhere/cargo")]
    {
        let (bench, said) = attacked(setting, place);
        for line in [
            "coder: downloaded beside cloned",
            "coder after the attack: planted beside cloned",
            "coder-check: downloaded beside cloned",
            "reviewer: downloaded beside cloned",
            "reviewer-check: downloaded beside cloned",
            "test: downloaded beside cloned",
        ] {
            assert!(said.lines().any(|found| found == line), "{setting} {place}: {line}:\n{said}");
        }
        assert!(!said.contains("WROTE") && !said.contains("READ"), "{setting} {place}:\n{said}");
        fs::remove_dir_all(bench.project.root.join("target")).unwrap();
        let cargo_home = bench.home().join(place);
        // Also in another project, which has not built it yet.
        for folder in [&bench.project.root, &bench.home().join("second")] {
            let built = said_outside(&bench, folder, &cargo_home, &["--offline"]);
            assert_eq!(built, "downloaded beside cloned", "{setting} {place}");
        }
        assert_eq!(bench.status("t1").to_string(), "MERGED", "{said}");
    }
    // Without confinement the same plant is built by the person.
    let bench = built_project("sandbox: off", ".cargo", &[("c", &format!("{PLANT}\nexit 1"))]);
    let (second, cargo_home) = (bench.home().join("second"), bench.home().join(".cargo"));
    let mut command = bench.project.program();
    command.args(["agent", "coder", "t1", "--cli", "c", "--once"]).env("CARGO_HOME", &cargo_home);
    bench.project.run(&mut command);
    let built = said_outside(&bench, &second, &cargo_home, &["--offline"]);
    assert_eq!(built, "planted beside cloned", "{}", bench.outputs());
}
