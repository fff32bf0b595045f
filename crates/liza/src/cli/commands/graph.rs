//! `liza graph`: draws the dependencies between tasks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use liza_core::model::{State, Status, TaskId};
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

/// A task in the picture.
struct Node {
    id: TaskId,
    label: String,
    status: Option<Status>,
    needs: Vec<TaskId>,
    /// The length of the longest chain of dependencies before it.
    layer: usize,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let state = context.project()?.store().snapshot()?;
    let nodes = nodes(&state);
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

fn nodes(state: &State) -> Vec<Node> {
    let board = &state.board;
    let needs: BTreeMap<&TaskId, &[TaskId]> =
        board.summaries().map(|head| (&head.id, head.depends_on.as_slice())).collect();
    let mut layers = BTreeMap::new();
    for id in needs.keys() {
        layer(id, &needs, &mut layers, 0);
    }
    let described = |id: &TaskId| {
        let record = board.body(id).ok().map(|body| body.record());
        record.and_then(|record| record.description.clone()).unwrap_or_default()
    };
    let live = board.summaries().map(|head| Node {
        id: head.id.clone(),
        label: described(&head.id),
        status: head.status,
        needs: head.depends_on.clone(),
        layer: layers.get(&head.id).copied().unwrap_or(0),
    });
    let wanted = |id: &&TaskId| needs.values().any(|needs| needs.contains(id));
    let archived = board.archived.iter().filter(|(id, _)| wanted(id)).map(|(id, status)| Node {
        id: id.clone(),
        label: "in the archive".to_owned(),
        status: Some(*status),
        needs: Vec::new(),
        layer: 0,
    });
    archived.chain(live).collect()
}

/// `validate` reports dependency cycles; here they must only not cause an endless loop.
fn layer<'t>(
    id: &'t TaskId,
    needs: &BTreeMap<&'t TaskId, &'t [TaskId]>,
    layers: &mut BTreeMap<&'t TaskId, usize>,
    depth: usize,
) -> usize {
    if let Some(known) = layers.get(id) {
        return *known;
    }
    if depth > needs.len() {
        return 0;
    }
    // Set before the recursion, so that a cycle ends here.
    layers.insert(id, 0);
    let below = needs.get(id).copied().unwrap_or_default().iter();
    let own = below.map(|need| layer(need, needs, layers, depth + 1) + 1).max().unwrap_or(0);
    layers.insert(id, own);
    own
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

fn mermaid(nodes: &[Node]) -> String {
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

fn dot(nodes: &[Node]) -> String {
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

fn edges(nodes: &[Node]) -> impl Iterator<Item = (&TaskId, &Node)> {
    nodes.iter().flat_map(|node| node.needs.iter().map(move |need| (need, node)))
}

const BOX: (usize, usize) = (220, 54);
const GAP: (usize, usize) = (60, 18);

/// Layers from left to right, each task below the one before it in its layer.
fn svg(nodes: &[Node]) -> String {
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

fn svg_box(node: &Node, x: usize, y: usize) -> String {
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
