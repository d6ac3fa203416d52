//! Decides which events to apply: none twice, and of one seat or grant none that is earlier than the last one.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

struct Position {
    created_at: String,
    endpoint: String,
    sequence: u64,
    id: String,
}

impl Position {
    /// Each endpoint counts for itself, so sequences of two say nothing about each other: then the ids decide.
    fn is_later(&self, last: &Self) -> bool {
        if self.created_at != last.created_at {
            return self.created_at > last.created_at;
        }
        if self.endpoint == last.endpoint && self.sequence != last.sequence {
            return self.sequence > last.sequence;
        }
        self.id > last.id
    }
}

/// In memory for the example. In production, use two tables, one with the event's id as its key and one with the
/// subject's, and write them in the transaction that does the work.
#[derive(Default)]
pub struct Events {
    seen: HashSet<String>,
    latest: HashMap<String, Position>,
}

impl Events {
    /// Whether to apply an event.
    pub fn is_due(&mut self, event: &Value, endpoint: &str, sequence: u64) -> bool {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        // A test event is accepted like any other and never acted on: the ids in its data name nothing.
        if event["test"] == true || !self.seen.insert(text("id")) {
            return false;
        }
        let Some(subject) = find_subject(&event["data"]) else {
            return true;
        };
        let position = Position {
            created_at: text("createdAt"),
            endpoint: endpoint.to_owned(),
            sequence,
            id: text("id"),
        };
        if self
            .latest
            .get(&subject)
            .is_some_and(|last| !position.is_later(last))
        {
            return false;
        }
        self.latest.insert(subject, position);
        true
    }
}

/// What an event is about: a seat, or else a grant. A grant has several seats, one after another.
fn find_subject(data: &Value) -> Option<String> {
    let find = |name: &str| Some(format!("{name} {}", data[name].as_str()?));
    find("seatId").or_else(|| find("grantId"))
}
