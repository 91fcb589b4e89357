//! The switch: one thread that reads devices, waits for due times, and writes devices.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};

use crate::accounting::Stats;
use crate::cuts::Cuts;
use crate::device::Device;
use crate::error::NetError;
use crate::fabric::{Fabric, LineCut, Output};
use crate::line::LineSettings;
use crate::namespace::Namespace;
use crate::system::{become_realtime, block_signals};

/// Every network is a /24.
const PREFIX_BITS: u8 = 24;
/// Packets of one device, and due packets, that are handled before the others have their turn.
const READ_BATCH: usize = 32;
const WRITE_BATCH: usize = 64;
const PACKET_MAX: usize = 65_536;
const EVENTS: usize = 64;
const WAKE: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const NS_PER_S: u64 = 1_000_000_000;

/// The position of one end of the links.
#[derive(Debug, Clone, Copy)]
pub struct Port<'a> {
    /// None for the caller's own namespace.
    pub namespace: Option<&'a Namespace>,
    pub device: &'a str,
    pub address: Ipv4Addr,
}

/// What a switch is to do.
#[derive(Debug, Clone)]
pub struct SwitchConfig<'a> {
    pub ports: Vec<Port<'a>>,
    /// The line of every ordered pair of ports, row by row; those from a port to itself are not used.
    pub lines: Vec<LineSettings>,
    /// A port that no cut affects: that of the host.
    pub spared: Option<usize>,
    pub mtu: u16,
    pub seed: u64,
}

impl SwitchConfig<'_> {
    fn check(&self) -> Result<(), NetError> {
        let refused = |name, value: String, condition| Err(NetError::Argument { name, value, condition });
        let ports = self.ports.len();
        if !(1..=254).contains(&ports) {
            return refused("the number of ports", ports.to_string(), "from 1 to 254");
        }
        if self.lines.len() != ports * ports {
            return refused("the number of lines", self.lines.len().to_string(), "one for every ordered pair of ports");
        }
        if self.spared.is_some_and(|port| port >= ports) {
            return refused("the spared port", format!("{:?}", self.spared), "one of the ports");
        }
        if !(576..=9000).contains(&self.mtu) {
            return refused("mtu", self.mtu.to_string(), "from 576 to 9000 bytes");
        }
        let first = self.ports[0].address.octets();
        let mut seen = [false; 256];
        for port in &self.ports {
            let octets = port.address.octets();
            if octets[..3] != first[..3] || std::mem::replace(&mut seen[usize::from(octets[3])], true) {
                return refused("an address", port.address.to_string(), "another one of the same /24 network");
            }
        }
        self.lines.iter().try_for_each(LineSettings::check)
    }
}

/// How a link is cut; see [`DelaySwitch::cut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Packets vanish, and connections stay open until they time out, as when a cable is out.
    Silent,
    /// Packets vanish, and each connection that sends is reset at both ends, as when an interface is removed.
    Reset,
}

impl From<Cut> for LineCut {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Silent => Self::Silent,
            Cut::Reset => Self::Reset,
        }
    }
}

enum Command {
    Cuts(Cuts, SyncSender<()>),
    Stats(SyncSender<Stats>),
    Stop,
}

/// A running switch. Dropping it stops it and removes its devices.
#[derive(Debug)]
pub struct DelaySwitch {
    ports: usize,
    cuts: Mutex<Cuts>,
    commands: Sender<Command>,
    wake: File,
    thread: Mutex<Option<JoinHandle<Stats>>>,
}

