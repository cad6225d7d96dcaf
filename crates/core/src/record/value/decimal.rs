//! Decimal numbers with exact addition: 0.1 three times is 0.3.

/// Maximum number of digits after the decimal point.
const MAX_SCALE: u32 = 24;

/// The number `mantissa` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decimal {
    mantissa: i128,
    scale: u32,
}

impl Decimal {
    /// Returns the shortest decimal that a floating point number is written as, or `None` if it is too large, too
    /// small or not finite.
    pub fn from_f64(number: f64) -> Option<Self> {
        let written = format!("{number:e}");
        let (digits, exponent) = written.split_once('e')?;
        let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent: i64 = exponent.parse().ok()?;
        let mantissa: i128 = format!("{before}{behind}").parse().ok()?;
        let scale = i64::try_from(behind.len()).ok()? - exponent;
        match u32::try_from(scale) {
            Ok(scale) if scale <= MAX_SCALE => Some(Self { mantissa, scale }),
            Ok(_too_small) => None,
            Err(_whole) => {
                let power = u32::try_from(scale.unsigned_abs()).ok()?;
                Some(Self { mantissa: mantissa.checked_mul(10_i128.checked_pow(power)?)?, scale: 0 })
            }
        }
    }

    /// Returns an integer as a decimal.
    pub fn whole(number: i128) -> Self {
        Self { mantissa: number, scale: 0 }
    }

    /// Returns `mantissa` divided by ten to the power of `scale`, without zeros at its end; `None` if the scale is too large.
    pub fn from_parts(mut mantissa: i128, mut scale: u32) -> Option<Self> {
        while scale > 0 && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        (scale <= MAX_SCALE).then_some(Self { mantissa, scale })
    }

    /// Returns the product with a whole number, or `None` on overflow.
    pub fn times(self, factor: u64) -> Option<Self> {
        Some(Self { mantissa: self.mantissa.checked_mul(factor.into())?, scale: self.scale })
    }

    /// Returns the exact sum, or `None` on overflow.
    pub fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let mantissa = self.at_scale(scale)?.checked_add(other.at_scale(scale)?)?;
        Some(Self { mantissa, scale })
    }

    fn at_scale(self, scale: u32) -> Option<i128> {
        self.mantissa.checked_mul(10_i128.checked_pow(scale.checked_sub(self.scale)?)?)
    }

    /// Returns the number if it is an integer.
    pub fn as_whole(self) -> Option<i128> {
        let unit = 10_i128.checked_pow(self.scale)?;
        (self.mantissa % unit == 0).then(|| self.mantissa / unit)
    }

    /// Returns the nearest floating point number. It is printed as the same decimal if that has at most 15 digits.
    pub fn as_f64(self) -> f64 {
        format!("{}e-{}", self.mantissa, self.scale).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let add = |sum: Decimal, number: &f64| sum.plus(Decimal::from_f64(*number).unwrap()).unwrap();
        numbers.iter().fold(Decimal::default(), add).as_f64()
    }

    #[test]
    fn sums_are_those_of_the_decimals() {
        assert_eq!(sum(&[0.1, 0.2]).to_string(), "0.3");
        assert_eq!(sum(&[0.1; 10]).to_string(), "1");
        assert_eq!(sum(&[1e16, 0.1, -1e16]).to_string(), "0.1");
        assert_eq!(sum(&[-12.5, 0.25, 1e-20]).to_string(), "-12.25");
        assert_eq!(sum(&[508_753.4, 0.04]).to_string(), "508753.44");
        assert_eq!(
            Decimal::from_f64(2.5).unwrap().plus(Decimal::from_f64(1.5).unwrap()).unwrap().as_whole(),
            Some(4)
        );
        for none in [f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            assert_eq!(Decimal::from_f64(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn a_decimal_is_the_number_it_was_made_of(number in any::<f64>()) {
            if let Some(decimal) = Decimal::from_f64(number) {
                prop_assert_eq!(decimal.as_f64().to_string(), (number + 0.0).to_string());
            }
        }

        #[test]
        fn cents_add_up(cents in proptest::collection::vec(-10_000_000_i64..10_000_000, 0..50)) {
            let numbers: Vec<f64> = cents.iter().map(|cents| format!("{cents}e-2").parse().unwrap()).collect();
            let expect: f64 = format!("{}e-2", cents.iter().sum::<i64>()).parse().unwrap();
            prop_assert_eq!(sum(&numbers), expect);
        }
    }
}
