//! `liza graph`: draws the dependencies between tasks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use liza_core::model::{Status, TaskId};
use liza_status::view::{DependencyNode, dependency_graph};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{cut, width};
use crate::cli::ui::output::Reply;

/// Draw the dependencies between tasks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza graph > graph.md                 (GitHub draws it between ```mermaid fences)
  liza graph --format dot | dot -Tpng > graph.png
  liza graph --format svg > graph.svg")]
pub(crate) struct Args {
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text that GitHub, GitLab and many editors can draw.
    #[default]
    Mermaid,
    /// Graphviz.
    Dot,
    /// A picture for any browser.
    Svg,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Mermaid => "mermaid",
            Format::Dot => "dot",
            Format::Svg => "svg",
        }
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let state = context.project()?.store().snapshot()?;
    let nodes = dependency_graph(&state);
    let text = match args.format {
        Format::Mermaid => mermaid(&nodes),
        Format::Dot => dot(&nodes),
        Format::Svg => svg(&nodes),
    };
    let edges: Vec<_> =
        nodes.iter().flat_map(|node| node.needs.iter().map(|need| json!([need, node.id]))).collect();
    let names: Vec<_> =
        nodes.iter().map(|node| json!({"id": node.id, "status": node.status, "layer": node.layer})).collect();
    let result = json!({"format": args.format.name(), "graph": text, "nodes": names, "edges": edges});
    Ok(Reply::new(text, result).at(state.board.revision.0))
}

fn colour(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Merged) => "#c8e6c9",
        Some(Status::Claimed | Status::Rejected) => "#fff3c4",
        Some(Status::ReadyForReview | Status::Approved) => "#cfe3ff",
        Some(Status::Blocked | Status::IntegrationFailed) | None => "#ffcdd2",
        Some(Status::Abandoned | Status::Superseded) => "#e0e0e0",
        Some(Status::Draft | Status::Unclaimed) => "#ffffff",
    }
}

fn status_name(status: Option<Status>) -> &'static str {
    status.map_or("unknown", Status::name)
}

fn mermaid(nodes: &[DependencyNode]) -> String {
    let mut text = "graph LR\n".to_owned();
    for node in nodes {
        let label = cut(&node.label, 40).replace('"', "#quot;");
        let (id, status) = (&node.id, status_name(node.status));
        let _ = writeln!(text, "  {id}[\"{id}<br/>{label}<br/><small>{status}</small>\"]");
        let _ = writeln!(text, "  style {id} fill:{}", colour(node.status));
    }
    for (need, node) in edges(nodes) {
        let _ = writeln!(text, "  {need} --> {}", node.id);
    }
    text
}

fn dot(nodes: &[DependencyNode]) -> String {
    let mut text = "digraph tasks {\n  rankdir=LR\n  node [shape=box style=\"rounded,filled\"]\n".to_owned();
    for node in nodes {
        let label = cut(&node.label, 40).replace('\\', "\\\\").replace('"', "\\\"");
        let (id, status, fill) = (&node.id, status_name(node.status), colour(node.status));
        let _ = writeln!(text, "  \"{id}\" [label=\"{id}\\n{label}\\n{status}\" fillcolor=\"{fill}\"]");
    }
    for (need, node) in edges(nodes) {
        let _ = writeln!(text, "  \"{need}\" -> \"{}\"", node.id);
    }
    text.push_str("}\n");
    text
}

fn edges(nodes: &[DependencyNode]) -> impl Iterator<Item = (&TaskId, &DependencyNode)> {
    nodes.iter().flat_map(|node| node.needs.iter().map(move |need| (need, node)))
}

const BOX: (usize, usize) = (220, 54);
const GAP: (usize, usize) = (60, 18);

/// Layers from left to right, each task below the one before it in its layer.
fn svg(nodes: &[DependencyNode]) -> String {
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places: BTreeMap<&TaskId, (usize, usize)> = BTreeMap::new();
    for node in nodes {
        let row = rows.entry(node.layer).or_default();
        let place = (GAP.1 + node.layer * (BOX.0 + GAP.0), GAP.1 + *row * (BOX.1 + GAP.1));
        places.insert(&node.id, place);
        *row += 1;
    }
    let columns = rows.keys().max().map_or(0, |last| last + 1);
    let height = rows.values().max().copied().unwrap_or(0) * (BOX.1 + GAP.1) + GAP.1;
    let wide = GAP.1 * 2 + columns * (BOX.0 + GAP.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {height}\" width=\"{wide}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    for (need, node) in edges(nodes) {
        if let (Some(from), Some(to)) = (places.get(need), places.get(&node.id)) {
            let (x1, y1, x2, y2) = (from.0 + BOX.0, from.1 + BOX.1 / 2, to.0, to.1 + BOX.1 / 2);
            let half = GAP.0 / 2;
            let _ = writeln!(
                text,
                "  <path d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\" fill=\"none\" stroke=\"#666\"/>",
                x1 + half,
                x2.saturating_sub(half)
            );
        }
    }
    for (node, (x, y)) in nodes.iter().filter_map(|node| Some((node, places.get(&node.id)?))) {
        let _ = writeln!(text, "{}", svg_box(node, *x, *y));
    }
    text.push_str("</svg>\n");
    text
}

fn svg_box(node: &DependencyNode, x: usize, y: usize) -> String {
    let line = |row: usize, style: &str, words: &str| {
        let (x, y) = (x + 10, y + 16 + row * 16);
        format!("    <text x=\"{x}\" y=\"{y}\"{style}>{}</text>\n", escaped(words))
    };
    let (wide, high) = BOX;
    let fill = colour(node.status);
    let title = format!("{} — {}", node.id, node.label);
    format!(
        "  <g>\n    <title>{}</title>\n    <rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" rx=\"6\" \
         fill=\"{fill}\" stroke=\"#666\"/>\n{}{}{}  </g>",
        escaped(&cut(&title, width(&title))),
        line(0, " font-weight=\"bold\"", &cut(node.id.as_str(), 30)),
        line(1, "", &cut(&node.label, 34)),
        line(2, " fill=\"#555\"", status_name(node.status)),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
