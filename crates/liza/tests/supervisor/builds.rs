//! Builds in a session, beside the same ones outside, in turns: how much they compute, which other work of the machine
//! does not change.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::fixture::Bench;
use crate::support::process::wait_for;

/// The most that a second build in a session may compute, of what it computes outside.
const SECOND_MAX: f64 = 1.2;

/// The builds after the first one of each tool.
const TURNS: usize = 10;

/// A build tool: what makes a project in a new folder, changes it, and builds it.
struct Tool {
    name: &'static str,
    make: &'static str,
    change: &'static str,
    build: &'static str,
}

const RUST: Tool = Tool {
    name: "rust",
    make: r#"mkdir src
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' > Cargo.toml
for n in $(seq 300); do echo "pub fn f$n(x: u64) -> String { format!(\"{x} $n {:?}\", vec![x; $n]) }"; done > src/lib.rs"#,
    change: r#"echo "// $turn" >> src/lib.rs"#,
    build: r#"RUSTC="TOOLCHAIN/rustc" "TOOLCHAIN/cargo" build --offline"#,
};

const PYTHON: Tool = Tool {
    name: "python",
    make: r#"for n in $(seq 200); do seq 100 | sed 's/.*/def f&(x): return [x + &, "&", {x: &}]/' > m$n.py; done"#,
    change: r#"for n in $(seq 40); do echo "y = $turn" >> m$n.py; done"#,
    build: "/usr/bin/python3 -m compileall -q .",
};

