//! Values as an instance of Haskell's `Show` prints them, in messages that do not use JSON for them.

/// The integer of `"5"`, `"SlotNo 5"`, `"Just (BlockNo 5)"`, `"NetworkMagic {unNetworkMagic = 42}"`: the only separate
/// one. None if there is none, or several.
pub(super) fn integer(text: &[u8]) -> Option<i128> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-':%".contains(byte);
    // A word that begins with a letter is a name, such as that of the type Word64.
    let is_number = |word: &&[u8]| word.iter().any(u8::is_ascii_digit) && !word[0].is_ascii_alphabetic();
    let mut numbers = text.split(|byte| !is_part(byte)).filter(is_number);
    let number = std::str::from_utf8(numbers.next()?).ok()?.parse().ok()?;
    numbers.next().is_none().then_some(number)
}

/// A text without the quotes that `Show` puts around it.
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").map_or(text, |rest| rest.strip_suffix(b"\"").unwrap_or(rest))
}

/// The ends of `ConnectionId {localAddress = 1.2.3.4:3001, remoteAddress = 5.6.7.8:3001}`.
pub(super) fn connection(text: &str) -> Option<(&str, &str)> {
    let after = |key| text.split_once(key).map(|(_, rest)| rest.split([',', '}']).next().unwrap_or(rest).trim());
    Some((after("localAddress = ")?, after("remoteAddress = ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_extracted_from_their_haskell_wrappers() {
        for (text, number) in [
            ("42", Some(42)),
            ("-1", Some(-1)),
            ("SlotNo 5", Some(5)),
            ("SlotNo {unSlotNo = 5}", Some(5)),
            ("Just (BlockNo 7)", Some(7)),
            ("Word64 9", Some(9)),
            ("BlockNo (-1)", Some(-1)),
            ("NetworkMagic {unNetworkMagic = 764824073}", Some(764_824_073)),
            ("", None),
            ("Nothing", None),
            ("1s", None),
            ("5 6", None),
            ("1.5", None),
            ("1 % 20", None),
            ("2026-02-05", None),
            ("10:30", None),
            ("999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(integer(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn the_addresses_of_a_connection_are_extracted() {
        let text = "ConnectionId {localAddress = 127.0.0.1:3001, remoteAddress = [::1]:3002}";
        assert_eq!(connection(text), Some(("127.0.0.1:3001", "[::1]:3002")));
        assert_eq!(connection("127.0.0.1:3001 127.0.0.1:3002"), None);
    }
}
