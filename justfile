# Habits. `./check` is the gate; these are the short ways to parts of it.

default: check

check:
    ./check

test *ARGS:
    cargo nextest run --workspace {{ARGS}}

lint:
    cargo clippy --workspace --all-targets -- -D warnings

fmt:
    cargo fmt --all

# Rewrites the snapshots and the generated parts of the docs; read the diff before you commit it.
bless:
    INSTA_UPDATE=always LIZA_BLESS=1 cargo nextest run --workspace

demo:
    cargo run --release -- demo
