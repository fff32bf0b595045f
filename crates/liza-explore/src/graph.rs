//! The boards that were visited, and the steps between them: ways out of each, and circles.

use crate::alphabet::Action;

#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The way to each board: its predecessor and the action.
    pub(crate) parents: Vec<Option<(u32, Action)>>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) ends: Vec<u32>,
    /// Boards whose successors are not known.
    pub(crate) open: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) mover: Mover,
    /// True for the end of a session without a result.
    pub(crate) is_vain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mover {
    Team,
    Human { is_asked: bool },
}

impl Graph {
    /// The shortest way to a board.
    pub(crate) fn path(&self, mut at: u32) -> Vec<Action> {
        let mut path = Vec::new();
        while let Some(Some((parent, action))) = self.parents.get(at as usize) {
            path.push(action.clone());
            at = *parent;
        }
        path.reverse();
        path
    }

    /// For each board, the neighbours over these edges: forwards, or backwards.
    fn neighbours(&self, is_back: bool, wanted: impl Fn(&Edge) -> bool) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); self.parents.len()];
        for edge in self.edges.iter().filter(|edge| wanted(edge)) {
            let (from, to) = if is_back { (edge.to, edge.from) } else { (edge.from, edge.to) };
            all[from as usize].push(to);
        }
        all
    }

    /// The boards from which neither the team nor a person who is asked reaches an end. Beyond the bound nothing is
    /// known: such a board is no witness against the property.
    pub(crate) fn dead_ends(&self) -> Vec<u32> {
        let back = self.neighbours(true, |edge| edge.mover != Mover::Human { is_asked: false });
        let mut leads_on = vec![false; self.parents.len()];
        let mut queue: Vec<u32> = self.ends.iter().chain(&self.open).copied().collect();
        while let Some(at) = queue.pop() {
            if !std::mem::replace(&mut leads_on[at as usize], true) {
                queue.extend(&back[at as usize]);
            }
        }
        (0..).zip(leads_on).filter(|(_, leads)| !leads).map(|(at, _)| at).collect()
    }

    /// The ends of sessions without a result, and one that the team could repeat for ever: it lies on a circle in which
    /// no person moves.
    pub(crate) fn vain_sessions(&self) -> (usize, Option<Edge>) {
        let component = self.components();
        let vain = || self.edges.iter().filter(|edge| edge.is_vain && edge.mover == Mover::Team);
        let is_circle = |edge: &&Edge| component[edge.from as usize] == component[edge.to as usize];
        (vain().count(), vain().find(is_circle).copied())
    }

    /// The strongly connected component of each board over the team's steps, after Kosaraju.
    fn components(&self) -> Vec<u32> {
        let is_teams = |edge: &Edge| edge.mover == Mover::Team;
        let (forwards, backwards) = (self.neighbours(false, is_teams), self.neighbours(true, is_teams));
        let mut order = Vec::with_capacity(forwards.len());
        let mut is_seen = vec![false; forwards.len()];
        for first in 0..self.parents.len() {
            let mut stack = vec![(first, 0)];
            while let Some((at, next)) = stack.pop() {
                if next == 0 && std::mem::replace(&mut is_seen[at], true) {
                    continue;
                }
                match forwards[at].get(next) {
                    Some(to) => stack.extend([(at, next + 1), (*to as usize, 0)]),
                    None => order.push(at),
                }
            }
        }
        let mut component = vec![u32::MAX; forwards.len()];
        for (number, first) in (0..).zip(order.into_iter().rev()) {
            let mut stack = vec![first];
            while let Some(at) = stack.pop() {
                if component[at] == u32::MAX {
                    component[at] = number;
                    stack.extend(backwards[at].iter().map(|to| *to as usize));
                }
            }
        }
        component
    }
}
