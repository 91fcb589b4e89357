//! The parts of a packet that the switch needs: its destination, and for a cut connection, the reset that each end
//! accepts.

use std::net::Ipv4Addr;

const IPV4_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
/// Bytes of a reset: both headers without options.
pub const RESET_BYTES: usize = IPV4_HEADER + TCP_HEADER;
const TCP: u8 = 6;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const TIME_TO_LIVE: u8 = 64;

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const FIN: u8 = 0x01;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn address_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// An IPv4 packet with a complete header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4<'a> {
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// The packet in `bytes`, or None if they hold none: another version, or lengths that do not fit (RFC 791).
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < IPV4_HEADER || bytes[0] >> 4 != 4 {
            return None;
        }
        let header = usize::from(bytes[0] & 0x0f) * 4;
        let total = usize::from(u16_at(bytes, 2));
        if header < IPV4_HEADER || header > total || total > bytes.len() {
            return None;
        }
        Some(Self { header: &bytes[..header], payload: &bytes[header..total] })
    }

    pub fn source(&self) -> Ipv4Addr {
        address_at(self.header, 12)
    }

    pub fn destination(&self) -> Ipv4Addr {
        address_at(self.header, 16)
    }

    /// The TCP segment in it, unless it is another protocol, a later fragment, or cut short (RFC 9293).
    pub fn tcp(&self) -> Option<Tcp> {
        let is_first = u16_at(self.header, 6) & FRAGMENT_OFFSET == 0;
        if self.header[9] != TCP || !is_first || self.payload.len() < TCP_HEADER {
            return None;
        }
        let header = usize::from(self.payload[12] >> 4) * 4;
        if header < TCP_HEADER || header > self.payload.len() {
            return None;
        }
        Some(Tcp {
            source_port: u16_at(self.payload, 0),
            destination_port: u16_at(self.payload, 2),
            sequence: u32_at(self.payload, 4),
            acknowledgement: u32_at(self.payload, 8),
            flags: self.payload[13],
            data_bytes: (self.payload.len() - header) as u32,
        })
    }
}

/// What a reset depends on in a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub data_bytes: u32,
}

impl Tcp {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The sequence number after this segment: SYN and FIN count as one each.
    fn next_sequence(&self) -> u32 {
        let control = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.sequence.wrapping_add(self.data_bytes).wrapping_add(control)
    }
}

/// The resets that end the connection of one segment, as whole packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resets {
    pub to_sender: [u8; RESET_BYTES],
    pub to_receiver: [u8; RESET_BYTES],
}

/// The resets for a segment that met a cut; None if there is no connection to end.
///
/// An end accepts a reset whose sequence number is exactly the one it expects next (RFC 5961, section 3.2). The
/// sender's acknowledgement contains that number. The receiver expects the sequence number of this segment, if nothing
/// before it was lost; otherwise it sends a challenge, and the reset in response to the challenge is exact. A reset
/// causes no reset, and neither does the first packet of a new connection: an unplugged cable refuses nothing.
pub fn resets(packet: &Ipv4) -> Option<Resets> {
    let segment = packet.tcp()?;
    if segment.has(RST) || (segment.has(SYN) && !segment.has(ACK)) {
        return None;
    }
    let (near, far) = (packet.source(), packet.destination());
    let (near_port, far_port) = (segment.source_port, segment.destination_port);
    let to_sender = if segment.has(ACK) {
        reset((far, far_port), (near, near_port), segment.acknowledgement, None)
    } else {
        reset((far, far_port), (near, near_port), 0, Some(segment.next_sequence()))
    };
    let acknowledged = segment.has(ACK).then_some(segment.acknowledgement);
    let to_receiver = reset((near, near_port), (far, far_port), segment.sequence, acknowledged);
    Some(Resets { to_sender, to_receiver })
}

