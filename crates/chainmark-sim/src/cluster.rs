//! The connections between hosts, and their distances.

use serde::{Deserialize, Serialize};

use crate::error::{Result, SimulationError};
use crate::random::{Draws, Purpose, normal_quantile};

/// Upstream peers are remembered as bits of a word.
pub const UPSTREAM_MAX: usize = 64;

/// Which random graph, and which links are longer than their regions' mean, belongs to the network: another seed of a
/// simulation is chance on the same network, and its standard error says how much.
const NETWORK_SEED: u64 = 1;

/// A region and the names that topology files use for it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Region {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
}

/// One host of a listed topology.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ListedHost {
    pub name: String,
    pub region: String,
    /// The hosts it fetches from.
    pub producers: Vec<String>,
    /// How many blocks it forges for one of a host with one pool; a relay forges none.
    #[serde(default = "one")]
    pub pools: u32,
}

fn one() -> u32 {
    1
}

/// The rule by which hosts choose their upstream peers.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// Per region a ring with two chords, and one host of every other region.
    TorusDense,
    /// This number of random hosts of the own region and of every other one.
    Random { in_region: usize, per_other_region: usize },
    /// As a file lists it.
    Listed { hosts: Vec<ListedHost> },
}

/// A cluster as it is ordered.
///
/// `rtt_s[a][b]` is the mean round trip in seconds from region a to region b; `rtt_spread_s` the standard deviation
/// of that mean from link to link.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    pub hosts: usize,
    pub topology: Topology,
    pub regions: Vec<Region>,
    pub rtt_s: Vec<Vec<f64>>,
    #[serde(default)]
    pub rtt_spread_s: Option<Vec<Vec<f64>>>,
    /// What a fetch lasts otherwise than the rest of the model says, from region a by region b.
    #[serde(default)]
    pub fetches: Option<Vec<Vec<FetchChange>>>,
    /// Regions whose hosts do not take part.
    #[serde(default)]
    pub lost_regions: Vec<String>,
}

/// A fetch from request to body: a factor and an additional time; never below zero.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FetchChange {
    pub factor: f64,
    pub more_s: f64,
}

impl FetchChange {
    pub const NONE: Self = Self { factor: 1.0, more_s: 0.0 };
}

/// One direction of a connection: bodies flow from `upstream` to the host that owns the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Upstream {
    pub host: u32,
    pub rtt_s: f64,
    /// Number of the link, for its window memory.
    pub link: u32,
    pub in_region: bool,
    pub fetch: FetchChange,
}

/// One host that fetches from the owner of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downstream {
    pub host: u32,
    /// Place of the owner in that host's list of upstream peers.
    pub place: u32,
}

/// A cluster as it is simulated. All lists are indexed by host number.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub names: Vec<String>,
    /// The numbers that random draws are keyed by: they stay when a region is lost.
    pub numbers: Vec<u32>,
    pub regions: Vec<Region>,
    pub region_of: Vec<usize>,
    /// Ascending by round trip: the order in which a host requests.
    pub upstream: Vec<Vec<Upstream>>,
    pub downstream: Vec<Vec<Downstream>>,
    /// As the topology lists them, for files that describe it.
    pub producers: Vec<Vec<u32>>,
    /// How many blocks each forges of a round in which a host with one pool forges one.
    pub pools: Vec<u32>,
    pub links: usize,
}

impl Cluster {
    /// Build the cluster; the same order always gives the same network.
    ///
    /// # Errors
    /// No hosts, an unknown region, a negative or missing round trip, a host that has itself or an unknown host as a
    /// peer, more than 64 upstream peers, or a host that blocks cannot reach.
    pub fn build(order: &ClusterConfig) -> Result<Self> {
        check_regions(order)?;
        let places = match &order.topology {
            Topology::Listed { hosts } => listed(hosts, &order.regions)?,
            rule => by_rule(order.hosts, order.regions.len(), rule)?,
        };
        let places = without_lost_regions(places, order)?;
        Self::connect(places, order)
    }

    pub fn hosts(&self) -> usize {
        self.names.len()
    }

