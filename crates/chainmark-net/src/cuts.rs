//! Which ports are cut off from which.

use crate::fabric::LineCut;

/// Ports that are cut off alone, and a partition into groups; a line is cut by either.
#[derive(Debug, Clone)]
pub struct Cuts {
    ports: Vec<LineCut>,
    groups: Vec<u32>,
    between_groups: LineCut,
    spared: Option<usize>,
}

impl Cuts {
    /// Nothing is cut. Lines of the `spared` port never will be.
    pub fn new(ports: usize, spared: Option<usize>) -> Self {
        Self { ports: vec![LineCut::None; ports], groups: vec![0; ports], between_groups: LineCut::None, spared }
    }

    pub fn cut_port(&mut self, port: usize, cut: LineCut) {
        self.ports[port] = cut;
    }

    pub fn partition(&mut self, groups: Vec<u32>, cut: LineCut) {
        self.groups = groups;
        self.between_groups = cut;
    }

    pub fn heal(&mut self) {
        self.between_groups = LineCut::None;
    }

    /// How the line between two ports is cut: the strongest applicable cut.
    pub fn between(&self, from: usize, to: usize) -> LineCut {
        if self.spared.is_some_and(|port| port == from || port == to) {
            return LineCut::None;
        }
        let partition = if self.groups[from] == self.groups[to] { LineCut::None } else { self.between_groups };
        self.ports[from].max(self.ports[to]).max(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_restored_within_a_partition_stays_in_its_group() {
        let mut cuts = Cuts::new(5, Some(4));
        cuts.partition(vec![0, 0, 1, 1, 0], LineCut::Silent);
        cuts.cut_port(0, LineCut::Reset);
        assert_eq!(cuts.between(0, 1), LineCut::Reset);
        assert_eq!(cuts.between(2, 0), LineCut::Reset);
        assert_eq!(cuts.between(1, 2), LineCut::Silent);
        assert_eq!(cuts.between(2, 3), LineCut::None);
        assert_eq!(cuts.between(4, 0), LineCut::None, "whoever watches still sees the node");
        cuts.cut_port(0, LineCut::None);
        assert_eq!(cuts.between(0, 2), LineCut::Silent);
        assert_eq!(cuts.between(0, 1), LineCut::None);
        cuts.heal();
        assert_eq!(cuts.between(0, 2), LineCut::None);
    }
}
