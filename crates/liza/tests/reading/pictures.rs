//! `liza graph`.

use crate::boards::{BUSY, project};
use crate::support::TestProject;

/// Covers: IV-06
#[test]
fn the_graph_has_three_formats() {
    let project = project(BUSY);
    let graph = |format: &str| project.liza(&["graph", "--format", format]).ok().to_owned();
    insta::assert_snapshot!("graph_mermaid", project.liza(&["graph"]).ok());
    assert_eq!(graph("mermaid"), project.liza(&["graph"]).ok());
    assert!(graph("dot").contains("  \"retry-users\" -> \"retry-report\"\n"));
    let svg = graph("svg");
    assert_eq!((svg.matches("<rect ").count(), svg.matches("<path ").count()), (6, 5));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

/// Covers: CM-03
#[test]
fn programs_get_nodes_and_edges() {
    let result = project(BUSY).liza(&["graph", "--json"]).result();
    assert_eq!(result["edges"].as_array().unwrap().len(), 5);
    let layers: Vec<u64> =
        result["nodes"].as_array().unwrap().iter().map(|node| node["layer"].as_u64().unwrap()).collect();
    assert_eq!(layers, [0, 1, 1, 1, 2, 0]);
}

/// Covers: CM-02
#[test]
fn an_unknown_format_is_a_usage_error_and_a_board_without_tasks_an_empty_graph() {
    let project = TestProject::new();
    project.liza(&["graph", "--format", "png", "--json"]).refused(1, "usage");
    assert_eq!(project.liza(&["graph"]).ok(), "graph LR\n");
}
