//! What every page is made from.

use crate::links::Links;
use crate::seat::Seat;
use crate::snapshot::Snapshot;

/// What a page is made from.
pub(crate) struct PageContext<'a> {
    pub(crate) seat: &'a dyn Seat,
    pub(crate) links: &'a Links,
    pub(crate) snapshot: &'a Snapshot,
}