/// With a build backend of its own, since others would have to be downloaded.
const PIP: Tool = Tool {
    name: "pip",
    make: r#"/usr/bin/python3 -m venv venv; mkdir small
for n in $(seq 100); do seq 100 | sed 's/.*/def f&(x): return [x + &, "&", {x: &}]/' > small/m$n.py; done
printf '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "small"\nversion = "1"\n' > pyproject.toml
cat > backend.py <<'END_OF_CODE'
import glob, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "small-1-py3-none-any.whl", "small-1.dist-info/"
    texts = {info + "METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 1\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    texts.update((file, open(file).read()) for file in glob.glob("small/*.py"))
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        for file, text in texts.items(): wheel.writestr(file, text)
        wheel.writestr(info + "RECORD", "".join(file + ",,\n" for file in [*texts, info + "RECORD"]))
    return name
END_OF_CODE"#,
    change: r#"for n in $(seq 20); do echo "y = $turn" >> small/m$n.py; done"#,
    build: "venv/bin/pip install --no-index --no-deps --no-build-isolation --force-reinstall .",
};

const NODE: Tool = Tool {
    name: "node",
    make: r#"echo '{"name": "small", "version": "1.0.0", "scripts": {"build": "node build.js"}}' > package.json
echo 'let s = 0; for (let i = 0; i < 2e7; i++) s += i % 7; require("fs").writeFileSync("out", String(s))' > build.js"#,
    change: r#"echo "// $turn" >> build.js"#,
    build: "npm install --offline --no-audit --no-fund && npm run build",
};

const GO: Tool = Tool {
    name: "go",
    make: r#"printf 'module small\n\ngo 1.18\n' > go.mod
for n in $(seq 200); do echo "func f$n(x int) string { return fmt.Sprint(x, $n, strings.Repeat(\"x\", x)) }"; done > functions
{ printf 'package main\nimport ("fmt"; "strings")\nfunc main() { fmt.Println(f1(2)) }\n'; cat functions; } > main.go; rm functions"#,
    change: r#"echo "// $turn" >> main.go"#,
    build: "GOPROXY=off go build -o out . && ./out",
};

/// Builds projects, each once from nothing and several times after a change, each build when the test says so; prints
/// `BUILT NAME SECONDS MILLISECONDS`: computed and passed.
const BUILDS: &str = r#"
number=0; mkdir sync
# What the children of this shell have computed since then.
seconds() { awk -F '[ms ]+' 'FNR == 2 { now = $1 * 60 + $2 + $3 * 60 + $4; if (NR > 2) print now - past; past = now }' "$@"; }
timed() {
  name=$1; shift; number=$((number + 1))
  while [ ! -e "$sync/go-$number" ]; do sleep 0.01; done
  times > "$sync/before"; began=$(date +%s%N)
  if "$@" > said 2>&1; then end=BUILT; else end=FAILED; fi
  passed=$((($(date +%s%N) - began) / 1000000)); times > "$sync/after"
  echo "$end $name $(seconds "$sync/before" "$sync/after") $passed"; [ $end = BUILT ] || cat said
  : > "$sync/done-$number"
}
sync=$PWD/sync
mkdir built && cd built
MAKE
for tool in NAMES; do ( cd $tool && make_$tool ); timed first-$tool in_folder build_$tool; done
for turn in $(seq TURNS); do
  for tool in NAMES; do ( cd $tool && change_$tool ); timed $tool in_folder build_$tool; done
done
cd .. && rm -rf built sync
"#;

fn script(tools: &[Tool], toolchain: &str) -> String {
    let functions = |Tool { name, make, change, build }: &Tool| {
        format!(
            "mkdir {name}\nmake_{name}() {{\n{make}\n}}\nchange_{name}() {{ {change}; }}\nbuild_{name}() {{ {build}; }}\n"
        )
    };
    let make: String = tools.iter().map(functions).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let make = format!("in_folder() {{ ( cd $tool && $1 ); }}\n{make}");
    let script = BUILDS.replace("MAKE", &make).replace("NAMES", &names.join(" "));
    script.replace("TOOLCHAIN", toolchain).replace("TURNS", &TURNS.to_string())
}

/// The least computing time of the builds of that name, and the least time that passed.
fn least(said: &str, name: &str) -> [f64; 2] {
    let line =
        |line: &str| Some(line.strip_prefix("BUILT ")?.strip_prefix(name)?.strip_prefix(' ')?.to_owned());
    let lines: Vec<String> = said.lines().filter_map(line).collect();
    [0, 1].map(|column| {
        let times = lines.iter().map(|line| line.split(' ').nth(column).unwrap().parse::<f64>().unwrap());
        times.reduce(f64::min).unwrap_or_else(|| panic!("no build of {name}:\n{said}"))
    })
}

/// Lets both build in turns, so that both meet the same machine.
fn take_turns(tools: usize, places: &[PathBuf]) {
    for number in 1..=tools * (TURNS + 1) {
        for place in places {
            let sync = place.join("sync");
            wait_for("it is ready", || sync.is_dir().then_some(()));
            fs::write(sync.join(format!("go-{number}")), "").unwrap();
            let done = sync.join(format!("done-{number}"));
            // The last one removes the folder.
            wait_for("it is built", || (done.exists() || !sync.exists()).then_some(()));
        }
    }
}

const LEVELS: [(&str, &str); 2] = [("isolated", ""), ("restricted", "sandbox_max_abi: 100")];

fn second_builds_are_about_as_fast_as_outside(tools: &[Tool]) {
    for (level, setting) in LEVELS {
        let bench = Bench::new(&format!("sandbox: auto\n{setting}"), &[("c", "")]);
        let script = script(tools, &bench.rust().display().to_string());
        fs::write(bench.home().join("c.sh"), format!("#!/bin/sh\n{script}\nexit 1\n")).unwrap();
        bench.project.add_task("t1");
        let folder = bench.home().join("outside");
        fs::create_dir(&folder).unwrap();
        // With the priority of a session.
        let mut sh = bench.project.command("nice");
        sh.args(["-n", "5", "sh", "-c", &script]).current_dir(&folder).stdout(Stdio::piped());
        let outside = sh.spawn().unwrap();
        let mut coder = bench.agent(&["coder", "t1", "--cli", "c", "--once"]);
        take_turns(tools.len(), &[folder, bench.tree("t1")]);
        let outside = String::from_utf8(outside.wait_with_output().unwrap().stdout).unwrap();
        coder.wait();
        let inside = bench.outputs();
        assert!(inside.contains(&format!("[liza: confinement {level}")), "{inside}");
        for Tool { name: tool, .. } in tools {
            let first = format!("first-{tool}");
            let ratios = |name: &str| {
                let [inside, outside] = [&inside, &outside].map(|said| least(said, name));
                [inside[0] / outside[0], inside[1] / outside[1]]
            };
            let ([first, _], [second, passed]) = (ratios(&first), ratios(tool));
            eprintln!(
                "{level} {tool}: first build {first:.2} x, second {second:.2} x, {passed:.2} x by the clock"
            );
            assert!(second <= SECOND_MAX, "{level} {tool}: {second:.2}\n{inside}\noutside:\n{outside}");
        }
    }
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_node_a_second_build_in_a_session_is_about_as_fast_as_outside() {
    second_builds_are_about_as_fast_as_outside(&[RUST, PYTHON, NODE]);
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_venv_a_second_build_with_pip_is_about_as_fast_as_outside() {
    second_builds_are_about_as_fast_as_outside(&[PIP]);
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_go_a_second_build_of_go_is_about_as_fast_as_outside() {
    second_builds_are_about_as_fast_as_outside(&[GO]);
}

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_go_a_project_of_the_standard_library_builds_in_a_session_without_a_setting() {
    let Tool { make, build, .. } = GO;
    let builds = format!(
        "{make}\nbuild() {{ {build}; }}\necho \"BUILT session $(build 2>&1)\"\n\
         \"$LIZA\" check -- sh -c '{build} 2>&1 | sed \"s/^/BUILT check /\"'\nexit 1"
    );
    for (level, setting) in LEVELS {
        let bench = Bench::new(&format!("sandbox: auto\n{setting}"), &[("c", &builds)]);
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        let said = bench.outputs();
        assert!(said.contains(&format!("[liza: confinement {level}")), "{said}");
        for place in ["session", "check"] {
            assert!(said.contains(&format!("BUILT {place} 2 1xx\n")), "{level}: {said}");
        }
        let left = [".cache/go-build", "go"].map(|place| bench.home().join(place).exists());
        assert_eq!(left, [false; 2], "{level}: nothing of it is in the person's caches");
    }
}
