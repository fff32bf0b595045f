//! The input of every page.

use crate::links::Links;
use crate::seat::Seat;
use crate::snapshot::Snapshot;

pub(crate) struct PageContext<'a> {
    pub(crate) seat: &'a dyn Seat,
    pub(crate) links: &'a Links,
    pub(crate) snapshot: &'a Snapshot,
}