impl DelaySwitch {
    /// Make the devices and start.
    ///
    /// # Errors
    /// [`NetError::Argument`] for a configuration without sense; otherwise what the machine does not permit.
    pub fn start(config: &SwitchConfig) -> Result<Self, NetError> {
        config.check()?;
        let ports = config.ports.len();
        let device = |port: &Port| Device::new(port.namespace, port.device, port.address, PREFIX_BITS, config.mtu);
        let devices = config.ports.iter().map(device).collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<Ipv4Addr> = config.ports.iter().map(|port| port.address).collect();
        let fabric = Fabric::new(&addresses, config.seed, |from, to| config.lines[from * ports + to]);
        let (sender, receiver) = channel();
        let wake = File::from(
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| failed("eventfd", error))?,
        );
        let worker = Worker::new(fabric, devices, &wake, receiver)?;
        let thread = thread::Builder::new()
            .name("delay-switch".to_owned())
            .spawn(move || worker.run())
            .map_err(|source| NetError::OperatingSystem { what: "threads", source })?;
        let cuts = Mutex::new(Cuts::new(ports, config.spared));
        Ok(Self { ports, cuts, commands: sender, wake, thread: Mutex::new(Some(thread)) })
    }

    /// Cut a port off from all others. When this returns, no further packet of the port passes.
    ///
    /// # Errors
    /// [`NetError::Argument`] for an invalid port; [`NetError::Ended`] after a stop.
    pub fn cut(&self, port: usize, cut: Cut) -> Result<(), NetError> {
        self.check_port(port)?;
        self.change(|cuts| cuts.cut_port(port, cut.into()))
    }

    /// Undo [`DelaySwitch::cut`].
    ///
    /// # Errors
    /// As [`DelaySwitch::cut`].
    pub fn mend(&self, port: usize) -> Result<(), NetError> {
        self.check_port(port)?;
        self.change(|cuts| cuts.cut_port(port, LineCut::None))
    }

    /// Cut ports of different groups off from one another; one group number for each port.
    ///
    /// # Errors
    /// As [`DelaySwitch::cut`].
    pub fn partition(&self, groups: &[u32], cut: Cut) -> Result<(), NetError> {
        if groups.len() != self.ports {
            let condition = "one for each port";
            return Err(NetError::Argument {
                name: "the number of groups",
                value: groups.len().to_string(),
                condition,
            });
        }
        self.change(|cuts| cuts.partition(groups.to_vec(), cut.into()))
    }

    /// Undo [`DelaySwitch::partition`].
    ///
    /// # Errors
    /// [`NetError::Ended`] after a stop.
    pub fn heal(&self) -> Result<(), NetError> {
        self.change(Cuts::heal)
    }

    /// The state now.
    ///
    /// # Errors
    /// [`NetError::Ended`] after a stop.
    pub fn stats(&self) -> Result<Stats, NetError> {
        let (reply, answer) = sync_channel(1);
        self.command(Command::Stats(reply))?;
        answer.recv().map_err(|_| NetError::Ended)
    }

    /// End: the devices disappear, with all packets in flight. Returns the last state; packets in flight stay in their
    /// class.
    ///
    /// # Errors
    /// [`NetError::Ended`] if it has ended before.
    pub fn stop(&self) -> Result<Stats, NetError> {
        let thread = self.thread.lock().expect("no holder panics").take().ok_or(NetError::Ended)?;
        self.command(Command::Stop)?;
        thread.join().map_err(|_| NetError::Ended)
    }

    fn check_port(&self, port: usize) -> Result<(), NetError> {
        if port < self.ports {
            return Ok(());
        }
        Err(NetError::Argument { name: "port", value: port.to_string(), condition: "the number of a port" })
    }

    fn change(&self, change: impl FnOnce(&mut Cuts)) -> Result<(), NetError> {
        let mut cuts = self.cuts.lock().expect("no holder panics");
        change(&mut cuts);
        let (done, answer) = sync_channel(1);
        self.command(Command::Cuts(cuts.clone(), done))?;
        answer.recv().map_err(|_| NetError::Ended)
    }

    fn command(&self, command: Command) -> Result<(), NetError> {
        self.commands.send(command).map_err(|_| NetError::Ended)?;
        io::Write::write_all(&mut &self.wake, &1u64.to_ne_bytes()).map_err(|_| NetError::Ended)
    }
}

impl Drop for DelaySwitch {
    fn drop(&mut self) {
        // Stopped before, it has nothing left to stop.
        self.stop().ok();
    }
}

fn failed(what: &'static str, error: rustix::io::Errno) -> NetError {
    NetError::OperatingSystem { what, source: error.into() }
}

/// The devices as the fabric sees them.
struct Wires {
    devices: Vec<Device>,
}

impl Output for Wires {
    fn write(&mut self, port: usize, packet: &[u8]) -> bool {
        self.devices[port].write(packet)
    }

