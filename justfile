# Habits. `./check` is the gate; these are the short ways to parts of it.

default: check

check:
    ./check

# Everything: the gate, and what does not fit into its time.
full:
    .ci/install-clients claude
    LIZA_FULL=1 ./check --all
    cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
    cargo deny check bans licenses sources
    just mutants

# Whole goals with the real agent programs and a scripted model; installs them below target/.
e2e:
    .ci/install-clients goose codex claude gemini opencode copilot qwen vibe
    cargo nextest run --workspace --test clients --success-output final

# Every board that small teams can reach, up to that many each; figures in target/evidence/exploration.json.
explore BOARDS="200000":
    cargo run --release -p liza-explore --example explore -- {{BOARDS}}

# Whole teams by seed, with crashes, lost answers and late commands; one seed again: just simulate 1 SEED.
simulate SEEDS="1000000" FIRST="0":
    cargo run --release -p liza-explore --example simulate -- {{SEEDS}} {{FIRST}}

# What the screens say of a team at work is what happens, in so many random worlds: 10000 take about an hour on a quiet machine.
worlds NUMBER="10000":
    LIZA_WORLDS={{NUMBER}} cargo nextest run --release -p liza-core at_work

test *ARGS:
    cargo nextest run --workspace {{ARGS}}

lint:
    cargo clippy --workspace --all-targets -- -D warnings

fmt:
    cargo fmt --all

# Rewrites the snapshots and the generated parts of the docs; read the diff before you commit it.
bless:
    INSTA_UPDATE=always LIZA_BLESS=1 cargo nextest run --workspace

# The trial with many pairs: what supervision adds, measured and predicted.
trial *ARGS:
    cargo run --release -p liza --features trial -- trial --pairs 3000 {{ARGS}}

# Kills, races, failures and attacks of the real program, by the tests that `.config/faults` names, counted in target/evidence/faults.jsonl; fails if one of them goes wrong. Some 20 minutes, and longer with more RUNS with real processes that are compared with runs in memory.
faults RUNS="30":
    mkdir -p target/evidence
    echo "{\"commit\": \"$(git rev-parse --short=12 HEAD)\"}" > target/evidence/faults.jsonl
    LIZA_FULL=1 LIZA_RUNS={{RUNS}} LIZA_EVIDENCE=$PWD/target/evidence/faults.jsonl cargo nextest run --workspace -E "test(/(^|::)($(paste -sd'|' .config/faults))$/)"

# Explores, simulates, tries the real program and runs the trial, and writes docs/scorecard.md with its figures, its chart and the three numbers of the README.
scorecard BOARDS="20000" SEEDS="10000" PAIRS="3000": (explore BOARDS) (simulate SEEDS) faults
    cargo run --release -p liza-trial --example scorecard -- {{PAIRS}}

# A release archive with manual pages and completions, in target/package.
package:
    packaging/package

# Makes the pictures of the docs from the real program.
pictures:
    cargo build --release -p liza
    packaging/screenshots

demo:
    cargo demo

# Fuzzes each reader of untrusted input for so many seconds, with the cases that follow from the seed.
fuzz SECONDS="60" SEED="2":
    LIZA_FUZZ_SECONDS={{SECONDS}} LIZA_FUZZ_SEED={{SEED}} cargo test --workspace --lib fuzz_ -- --nocapture --test-threads 2

# Small changes in the rules, all in one build, a random sample by seed, of which the tests should notice 95 of 100. Writes docs/mutants.md.
mutants NUMBER="300" SEED="1":
    cargo run -q -p liza-mutants --example mutants -- {{NUMBER}} {{SEED}}