    fn connect(places: Places, order: &ClusterConfig) -> Result<Self> {
        let n = places.names.len();
        if n < 2 {
            return Err(SimulationError::impossible(
                "a cluster of 1 host has nobody to send a block to",
                "at least 2 hosts are needed",
            ));
        }
        if places.pools.iter().all(|&pools| pools == 0) {
            return Err(SimulationError::impossible(
                "no host of the cluster has a pool, so no block is forged",
                "at least one host that takes part needs one",
            ));
        }
        let mut links = 0;
        let mut upstream: Vec<Vec<Upstream>> = Vec::with_capacity(n);
        for (host, producers) in places.producers.iter().enumerate() {
            if producers.len() > UPSTREAM_MAX {
                return Err(SimulationError::impossible(
                    format!("{} has {} upstream peers", places.names[host], producers.len()),
                    format!("at most {UPSTREAM_MAX} are simulated"),
                ));
            }
            let mut list: Vec<Upstream> = Vec::with_capacity(producers.len());
            for &peer in producers {
                let regions = (places.region_of[peer as usize], places.region_of[host]);
                let numbers = (places.numbers[peer as usize], places.numbers[host]);
                let rtt_s = link_rtt_s(order, regions, numbers);
                let fetch = order.fetches.as_ref().map_or(FetchChange::NONE, |all| all[regions.0][regions.1]);
                list.push(Upstream { host: peer, rtt_s, link: 0, in_region: regions.0 == regions.1, fetch });
            }
            list.sort_by(|a, b| a.rtt_s.total_cmp(&b.rtt_s).then(a.host.cmp(&b.host)));
            for entry in &mut list {
                entry.link = links;
                links += 1;
            }
            upstream.push(list);
        }
        let mut downstream = vec![Vec::new(); n];
        for (host, list) in upstream.iter().enumerate() {
            for (place, entry) in list.iter().enumerate() {
                downstream[entry.host as usize].push(Downstream { host: host as u32, place: place as u32 });
            }
        }
        let cluster = Self {
            names: places.names,
            numbers: places.numbers,
            regions: order.regions.clone(),
            region_of: places.region_of,
            upstream,
            downstream,
            producers: places.producers,
            pools: places.pools,
            links: links as usize,
        };
        cluster.check_connected()?;
        Ok(cluster)
    }

    fn check_connected(&self) -> Result<()> {
        let forward = |host: usize| self.downstream[host].iter().map(|d| d.host as usize).collect::<Vec<_>>();
        let backward = |host: usize| self.upstream[host].iter().map(|u| u.host as usize).collect::<Vec<_>>();
        for (neighbours, what) in [
            (&forward as &dyn Fn(usize) -> Vec<usize>, "receives no block of"),
            (&backward as &dyn Fn(usize) -> Vec<usize>, "sends no block to"),
        ] {
            if let Some(host) = first_unreached(self.hosts(), neighbours) {
                return Err(SimulationError::impossible(
                    format!("the topology is not connected: {} {what} {}", self.names[host], self.names[0]),
                    "every host must reach every other one over its upstream peers",
                ));
            }
        }
        Ok(())
    }
}

fn first_unreached(n: usize, neighbours: &dyn Fn(usize) -> Vec<usize>) -> Option<usize> {
    let mut seen = vec![false; n];
    let mut queue = vec![0];
    seen[0] = true;
    while let Some(host) = queue.pop() {
        for next in neighbours(host) {
            if !seen[next] {
                seen[next] = true;
                queue.push(next);
            }
        }
    }
    seen.iter().position(|reached| !reached)
}

/// Hosts, their regions and their upstream peers, before distances are known.
struct Places {
    names: Vec<String>,
    numbers: Vec<u32>,
    region_of: Vec<usize>,
    producers: Vec<Vec<u32>>,
    pools: Vec<u32>,
}

fn check_regions(order: &ClusterConfig) -> Result<()> {
    let n = order.regions.len();
    if n == 0 {
        return Err(SimulationError::impossible("the cluster has no regions", "name at least one region"));
    }
    let spread = order.rtt_spread_s.iter();
    for (name, matrix) in std::iter::once(("rtt_s", &order.rtt_s)).chain(spread.map(|m| ("rtt_spread_s", m))) {
        if matrix.len() != n || matrix.iter().any(|row| row.len() != n) {
            return Err(SimulationError::impossible(
                format!("`{name}` must hold {n} rows of {n} round trips, one for each pair of regions"),
                "rows and columns stand in the order of the regions",
            ));
        }
        for (a, row) in matrix.iter().enumerate() {
            for (b, value) in row.iter().enumerate() {
                let allowed = if name == "rtt_s" { *value > 0.0 } else { *value >= 0.0 };
                if !value.is_finite() || !allowed || *value > 60.0 {
                    return Err(SimulationError::impossible(
                        format!("the round trip {}–{} is {value} s", order.regions[a].name, order.regions[b].name),
                        "a round trip is more than 0 and at most 60 s",
                    ));
                }
            }
        }
    }
    for lost in &order.lost_regions {
        region_number(&order.regions, lost)?;
    }
    check_fetches(order, n)
}

