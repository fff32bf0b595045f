//! Renders changes once for all open pages of a kind, and gives them to their streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::watch;

use crate::links::Links;
use crate::pages::{self, PageContext};
use crate::region::Regions;
use crate::seat::Seat;
use crate::snapshot::{Snapshot, TeamReading};
use crate::topic::Topic;

#[derive(Debug)]
pub(crate) struct TopicState {
    /// Counts the states of the topic.
    pub(crate) number: u64,
    pub(crate) regions: Regions,
    /// The difference from the state before it.
    pub(crate) step: Bytes,
}

impl TopicState {
    /// The event for a page that last got that state.
    pub(crate) fn event_after(&self, last: Option<u64>) -> Bytes {
        match last {
            Some(last) if last + 1 == self.number => self.step.clone(),
            // The first one, or a page that is slower than the changes.
            Some(_) | None => self.regions.whole().into(),
        }
    }
}

pub(crate) struct Hub {
    pub(crate) seat: Arc<dyn Seat>,
    pub(crate) links: Links,
    latest: Mutex<Arc<Snapshot>>,
    topics: Mutex<HashMap<Topic, watch::Sender<Arc<TopicState>>>>,
}

impl Hub {
    pub(crate) fn new(seat: Arc<dyn Seat>, links: Links) -> Self {
        let latest = Mutex::new(Arc::new(Snapshot::empty()));
        Self { seat, links, latest, topics: Mutex::default() }
    }

    /// The team as it was last read.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The input of a page of that moment.
    pub(crate) fn page<'a>(&'a self, snapshot: &'a Snapshot) -> PageContext<'a> {
        PageContext { seat: &*self.seat, links: &self.links, snapshot }
    }

    /// Shows a reading on all open pages.
    pub(crate) fn publish(&self, reading: TeamReading) {
        let next = Arc::new(self.snapshot().next(reading));
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        let mut topics = self.topics();
        topics.retain(|_, sender| sender.receiver_count() > 0);
        for (topic, sender) in topics.iter() {
            let regions = pages::regions(topic, &self.page(&next));
            let last = Arc::clone(&sender.borrow());
            if let Some(step) = regions.changes_since(&last.regions) {
                let number = last.number + 1;
                sender.send_replace(Arc::new(TopicState { number, regions, step: step.into() }));
            }
        }
    }

    /// The states of a topic, from now on.
    pub(crate) fn subscribe(&self, topic: &Topic) -> watch::Receiver<Arc<TopicState>> {
        let mut topics = self.topics();
        let sender = topics.entry(topic.clone()).or_insert_with(|| {
            let regions = pages::regions(topic, &self.page(&self.snapshot()));
            let state = TopicState { number: 0, regions, step: Bytes::new() };
            watch::Sender::new(Arc::new(state))
        });
        sender.subscribe()
    }

    fn topics(&self) -> MutexGuard<'_, HashMap<Topic, watch::Sender<Arc<TopicState>>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
