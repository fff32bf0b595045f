//! Detects changes of a blackboard in a database: reliably by polling, and fast by notification.

use std::sync::Weak;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use crate::connection::Connection;
use crate::store::{CHANNEL, DatabaseStore};
use liza_store::Watch;

const INTERVAL: Duration = Duration::from_millis(1000);

/// Reports changes to a watch until it is dropped.
pub(crate) fn poll_for(store: &DatabaseStore, watch: &Watch) {
    let (store, sender, alive) = (store.clone(), watch.sender(), watch.alive());
    // Without a thread, the callers' own slow polls remain.
    let _ = thread::Builder::new().name("liza-poll".to_owned()).spawn(move || poll(&store, &sender, &alive));
}

/// A text that changes with every write: the revision, and the stop files, which have none.
fn version(connection: &mut Connection, project: i64) -> Option<String> {
    let sql = format!(
        "SELECT revision FROM liza.projects WHERE id = {project}; \
         SELECT string_agg(name, ' ' ORDER BY name) FROM liza.stop_files WHERE project = {project}"
    );
    let results = connection.run(&sql).ok()?;
    let text = |at: usize| results.get(at).and_then(|set| set.first()).map(|row| row.text(0).to_owned());
    Some(format!("{} {}", text(0)?, text(1).unwrap_or_default()))
}

fn poll(store: &DatabaseStore, sender: &Sender<()>, alive: &Weak<()>) {
    let mut known = None;
    while alive.strong_count() > 0 {
        let Ok((project, mut connection)) = store.connect() else {
            thread::sleep(INTERVAL);
            continue;
        };
        connection.listen(CHANNEL);
        while alive.strong_count() > 0 {
            let Some(version) = version(&mut connection, project) else { break };
            // The first look reports too: something may have changed before it.
            if known.as_ref() != Some(&version) {
                known = Some(version);
                if sender.send(()).is_err() {
                    return;
                }
            }
            if !connection.wait_for_notification(INTERVAL) && connection.is_closed() {
                break;
            }
        }
        // The connection may work although the query fails, for example without rights.
        thread::sleep(INTERVAL);
    }
}
