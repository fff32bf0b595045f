//! What reading a client's output costs: events and masking, beside the floors of splitting lines and parsing JSON.
//!
//! `cargo bench -p liza --bench stream` prints one table. All figures come from the same run, so the ratios hold on any
//! machine. Never part of the tests: a busy machine is not a defect.

#![expect(clippy::unwrap_used, reason = "a measurement stops at the first thing that is wrong")]

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};

const MEGABYTES: usize = 32;
const ROUNDS: usize = 5;

fn main() {
    println!("best of {ROUNDS} rounds over {MEGABYTES} MB; load: share of a core at 1 MB/s of output");
    println!("{:8} {:>10} {:>8} {:>8} {:>7}", "", "MB/s", "load", "× lines", "× JSON");
    for format in ["claude", "codex"] {
        let output = output(format);
        let lines = best(|| output.split(|byte| *byte == b'\n').map(|line| black_box(line).len()).sum());
        let parsed = best(|| {
            let values = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            values.map(|line| serde_json::from_slice::<Value>(line).unwrap()).filter(Value::is_object).count()
        });
        println!("{format}");
        let figures = [
            ("lines", lines),
            ("JSON", parsed),
            ("events", best(|| liza::benchmark::events(format, &output))),
            ("masks", best(|| liza::benchmark::masked(&output))),
            ("both", best(|| liza::benchmark::events(format, &output) + liza::benchmark::masked(&output))),
        ];
        for (name, seconds) in figures {
            let speed = MEGABYTES as f64 / seconds;
            let (floor, json) = (seconds / lines, seconds / parsed);
            println!("  {name:6} {speed:>10.0} {:>7.3}% {floor:>8.1} {json:>7.2}", 100.0 / speed);
        }
    }
}

/// The shortest time of several rounds, in seconds.
fn best(mut work: impl FnMut() -> usize) -> f64 {
    let timed = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(timed).fold(f64::MAX, f64::min)
}

/// What a program prints while it works: short texts, tool calls, and their long results.
fn output(format: &str) -> Vec<u8> {
    let result: String =
        (0..120).map(|n| format!("src/file_{n}.rs:{n}: let value = compute(input, {n})?;\n")).collect();
    let lines = match format {
        "claude" => vec![
            json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look at the callers first."}],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 30_000}}, "parent_tool_use_id": null}),
            json!({"type": "assistant", "message": {"id": "m2", "content": [{"type": "tool_use", "name": "Bash",
                "input": {"command": "grep -rn compute src"}}], "usage": {"input_tokens": 10}}, "parent_tool_use_id": null}),
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": result}]}}),
        ],
        _ => vec![
            json!({"type": "item.completed", "item": {"id": "i0", "type": "agent_message", "text": "I look at the callers first."}}),
            json!({"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "grep -rn compute src"}}),
            json!({"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "grep -rn compute src",
                "aggregated_output": result, "exit_code": 0}}),
        ],
    };
    let block: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let mut output = block.repeat((MEGABYTES << 20) / block.len() + 1);
    output.truncate(output.len() - 1);
    output
}