fn check_fetches(order: &ClusterConfig, n: usize) -> Result<()> {
    let Some(fetches) = &order.fetches else { return Ok(()) };
    if fetches.len() != n || fetches.iter().any(|row| row.len() != n) {
        return Err(SimulationError::impossible(
            format!("`fetches` must hold {n} rows of {n} changes, one for each pair of regions"),
            "rows and columns stand in the order of the regions",
        ));
    }
    let allowed = |change: &FetchChange| (0.0..=100.0).contains(&change.factor) && change.more_s.abs() <= 600.0;
    if let Some(change) = fetches.iter().flatten().find(|change| !allowed(change)) {
        return Err(SimulationError::impossible(
            format!("a fetch cannot last {} times as long and {} s longer", change.factor, change.more_s),
            "the factor is from 0 to 100, the difference at most 600 s",
        ));
    }
    Ok(())
}

fn region_number(regions: &[Region], name: &str) -> Result<usize> {
    regions.iter().position(|region| region.name == name || region.aliases.iter().any(|a| a == name)).ok_or_else(|| {
        let known: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
        SimulationError::impossible(
            format!("there is no region `{name}`"),
            format!("known regions: {}", known.join(", ")),
        )
    })
}

fn by_rule(hosts: usize, regions: usize, rule: &Topology) -> Result<Places> {
    if hosts == 0 {
        return Err(SimulationError::impossible("the cluster has no hosts", "at least 2 hosts are needed"));
    }
    if hosts > 1_000_000 {
        return Err(SimulationError::impossible(format!("{hosts} hosts are too many"), "at most 1,000,000 hosts"));
    }
    let region_of: Vec<usize> = (0..hosts).map(|host| host % regions).collect();
    let members: Vec<Vec<u32>> =
        (0..regions).map(|r| (0..hosts as u32).filter(|&h| h as usize % regions == r).collect()).collect();
    let producers = match rule {
        Topology::Random { in_region, per_other_region } => {
            let before: Vec<u32> = cyclic_predecessors(&members);
            let peers = |host| random_peers(host, &members, before[host], (*in_region, *per_other_region));
            (0..hosts).map(peers).collect()
        }
        _ => (0..hosts).map(|host| torus_peers(host, &members)).collect(),
    };
    let names = (0..hosts).map(|h| format!("node-{h}")).collect();
    Ok(Places { names, numbers: (0..hosts as u32).collect(), region_of, producers, pools: vec![1; hosts] })
}

/// One host of every other region, then next, previous and two chords of the own ring: the order in which the
/// benchmark's own topology files list them.
fn torus_peers(host: usize, members: &[Vec<u32>]) -> Vec<u32> {
    let regions = members.len();
    let (own, index) = (&members[host % regions], host / regions);
    let length = own.len();
    let mut peers: Vec<u32> = Vec::new();
    for other in 1..regions {
        let there = &members[(host + other) % regions];
        if !there.is_empty() {
            peers.push(there[index % there.len()]);
        }
    }
    for offset in [1, length - 1, length / 3, 2 * length / 3] {
        peers.push(own[(index + offset) % length]);
    }
    let mut unique: Vec<u32> = Vec::with_capacity(peers.len());
    for peer in peers {
        if peer as usize != host && !unique.contains(&peer) {
            unique.push(peer);
        }
    }
    unique
}

/// By host: the previous one on a random round through its region. If all peers were drawn freely, one host in 400
/// would have no downstream peer and its blocks would be lost.
fn cyclic_predecessors(members: &[Vec<u32>]) -> Vec<u32> {
    let draws = Draws::new(NETWORK_SEED, 0);
    let mut before = vec![0; members.iter().map(Vec::len).sum()];
    for there in members {
        let mut round: Vec<(u64, u32)> = there.iter().map(|&h| (draws.bits(h, Purpose::Shuffle, 0), h)).collect();
        round.sort_unstable();
        for (place, (_, host)) in round.iter().enumerate() {
            before[*host as usize] = round[(place + round.len() - 1) % round.len()].1;
        }
    }
    before
}

/// Random hosts of the own region, `before` among them, and of every other one.
fn random_peers(host: usize, members: &[Vec<u32>], before: u32, wanted: (usize, usize)) -> Vec<u32> {
    let draws = Draws::new(NETWORK_SEED, 0);
    let mut peers = Vec::with_capacity(wanted.0 + wanted.1 * members.len());
    let mut index = 0;
    for (region, there) in members.iter().enumerate() {
        let own = region == host % members.len();
        let available = there.len() - usize::from(own);
        let count = if own { wanted.0 } else { wanted.1 }.min(available);
        let first = peers.len();
        if own && count > 0 {
            peers.push(before);
        }
        while peers.len() - first < count {
            let peer = there[draws.below(host as u32, Purpose::Graph, index, there.len() as u64) as usize];
            index += 1;
            if peer as usize != host && !peers.contains(&peer) {
                peers.push(peer);
            }
        }
    }
    peers
}