    fn now_ns(&mut self) -> u64 {
        clock_ns(ClockId::Monotonic)
    }
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// What the thread owns.
struct Worker {
    fabric: Fabric,
    wires: Wires,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The moment that the timer is set to.
    armed_ns: Option<u64>,
    /// Whether it has fired since it was set: it then stays readable until it is set again.
    fired: bool,
    wake: File,
    commands: Receiver<Command>,
    realtime: bool,
    buffer: Box<[u8]>,
}

impl Worker {
    fn new(fabric: Fabric, devices: Vec<Device>, wake: &File, commands: Receiver<Command>) -> Result<Self, NetError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed("epoll", error))?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(|error| failed("timers", error))?;
        let wake = wake.try_clone().map_err(|source| NetError::OperatingSystem { what: "eventfd", source })?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), readable).map_err(|error| failed("epoll", error))?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), readable)
            .map_err(|error| failed("epoll", error))?;
        for (port, device) in devices.iter().enumerate() {
            epoll::add(&epoll, device, epoll::EventData::new_u64(port as u64), readable)
                .map_err(|error| failed("epoll", error))?;
        }
        let buffer = vec![0; PACKET_MAX].into_boxed_slice();
        let wires = Wires { devices };
        Ok(Self { fabric, wires, epoll, timer, armed_ns: None, fired: false, wake, commands, realtime: false, buffer })
    }

    fn run(mut self) -> Stats {
        block_signals();
        // Nodes that use all CPUs must not increase the delays.
        self.realtime = become_realtime();
        let blank = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [blank; EVENTS];
        loop {
            let more = self.fabric.deliver_due(WRITE_BATCH, &mut self.wires);
            self.arm();
            let timeout = more.then(Timespec::default);
            // Only an interruption can fail here, and the loop retries.
            let count = epoll::wait(&self.epoll, &mut events, timeout.as_ref()).unwrap_or(0);
            for event in &events[..count] {
                match event.data.u64() {
                    TIMER => (self.armed_ns, self.fired) = (None, true),
                    WAKE => {
                        if self.obey() {
                            return self.stats();
                        }
                    }
                    port => {
                        self.read(port as usize);
                        self.fabric.deliver_due(WRITE_BATCH, &mut self.wires);
                    }
                }
            }
        }
    }

    /// Set the timer to the next due time, unless it would wake the thread by then anyway.
    fn arm(&mut self) {
        let due_ns = self.fabric.next_due_ns();
        let wakes = self.armed_ns.is_some_and(|armed_ns| due_ns.is_none_or(|due_ns| armed_ns <= due_ns));
        if wakes || (due_ns.is_none() && !self.fired) {
            return;
        }
        // A time of 0 disarms, which also silences a timer that has fired.
        let at_ns = due_ns.unwrap_or(0);
        let value = Timespec { tv_sec: (at_ns / NS_PER_S) as i64, tv_nsec: (at_ns % NS_PER_S) as _ };
        let at = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at).expect("the timer and its time are valid");
        (self.armed_ns, self.fired) = (due_ns, false);
    }

    fn read(&mut self, port: usize) {
        for _ in 0..READ_BATCH {
            match self.wires.devices[port].read(&mut self.buffer) {
                Ok(Some(bytes)) => self.fabric.arrive(port, &self.buffer[..bytes], &mut self.wires),
                Ok(None) => return,
                Err(_) => {
                    // The device was removed; it would otherwise be reported as readable permanently.
                    epoll::delete(&self.epoll, &self.wires.devices[port]).ok();
                    return;
                }
            }
        }
    }

    /// Carry out a request; true if it ends the switch.
    fn obey(&mut self) -> bool {
        let mut count = [0; 8];
        io::Read::read(&mut self.wake, &mut count).ok();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return true,
                Command::Stats(reply) => {
                    reply.send(self.stats()).ok();
                }
                Command::Cuts(cuts, done) => {
                    self.fabric.set_cuts(|from, to| cuts.between(from, to));
                    done.send(()).ok();
                }
            }
        }
        false
    }

    fn stats(&self) -> Stats {
        Stats {
            counts: self.fabric.counts(),
            unread: self.wires.devices.iter().map(Device::unread).sum(),
            error: self.fabric.error().summary(),
            cpu_ns: clock_ns(ClockId::ThreadCPUTime),
            realtime: self.realtime,
        }
    }
}
