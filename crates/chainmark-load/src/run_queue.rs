//! How long a thread has waited for a CPU, as the kernel reports it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Three numbers of at most 20 digits.
const LONGEST: usize = 64;

/// The run-queue delay of the thread that opened it.
#[derive(Debug)]
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds since the thread began; None if this kernel does not report them.
    pub fn waited_ns(&self) -> Option<i64> {
        let mut text = [0; LONGEST];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        waited_ns(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Of "ran waited slices": a kernel without this accounting reports that the thread never ran.
fn waited_ns(text: &str) -> Option<i64> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<i64>());
    let (ran_ns, waited_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (ran_ns > 0).then_some(waited_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_kernel_accounting_the_wait_is_unknown_and_not_zero() {
        assert_eq!(waited_ns("93811 4711 2\n"), Some(4711));
        assert_eq!(waited_ns("0 0 0\n"), None);
        assert_eq!(waited_ns(""), None);
        assert_eq!(RunQueue(None).waited_ns(), None);
    }
}