fn listed(hosts: &[ListedHost], regions: &[Region]) -> Result<Places> {
    let numbers: std::collections::HashMap<&str, u32> =
        hosts.iter().enumerate().map(|(number, host)| (host.name.as_str(), number as u32)).collect();
    if numbers.len() != hosts.len() {
        return Err(SimulationError::impossible("the topology lists a host twice", "host names must differ"));
    }
    let mut region_of = Vec::with_capacity(hosts.len());
    let mut producers = Vec::with_capacity(hosts.len());
    for host in hosts {
        region_of.push(region_number(regions, &host.region)?);
        let mut peers = Vec::with_capacity(host.producers.len());
        for name in &host.producers {
            let peer = *numbers.get(name.as_str()).ok_or_else(|| {
                SimulationError::impossible(
                    format!("the topology's {} fetches from `{name}`, which is not listed", host.name),
                    "every producer must be a host of the same file",
                )
            })?;
            if hosts[peer as usize].name == host.name || peers.contains(&peer) {
                return Err(SimulationError::impossible(
                    format!("the topology's {} fetches from `{name}` twice or from itself", host.name),
                    "list every other host at most once",
                ));
            }
            peers.push(peer);
        }
        producers.push(peers);
    }
    let names = hosts.iter().map(|host| host.name.clone()).collect();
    let pools = hosts.iter().map(|host| host.pools).collect();
    Ok(Places { names, numbers: (0..hosts.len() as u32).collect(), region_of, producers, pools })
}

fn without_lost_regions(places: Places, order: &ClusterConfig) -> Result<Places> {
    let mut lost = vec![false; order.regions.len()];
    for name in &order.lost_regions {
        lost[region_number(&order.regions, name)?] = true;
    }
    let mut number = vec![None; places.names.len()];
    let mut next = 0;
    for (host, region) in places.region_of.iter().enumerate() {
        if !lost[*region] {
            number[host] = Some(next);
            next += 1;
        }
    }
    let retained = |host: &usize| number[*host].is_some();
    let hosts: Vec<usize> = (0..places.names.len()).filter(retained).collect();
    Ok(Places {
        names: hosts.iter().map(|&host| places.names[host].clone()).collect(),
        numbers: hosts.iter().map(|&host| places.numbers[host]).collect(),
        region_of: hosts.iter().map(|&host| places.region_of[host]).collect(),
        pools: hosts.iter().map(|&host| places.pools[host]).collect(),
        producers: hosts
            .iter()
            .map(|&host| places.producers[host].iter().filter_map(|&peer| number[peer as usize]).collect())
            .collect(),
    })
}

