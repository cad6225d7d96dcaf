//! Conversion of integers that keeps the largest number for one that does not fit.

/// An integer type with its largest number.
pub trait Largest {
    /// Largest number of the type.
    const LARGEST: Self;
}

macro_rules! largest {
    ($($integer:ty),+) => { $(impl Largest for $integer { const LARGEST: Self = Self::MAX; })+ };
}
largest!(u16, u32, u64, usize, i32, i64);

/// Converts a number, or returns the largest number of the type if it does not fit.
pub fn saturated<To: Largest>(number: impl TryInto<To>) -> To {
    number.try_into().unwrap_or(To::LARGEST)
}
