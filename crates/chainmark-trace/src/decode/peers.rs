//! The ends of a connection, in any message format.

use std::ops::Range;

use crate::decode::fields::Fields;
use crate::decode::shown;
use crate::event::Peer;
use crate::json::{Scanner, Span, string};
use crate::key;

/// The last connection's ends, in one text.
#[derive(Default)]
pub(super) struct Peers {
    text: String,
    local: Option<Range<usize>>,
    remote: Option<Range<usize>>,
}

impl Peers {
    /// Reads `peer`: an object with `connectionId` "local remote", or with the two ends as objects.
    pub fn read(&mut self, fields: Fields<'_>) -> Peer<'_> {
        let Fields { scanner, .. } = fields;
        let peer = fields.get(key::PEER);
        self.text.clear();
        (self.local, self.remote) = (None, None);
        let connection = match peer.lead(scanner.text) {
            b'{' => scanner.member(peer, key::CONNECTION_ID),
            _ => peer,
        };
        if let Some(connection) =
            string(scanner.text, connection).and_then(|reported| String::from_utf8(reported.into()).ok())
        {
            let plain = connection.split_once(' ').filter(|(_, remote)| !remote.contains(' '));
            if let Some((local, remote)) = plain.or_else(|| shown::connection(&connection)) {
                self.local = Some(self.put(local));
                self.remote = Some(self.put(remote));
            }
        } else if peer.lead(scanner.text) == b'{' {
            self.local = self.end(scanner, scanner.member(peer, key::LOCAL));
            self.remote = self.end(scanner, scanner.member(peer, key::REMOTE));
        }
        let reported = |range: &Option<Range<usize>>| range.clone().map(|range| &self.text[range]);
        Peer { local: reported(&self.local), remote: reported(&self.remote) }
    }

    fn put(&mut self, address: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(address);
        start..self.text.len()
    }

    fn end(&mut self, scanner: Scanner<'_>, end: Span) -> Option<Range<usize>> {
        let reported =
            |key| string(scanner.text, scanner.member(end, key)).and_then(|it| String::from_utf8(it.into()).ok());
        let (address, port) = (reported(key::ADDR)?, reported(key::PORT)?);
        Some(self.put(&format!("{address}:{port}")))
    }
}