/// The round trip of one link: the regions' mean, moved by the link's own share of the spread, both ways alike.
fn link_rtt_s(order: &ClusterConfig, regions: (usize, usize), hosts: (u32, u32)) -> f64 {
    let mean = order.rtt_s[regions.0][regions.1];
    let Some(spread) = &order.rtt_spread_s else { return mean };
    let (low, high) = (hosts.0.min(hosts.1), hosts.0.max(hosts.1));
    let z = normal_quantile(Draws::new(NETWORK_SEED, u64::from(low)).unit(high, Purpose::LinkSpread, 0));
    (mean + spread[regions.0][regions.1] * z).max(mean / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(hosts: usize, topology: Topology) -> ClusterConfig {
        let names = ["EU", "US", "AP"];
        ClusterConfig {
            hosts,
            topology,
            regions: names.iter().map(|n| Region { name: (*n).to_owned(), aliases: vec![format!("{n}-1")] }).collect(),
            rtt_s: vec![vec![0.0002, 0.09, 0.27], vec![0.09, 0.0003, 0.2], vec![0.27, 0.2, 0.0001]],
            rtt_spread_s: Some(vec![vec![0.00002; 3]; 3]),
            fetches: None,
            lost_regions: Vec::new(),
        }
    }

    fn named(cluster: &Cluster, host: usize) -> Vec<&str> {
        cluster.producers[host].iter().map(|&peer| cluster.names[peer as usize].as_str()).collect()
    }

    fn refused(order: &ClusterConfig) -> String {
        Cluster::build(order).expect_err("impossible").to_string()
    }

    #[test]
    fn the_dense_torus_of_52_hosts_matches_the_benchmark() {
        let cluster = Cluster::build(&order(52, Topology::TorusDense)).expect("possible");
        assert_eq!(named(&cluster, 0), ["node-1", "node-2", "node-3", "node-51", "node-18", "node-36"]);
        assert_eq!(named(&cluster, 9), ["node-10", "node-11", "node-12", "node-6", "node-27", "node-45"]);
        assert_eq!(named(&cluster, 1).len(), 6);
        assert_eq!(cluster.links, 312);
        let sizes: Vec<usize> = (0..3).map(|r| cluster.region_of.iter().filter(|&&of| of == r).count()).collect();
        assert_eq!(sizes, [18, 17, 17]);
    }

    #[test]
    fn small_and_large_clusters_of_every_rule_are_connected() {
        for hosts in [2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 52, 199, 1000] {
            Cluster::build(&order(hosts, Topology::TorusDense)).unwrap_or_else(|e| panic!("{hosts}: {e}"));
        }
        for hosts in [6, 52, 1000] {
            let random = Topology::Random { in_region: 4, per_other_region: 1 };
            let cluster = Cluster::build(&order(hosts, random)).unwrap_or_else(|e| panic!("{hosts}: {e}"));
            assert!(cluster.upstream.iter().all(|list| list.len() <= 6));
        }
    }

    #[test]
    fn peers_are_sorted_by_round_trip_and_round_trips_are_symmetric() {
        let cluster = Cluster::build(&order(52, Topology::TorusDense)).expect("possible");
        for (host, list) in cluster.upstream.iter().enumerate() {
            assert!(list.windows(2).all(|pair| pair[0].rtt_s <= pair[1].rtt_s));
            for link in list {
                let back = cluster.upstream[link.host as usize].iter().find(|other| other.host as usize == host);
                if let Some(back) = back {
                    assert!((back.rtt_s - link.rtt_s).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_lost_region_removes_its_hosts_and_keeps_the_numbers_of_the_others() {
        let mut lost = order(52, Topology::TorusDense);
        lost.lost_regions = vec!["AP-1".to_owned()];
        let cluster = Cluster::build(&lost).expect("possible");
        assert_eq!(cluster.hosts(), 35);
        assert_eq!(cluster.numbers[2], 3);
        assert_eq!(cluster.names[2], "node-3");
        let whole = Cluster::build(&order(52, Topology::TorusDense)).expect("possible");
        let rtt = |c: &Cluster, host: usize| c.upstream[host].iter().map(|u| u.rtt_s).fold(0.0, f64::max);
        assert!(rtt(&cluster, 0) < rtt(&whole, 0));
        let link = |c: &Cluster| c.upstream[0].iter().find(|u| c.names[u.host as usize] == "node-1").map(|u| u.rtt_s);
        assert_eq!(link(&cluster), link(&whole), "the same link has the same round trip");
    }

    #[test]
    fn impossible_clusters_are_refused_by_name() {
        assert!(refused(&order(0, Topology::TorusDense)).contains("no hosts"));
        assert!(refused(&order(1, Topology::TorusDense)).contains("1 host "));
        let mut unknown = order(52, Topology::TorusDense);
        unknown.lost_regions = vec!["XX".to_owned()];
        assert!(refused(&unknown).contains("no region `XX`\nhint: known regions: EU, US, AP"));
        let mut negative = order(52, Topology::TorusDense);
        negative.rtt_s[0][1] = -0.1;
        assert!(refused(&negative).contains("EU–US is -0.1 s"));
        let none = Topology::Random { in_region: 4, per_other_region: 0 };
        assert!(refused(&order(52, none)).contains("not connected"));
        let host = |name: &str, region: &str, producers: &[&str]| ListedHost {
            name: name.to_owned(),
            region: region.to_owned(),
            producers: producers.iter().map(|p| (*p).to_owned()).collect(),
            pools: 1,
        };
        for (hosts, message) in [
            (vec![host("a", "EU", &["b"]), host("b", "Mars", &["a"])], "no region `Mars`"),
            (vec![host("a", "EU", &["c"]), host("b", "US", &["a"])], "`c`, which is not listed"),
            (vec![host("a", "EU", &["a"]), host("b", "US", &["a"])], "twice or from itself"),
            (vec![host("a", "EU", &["b"]), host("a", "US", &["a"])], "a host twice"),
            (vec![host("a", "EU", &["b"]), host("b", "US", &[])], "b receives no block of a"),
            (vec![host("a", "EU", &[]), host("b", "US", &["a"])], "b sends no block to a"),
        ] {
            let error = refused(&order(2, Topology::Listed { hosts }));
            assert!(error.contains(message), "{error}");
        }
    }
}
