//! Integers and byte strings, little-endian and length-prefixed.

/// Appends parts to a buffer.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Sixteen bytes.
    pub fn i128(&mut self, value: i128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A number of parts that follow.
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("sizes are bounded by ENCODED_BYTES_MAX"));
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// Takes parts from the front of a row that this engine wrote. Any other content is
/// corruption and panics: nothing may be built on a row that differs from the written one.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .expect("a row is as long as its parts say: it is corrupt");
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("take gives as many as asked")
    }

    /// One byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Sixteen bytes.
    pub fn i128(&mut self) -> i128 {
        i128::from_le_bytes(self.array())
    }

    /// A number of parts that follow.
    pub fn count(&mut self) -> usize {
        self.u32() as usize
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let count = self.count();
        self.take(count)
    }

    /// True if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