fn reset(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), sequence: u32, acknowledgement: Option<u32>) -> [u8; RESET_BYTES] {
    let mut packet = [0; RESET_BYTES];
    let (header, segment) = packet.split_at_mut(IPV4_HEADER);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(RESET_BYTES as u16).to_be_bytes());
    header[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    header[8] = TIME_TO_LIVE;
    header[9] = TCP;
    header[12..16].copy_from_slice(&from.0.octets());
    header[16..20].copy_from_slice(&to.0.octets());
    let sum = checksum(sum_words(0, header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());

    segment[0..2].copy_from_slice(&from.1.to_be_bytes());
    segment[2..4].copy_from_slice(&to.1.to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledgement.unwrap_or(0).to_be_bytes());
    segment[12] = (TCP_HEADER as u8 / 4) << 4;
    segment[13] = if acknowledgement.is_some() { RST | ACK } else { RST };
    let pseudo = u32::from(TCP) + TCP_HEADER as u32;
    let sum = checksum(sum_words(sum_words(pseudo, &header[12..20]), segment));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Adds 16-bit words, big-endian; the length must be even.
fn sum_words(start: u32, bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).fold(start, |sum, word| sum + u32::from(u16_at(word, 0)))
}

/// The Internet checksum of a sum of words (RFC 1071).
fn checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Byte by byte in one's complement with an end-around carry at each step: an independent computation of the sum.
    fn independent_checksum(bytes: &[u8]) -> u16 {
        let mut sum: u16 = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            let word = if index % 2 == 0 { u16::from(byte) << 8 } else { u16::from(byte) };
            let (added, carry) = sum.overflowing_add(word);
            sum = added + u16::from(carry);
        }
        !sum
    }

    fn segment(flags: u8, sequence: u32, acknowledgement: u32, data: usize) -> Vec<u8> {
        let total = 40 + data;
        let mut packet = vec![0; total];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        packet[8] = 64;
        packet[9] = 6;
        packet[12..16].copy_from_slice(&[198, 18, 0, 1]);
        packet[16..20].copy_from_slice(&[198, 18, 0, 2]);
        packet[20..22].copy_from_slice(&40_000u16.to_be_bytes());
        packet[22..24].copy_from_slice(&26_656u16.to_be_bytes());
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        packet[28..32].copy_from_slice(&acknowledgement.to_be_bytes());
        packet[32] = 0x50;
        packet[33] = flags;
        packet
    }

    fn tcp_of(packet: &[u8]) -> Tcp {
        Ipv4::parse(packet).unwrap().tcp().unwrap()
    }

    #[test]
    fn the_worked_example_of_an_ipv4_header_checksum_is_reproduced() {
        // The header that Wikipedia's "Internet checksum" works through; its checksum is 0xb861.
        let header: [u8; 20] = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
            0x00, 0xc7,
        ];
        assert_eq!(checksum(sum_words(0, &header)), 0xb861);
        assert_eq!(independent_checksum(&header), 0xb861);
    }

    #[test]
    fn a_reset_has_the_sequence_number_that_its_receiver_expects() {
        let packet = segment(ACK | 0x08, 1000, 77_000, 100);
        let resets = resets(&Ipv4::parse(&packet).unwrap()).unwrap();
        let near = tcp_of(&resets.to_sender);
        assert_eq!((near.source_port, near.destination_port), (26_656, 40_000));
        assert_eq!((near.sequence, near.flags), (77_000, RST));
        let far = tcp_of(&resets.to_receiver);
        assert_eq!((far.source_port, far.destination_port), (40_000, 26_656));
        assert_eq!((far.sequence, far.acknowledgement, far.flags), (1000, 77_000, RST | ACK));
    }

    #[test]
    fn the_reset_of_a_segment_without_an_ack_acknowledges_its_data() {
        let packet = segment(FIN, u32::MAX, 0, 4);
        let near = tcp_of(&resets(&Ipv4::parse(&packet).unwrap()).unwrap().to_sender);
        assert_eq!((near.sequence, near.acknowledgement, near.flags), (0, 4, RST | ACK));
    }

    #[test]
    fn resets_syn_packets_and_fragments_are_not_answered() {
        for flags in [RST, RST | ACK, SYN] {
            assert_eq!(resets(&Ipv4::parse(&segment(flags, 1, 2, 0)).unwrap()), None);
        }
        let mut fragment = segment(ACK, 1, 2, 0);
        fragment[7] = 1;
        assert_eq!(resets(&Ipv4::parse(&fragment).unwrap()), None);
    }

    proptest! {
        #[test]
        fn the_checksums_of_a_reset_are_correct(
            flags in any::<u8>(), sequence in any::<u32>(), acknowledgement in any::<u32>(), data in 0usize..1400,
            addresses in any::<[u8; 8]>(), ports in any::<[u8; 4]>(),
        ) {
            let mut packet = segment(flags, sequence, acknowledgement, data);
            packet[12..20].copy_from_slice(&addresses);
            packet[20..24].copy_from_slice(&ports);
            if let Some(resets) = resets(&Ipv4::parse(&packet).unwrap()) {
                for reset in [resets.to_sender, resets.to_receiver] {
                    prop_assert_eq!(independent_checksum(&reset[..20]), 0);
                    let mut pseudo = reset[12..20].to_vec();
                    pseudo.extend([0, TCP, 0, TCP_HEADER as u8]);
                    pseudo.extend(&reset[20..]);
                    prop_assert_eq!(independent_checksum(&pseudo), 0);
                }
            }
        }

        #[test]
        fn parsing_any_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(packet) = Ipv4::parse(&bytes) {
                prop_assert!(packet.header.len() + packet.payload.len() <= bytes.len());
                if let Some(resets) = resets(&packet) {
                    prop_assert_eq!(Ipv4::parse(&resets.to_sender).unwrap().destination(), packet.source());
                    prop_assert_eq!(Ipv4::parse(&resets.to_receiver).unwrap().destination(), packet.destination());
                }
            }
        }
    }
}
