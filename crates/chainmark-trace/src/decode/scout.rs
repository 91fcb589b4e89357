//! Lines decoded by another thread than the one that counts them.
//!
//! A thread that decodes a piece of a file does not know the preceding lines. So a scout only reports the content of a
//! line by itself, and only of lines as nodes write them; all others (wrapped or cut ones, damaged ones, those about
//! the node itself) are left to the decoder, which processes everything in line order. Its counts, and the order in
//! which it sees names, are therefore the same for any number of scouts.

use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::decode::opening::Opened;
use crate::decode::{Core, Line};
use crate::event::OwnedEvent;
use crate::message::{Route, Routed};
use crate::text::Text;

/// Decodes pieces of files, and counts nothing.
#[derive(Default)]
pub struct Scout {
    /// Its counts are not used.
    core: Core,
    /// Names that it has reported.
    names_reported: usize,
}

/// A namespace and kind.
type NameTexts = (Box<[u8]>, Box<[u8]>);

/// What a scout found in a piece.
#[derive(Default)]
pub struct Findings {
    lines: Vec<Finding>,
    events: Vec<OwnedEvent>,
    /// From which line on there is which host.
    hosts: Vec<(usize, Box<[u8]>)>,
    /// Those that the scout met for the first time, in their order.
    names: Vec<NameTexts>,
}

struct Finding {
    at_ns: i64,
    start: u32,
    end: u32,
    /// Its index among the names that the scout has reported.
    name: u16,
    class: Class,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Class {
    /// For the decoder.
    Other,
    Ignored,
    Event,
}

/// Findings on their way to another machine, column by column, which compresses better.
#[derive(Serialize, Deserialize)]
pub struct PackedFindings {
    classes: Vec<Class>,
    /// Times of the lines but those for the decoder, each less the previous one.
    steps_ns: Vec<i64>,
    name_indices: Vec<u16>,
    /// Lengths of the lines for the decoder, whose text is not among the findings.
    lengths: Vec<u32>,
    events: Vec<OwnedEvent>,
    hosts: Vec<(usize, Box<[u8]>)>,
    names: Vec<NameTexts>,
}

/// A namespace and kind, as a scout reports it, and the class of its lines.
pub struct Name {
    ns: Box<[u8]>,
    kind: Box<[u8]>,
    routed: Cell<Option<Routed>>,
}

/// A line, as a scout reports it.
pub struct Scouted<'a> {
    at_ns: i64,
    host: &'a [u8],
    name: &'a Name,
    /// None if it is ignored.
    event: Option<&'a OwnedEvent>,
}

impl Scout {
    /// Decodes the lines of a piece, whose bounds are in `lines`, reusing the findings of another; how many there are.
    pub fn look(
        &mut self,
        text: &Text<'_>,
        lines: impl Iterator<Item = (usize, usize)>,
        findings: &mut Findings,
    ) -> u64 {
        findings.clear();
        for (start, end) in lines {
            self.line(text, start, end, findings);
        }
        let names = self.core.routes.names_behind(self.names_reported);
        findings.names.extend(names.map(|(ns, kind)| (ns.into(), kind.into())));
        self.names_reported += findings.names.len();
        findings.lines.len() as u64
    }

    #[inline(always)]
    fn line(&mut self, text: &Text<'_>, start: usize, end: usize, findings: &mut Findings) {
        let mut finding = Finding { at_ns: 0, start: start as u32, end: end as u32, name: 0, class: Class::Other };
        match self.core.plain(text, start, end) {
            Some(Line::Event(event)) => {
                (finding.at_ns, finding.class) = (event.at_ns, Class::Event);
                findings.events.push(OwnedEvent::new(&event));
            }
            Some(Line::Ignored) => {
                (finding.at_ns, finding.class) = (self.core.tally.last_ns.unwrap_or_default(), Class::Ignored);
            }
            _ => return findings.lines.push(finding),
        }
        match self.core.routed {
            Routed { route: Route::Note(_), .. } | Routed { known: None, .. } => {
                if finding.class == Class::Event {
                    findings.events.pop();
                }
                finding.class = Class::Other;
            }
            Routed { known: Some(name), .. } => finding.name = name,
        }
        let host = self.core.last_name.0.as_bytes();
        if findings.hosts.last().is_none_or(|(_, last)| **last != *host) {
            findings.hosts.push((findings.lines.len(), host.into()));
        }
        findings.lines.push(finding);
    }
}

impl Findings {
    pub fn clear(&mut self) {
        self.lines.clear();
        self.events.clear();
        self.hosts.clear();
        self.names.clear();
    }

