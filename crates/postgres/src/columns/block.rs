//! Blocks of bytes with a checksum, and numbers of one width in them.
//!
//! All numbers are in little-endian order. A block is read without trust in its lengths: what they do not fit is no block.

/// Format of new blocks, and the earliest one that is read until it is replaced. Blocks of format 1 have the same form, but fewer
/// timestamps as numbers.
pub(super) const FORMAT: i16 = 2;
pub(super) const MIN_FORMAT: i16 = 1;

/// Maximum bytes of a block. Larger ones are neither written nor read.
pub(super) const MAX_BLOCK_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of numbers in a list of a block.
const MAX_NUMBERS: usize = 2_000_000;

/// Ends a block with the CRC-32 of its bytes.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns the bytes of a block without its checksum; `None` if they do not match.
pub(super) fn unsealed(block: &[u8]) -> Option<&[u8]> {
    let (bytes, checksum) = block.split_last_chunk::<4>()?;
    (crc32fast::hash(bytes) == u32::from_le_bytes(*checksum)).then_some(bytes)
}

/// Reader of the bytes of a block from its beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockReader<'a> {
    rest: &'a [u8],
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the next bytes.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn chunk<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.chunk().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// Returns the next number as a length.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    /// Returns true at the end.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Appends a length.
pub(super) fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

/// Numbers in a block: each is a base plus a difference of few bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'a> {
    base: i64,
    width: usize,
    count: usize,
    differences: &'a [u8],
}

impl<'a> Numbers<'a> {
    /// Appends numbers to a block.
    pub(super) fn put(bytes: &mut Vec<u8>, numbers: &[i64]) {
        let base = numbers.iter().copied().min().unwrap_or_default();
        let last = numbers.iter().copied().max().unwrap_or_default();
        let width: u8 = match last.abs_diff(base) {
            0 => 0,
            1..=0xFF => 1,
            0x100..=0xFFFF => 2,
            0x1_0000..=0xFFFF_FFFF => 4,
            _ => 8,
        };
        put_length(bytes, numbers.len());
        bytes.push(width);
        bytes.extend_from_slice(&base.to_le_bytes());
        for number in numbers {
            let difference = number.abs_diff(base).to_le_bytes();
            bytes.extend(difference.iter().take(width.into()));
        }
    }

    /// Reads numbers from a block.
    pub(super) fn read(reader: &mut BlockReader<'a>) -> Option<Self> {
        let count = reader.length()?;
        let width = usize::from(reader.u8()?);
        if count > MAX_NUMBERS || !matches!(width, 0 | 1 | 2 | 4 | 8) {
            return None;
        }
        let base = reader.u64()?.cast_signed();
        let differences = reader.take(count.checked_mul(width)?)?;
        Some(Self { base, width, count, differences })
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number at a place.
    pub(super) fn get(&self, at: usize) -> Option<i64> {
        if at >= self.count {
            return None;
        }
        let from = at * self.width;
        let bytes = self.differences.get(from..)?;
        let difference: u64 = match self.width {
            0 => 0,
            1 => (*bytes.first()?).into(),
            2 => u16::from_le_bytes(*bytes.first_chunk()?).into(),
            4 => u32::from_le_bytes(*bytes.first_chunk()?).into(),
            _ => u64::from_le_bytes(*bytes.first_chunk()?),
        };
        Some(self.base.wrapping_add_unsigned(difference))
    }

    /// Returns the place of a number, if the numbers ascend.
    pub(super) fn place(&self, wanted: i64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)?.cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn damaged_blocks_are_noticed() {
        let mut bytes = Vec::new();
        Numbers::put(&mut bytes, &[7, 300, 9]);
        let block = sealed(bytes);
        assert!(unsealed(&block).is_some());
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 4;
            assert!(unsealed(&damaged).is_none(), "{at}");
            assert!(unsealed(&block[..at]).is_none(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written(
            base in any::<i64>(), differences in prop::collection::vec(any::<u64>(), 0..20), shift in 0..64_u32,
        ) {
            let numbers: Vec<i64> =
                differences.iter().map(|difference| base.wrapping_add_unsigned(difference >> shift)).collect();
            let mut bytes = Vec::new();
            Numbers::put(&mut bytes, &numbers);
            let read = Numbers::read(&mut BlockReader::new(&bytes)).unwrap();
            let all: Option<Vec<i64>> = (0..read.len()).map(|at| read.get(at)).collect();
            prop_assert_eq!(all, Some(numbers));
            prop_assert!(read.get(read.len()).is_none());
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(read) = Numbers::read(&mut BlockReader::new(&bytes)) {
                prop_assert!(read.len() == 0 || read.get(read.len() - 1).is_some());
                let _ = read.place(5);
            }
        }
    }
}
