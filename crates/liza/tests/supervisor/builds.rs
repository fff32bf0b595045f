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

/// Builds three projects, once from nothing and several times after a change, each build when the test says so; prints
/// `BUILT NAME SECONDS`.
const BUILDS: &str = r#"
number=0; mkdir sync
# What the children of this shell have computed since then.
seconds() { awk -F '[ms ]+' 'FNR == 2 { now = $1 * 60 + $2 + $3 * 60 + $4; if (NR > 2) print now - past; past = now }' "$@"; }
timed() {
  name=$1; shift; number=$((number + 1))
  while [ ! -e "$sync/go-$number" ]; do sleep 0.01; done
  times > "$sync/before"
  if "$@" > said 2>&1; then end=BUILT; else end=FAILED; fi
  times > "$sync/after"
  echo "$end $name $(seconds "$sync/before" "$sync/after")"; [ $end = BUILT ] || cat said
  : > "$sync/done-$number"
}
sync=$PWD/sync
mkdir -p built/rust/src built/python built/node && cd built
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' > rust/Cargo.toml
for n in $(seq 300); do echo "pub fn f$n(x: u64) -> String { format!(\"{x} $n {:?}\", vec![x; $n]) }"; done > rust/src/lib.rs
for n in $(seq 200); do seq 100 | sed 's/.*/def f&(x): return [x + &, "&", {x: &}]/' > python/m$n.py; done
echo '{"name": "small", "version": "1.0.0", "scripts": {"build": "node build.js"}}' > node/package.json
echo 'let s = 0; for (let i = 0; i < 2e7; i++) s += i % 7; require("fs").writeFileSync("out", String(s))' > node/build.js
rust() { ( cd rust && RUSTC="TOOLCHAIN/rustc" "TOOLCHAIN/cargo" build --offline ); }
python() { /usr/bin/python3 -m compileall -q python; }
node() { ( cd node && npm install --offline --no-audit --no-fund && npm run build ); }
for tool in rust python node; do timed first-$tool $tool; done
for turn in $(seq TURNS); do
  echo "// $turn" >> rust/src/lib.rs
  for n in $(seq 40); do echo "y = $turn" >> python/m$n.py; done
  for tool in rust python node; do timed $tool $tool; done
done
cd .. && rm -rf built sync
"#;

/// The least computing time of the builds of that name.
fn least(said: &str, name: &str) -> f64 {
    let times =
        said.lines().filter_map(|line| line.strip_prefix("BUILT ")?.strip_prefix(name)?.strip_prefix(' '));
    let times = times.map(|time| time.trim().parse::<f64>().unwrap());
    times.reduce(f64::min).unwrap_or_else(|| panic!("no build of {name}:\n{said}"))
}

/// Lets both build in turns, so that both meet the same machine.
fn take_turns(places: &[PathBuf]) {
    for number in 1..=3 * (TURNS + 1) {
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

/// Covers: RO-01
#[test]
#[cfg(target_os = "linux")]
fn needs_node_a_second_build_in_a_session_is_about_as_fast_as_outside() {
    for (level, setting) in [("isolated", ""), ("restricted", "sandbox_max_abi: 100")] {
        let bench = Bench::new(&format!("sandbox: auto\n{setting}"), &[("c", "")]);
        let script = BUILDS.replace("TOOLCHAIN", &bench.rust().display().to_string());
        let script = script.replace("TURNS", &TURNS.to_string());
        fs::write(bench.home().join("c.sh"), format!("#!/bin/sh\n{script}\nexit 1\n")).unwrap();
        bench.project.add_task("t1");
        let folder = bench.home().join("outside");
        fs::create_dir(&folder).unwrap();
        // With the priority of a session.
        let mut sh = bench.project.command("nice");
        sh.args(["-n", "5", "sh", "-c", &script]).current_dir(&folder).stdout(Stdio::piped());
        let outside = sh.spawn().unwrap();
        let mut coder = bench.agent(&["coder", "t1", "--cli", "c", "--once"]);
        take_turns(&[folder, bench.tree("t1")]);
        let outside = String::from_utf8(outside.wait_with_output().unwrap().stdout).unwrap();
        coder.wait();
        let inside = bench.outputs();
        assert!(inside.contains(&format!("[liza: confinement {level}")), "{inside}");
        for tool in ["rust", "python", "node"] {
            let first = format!("first-{tool}");
            let [one, two] = [&outside, &inside].map(|said| (least(said, &first), least(said, tool)));
            let (first, second) = (two.0 / one.0, two.1 / one.1);
            eprintln!("{level} {tool}: first build {first:.2} x, second {second:.2} x ({:.2} s)", two.1);
            assert!(second <= SECOND_MAX, "{level} {tool}: {second:.2}\n{inside}\noutside:\n{outside}");
        }
    }
}
