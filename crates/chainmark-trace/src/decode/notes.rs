//! Facts in lines about the node itself, besides the events: its name, its version, its network.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::accounting::{HostCounts, MAX_ADDRESSES, MAX_NAMES, count_name};
use crate::decode::fields::Fields;
use crate::event::{Fact, Peer};
use crate::json::{Key, string};
use crate::key;
use crate::message::Note;

/// Counts the previous host, and begins to count another one.
#[cold]
pub(super) fn count_host(names: &mut BTreeMap<String, u64>, last: &mut (String, u64), host: &[u8]) {
    if let Some(count) = names.get_mut(&last.0) {
        *count += last.1;
    }
    let host = String::from_utf8_lossy(host).into_owned();
    if names.len() < MAX_NAMES {
        names.entry(host.clone()).or_insert(0);
    }
    *last = (host, 1);
}

impl HostCounts {
    /// A fetch line contains the host's own end of the connection.
    #[inline(always)]
    pub(super) fn count_address(&mut self, fact: &Fact<'_>) {
        if let Fact::Fetched { peer: Peer { local: Some(local), .. }, .. } = fact {
            count_name(&mut self.local_addresses, local, MAX_ADDRESSES);
        }
    }

    #[cold]
    pub(super) fn note(&mut self, note: Note, fields: Fields<'_>) {
        let value_of = |key: Key| {
            let value = fields.members.get(fields.scanner.text, key);
            let text = string(fields.scanner.text, value).or_else(|| {
                let number = value.lead(fields.scanner.text).is_ascii_digit();
                number.then(|| Cow::Borrowed(value.of(fields.scanner.text)))
            })?;
            (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
        };
        match note {
            Note::Version => {
                self.node_version = value_of(key::APPLICATION_VERSION).or(self.node_version.take());
                self.node_revision = value_of(key::GIT_REVISION).or(self.node_revision.take());
                self.compiler_version = value_of(key::COMPILER_VERSION).or(self.compiler_version.take());
            }
            Note::Startup => {
                self.network_magic = value_of(key::NETWORK_MAGIC).or(self.network_magic.take());
                // Where the severity leaves the message of the version out, this one has it, too.
                self.node_version = self.node_version.take().or_else(|| value_of(key::VERSION));
                self.node_revision = self.node_revision.take().or_else(|| value_of(key::COMMIT));
            }
        }
    }

    /// Old nodes log version and revision in every line: "8.1.1:ea2c0".
    #[cold]
    pub(super) fn note_environment(&mut self, text: Option<Cow<'_, [u8]>>) {
        let Some(text) = text else { return };
        let text = String::from_utf8_lossy(&text);
        if let Some((version, revision)) = text.split_once(':').filter(|(version, _)| !version.is_empty()) {
            self.node_version = Some(version.to_owned());
            self.node_revision = Some(revision.to_owned());
        }
    }
}
