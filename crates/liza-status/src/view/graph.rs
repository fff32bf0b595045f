//! The dependencies between tasks, in layers. Draws nothing.

use indexmap::IndexMap;

use liza_core::model::{Board, State, Status, TaskId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyNode {
    pub id: TaskId,
    pub label: String,
    /// `None` if the file has an unknown status.
    pub status: Option<Status>,
    pub needs: Vec<TaskId>,
    /// The length of the longest chain of dependencies before it.
    pub layer: usize,
}

/// All tasks on the board, after those of the archive that they depend on.
pub fn dependency_graph(state: &State) -> Vec<DependencyNode> {
    let board = &state.board;
    let mut layers = IndexMap::new();
    for id in board.tasks.keys() {
        layer(id, board, &mut layers, 0);
    }
    let described = |id: &TaskId| {
        let record = board.body(id).ok().map(|body| body.record());
        record.and_then(|record| record.description.clone()).unwrap_or_default()
    };
    let live = board.summaries().map(|head| DependencyNode {
        id: head.id.clone(),
        label: described(&head.id),
        status: head.status,
        needs: head.depends_on.clone(),
        layer: layers.get(&head.id).copied().unwrap_or(0),
    });
    let wanted = |id: &&TaskId| board.summaries().any(|head| head.depends_on.contains(id));
    let archived = board.archived.iter().filter(|(id, _)| wanted(id)).map(|(id, status)| DependencyNode {
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
    board: &'t Board,
    layers: &mut IndexMap<&'t TaskId, usize>,
    depth: usize,
) -> usize {
    if let Some(known) = layers.get(id) {
        return *known;
    }
    if depth > board.tasks.len() {
        return 0;
    }
    // Set before the recursion, so that a cycle ends here.
    layers.insert(id, 0);
    let below = board.summary(id).into_iter().flat_map(|head| &head.depends_on);
    let own = below.map(|need| layer(need, board, layers, depth + 1) + 1).max().unwrap_or(0);
    layers.insert(id, own);
    own
}