    /// Packs everything, and appends the lines that are left to the decoder to `text`, each with a newline.
    pub fn pack(&mut self, from: &Text<'_>, text: &mut Vec<u8>) -> PackedFindings {
        let (mut steps_ns, mut name_indices, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let mut last_ns = 0;
        for line in &self.lines {
            if line.class == Class::Other {
                text.extend_from_slice(&from.bytes[line.start as usize..line.end as usize]);
                text.push(b'\n');
                lengths.push(line.end - line.start);
            } else {
                steps_ns.push(line.at_ns.wrapping_sub(last_ns));
                name_indices.push(line.name);
                last_ns = line.at_ns;
            }
        }
        PackedFindings {
            classes: self.lines.iter().map(|line| line.class).collect(),
            steps_ns,
            name_indices,
            lengths,
            events: std::mem::take(&mut self.events),
            hosts: std::mem::take(&mut self.hosts),
            names: std::mem::take(&mut self.names),
        }
    }

    /// Removes the names that the scout met for the first time; they follow those of its earlier pieces.
    pub fn take_names(&mut self) -> impl Iterator<Item = Name> + '_ {
        self.names.drain(..).map(|(ns, kind)| Name { ns, kind, routed: Cell::new(None) })
    }

    /// Every line: its bounds, and the scout's result; None is for the decoder.
    pub fn lines<'a>(&'a self, names: &'a [Name]) -> impl Iterator<Item = (usize, usize, Option<Scouted<'a>>)> {
        let mut events = self.events.iter();
        let mut hosts = self.hosts.iter().peekable();
        let mut host: &[u8] = &[];
        self.lines.iter().enumerate().map(move |(place, line)| {
            if let Some((_, next)) = hosts.next_if(|(from, _)| *from == place) {
                host = next;
            }
            let event = if line.class == Class::Event { events.next() } else { None };
            let scouted = (line.class != Class::Other).then(|| {
                let name = &names[usize::from(line.name)];
                Scouted { at_ns: line.at_ns, host, name, event }
            });
            (line.start as usize, line.end as usize, scouted)
        })
    }
}

impl PackedFindings {
    /// The findings, in a text of this size with only the lines for the decoder; None if the columns do not fit.
    pub fn unpack(self, known_names: usize, text_bytes: usize) -> Option<Findings> {
        let Self { classes, steps_ns, name_indices, lengths, mut events, hosts, names } = self;
        let (mut steps_ns, mut name_indices, mut lengths) =
            (steps_ns.into_iter(), name_indices.into_iter(), lengths.into_iter());
        let (mut at_ns, mut start, mut count) = (0_i64, 0_u32, 0);
        let mut lines = Vec::with_capacity(classes.len());
        for class in classes {
            let mut line = Finding { at_ns: 0, start, end: start, name: 0, class };
            if class == Class::Other {
                line.end = start.checked_add(lengths.next()?)?;
                start = line.end.checked_add(1)?;
            } else {
                at_ns = at_ns.wrapping_add(steps_ns.next()?);
                (line.at_ns, line.name) = (at_ns, name_indices.next()?);
                if usize::from(line.name) >= known_names + names.len() {
                    return None;
                }
            }
            if class == Class::Event {
                events.get_mut(count)?.at_ns = at_ns;
                count += 1;
            }
            lines.push(line);
        }
        let fits = count == events.len() && start as usize == text_bytes;
        fits.then_some(Findings { lines, events, hosts, names })
    }
}

impl Core {
    /// The class of a line as nodes write it, none of any other.
    #[inline(always)]
    fn plain(&mut self, text: &Text<'_>, start: usize, end: usize) -> Option<Line<'_>> {
        let rest = self.rest_of(text, start, end);
        if let Some(rest) = rest
            && let Some(line) = self.known(text, start, rest)
        {
            return Some(line);
        }
        match self.opening.open(text, start, end) {
            Opened::Trace if self.opening.envelope.plain => Some(self.trace(text, start, end, rest)),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) fn scouted<'a>(&mut self, scouted: &Scouted<'a>) -> Line<'a> {
        let Name { ns, kind, routed } = scouted.name;
        let routed = routed.get().unwrap_or_else(|| {
            let route = self.routes.find(ns, kind);
            routed.set(Some(route));
            route
        });
        self.report_host(scouted.host);
        self.count_object(scouted.at_ns);
        match (routed.route, scouted.event) {
            (Route::Decode(message), Some(event)) => {
                let event = event.event();
                self.decoded[message as usize] += 1;
                self.tally.count_address(&event.fact);
                Line::Event(event)
            }
            _ => {
                self.routes.count_ignored(routed);
                Line::Ignored
            }
        }
    }
}
