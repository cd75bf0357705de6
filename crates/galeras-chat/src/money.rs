//! Sums of money without rounding.
//!
//! Dollars as an integer, read from and written as decimals, and prices of tokens.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Decimals that are kept: 10^-18 dollars, so that one token at a price per million tokens with
/// twelve decimals is still exact.
const DECIMALS: usize = 18;
const ONE: u128 = 10_u128.pow(DECIMALS as u32);
const MILLION: u128 = 1_000_000;

/// An amount of US dollars, exact to 18 decimals. Sums stop at the largest number (10^20
/// dollars) rather than wrap.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u128);

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; zero if `other` is more.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The `parts`-th part, rounded down.
    #[must_use]
    pub(super) fn divided(self, parts: u32) -> Self {
        Self(self.0 / u128::from(parts.max(1)))
    }

    /// The nearest number, for callers that compute with floating point.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.digits().parse().unwrap_or(f64::INFINITY)
    }

    /// For people: four digits that count, rounded up, so that a limit is never shown as less than
    /// it is.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let digits = self.0.checked_ilog10().map_or(1, |log| log + 1);
        // Whole cents always stay.
        let unit = 10_u128.pow(digits.saturating_sub(4).min(DECIMALS as u32 - 2));
        Self(self.0.div_ceil(unit).saturating_mul(unit))
    }

    /// The decimal number, without the sign of the dollar.
    fn digits(self) -> String {
        let part = format!("{:018}", self.0 % ONE);
        let part = part.trim_end_matches('0');
        format!("{}.{part:0<2}", self.0 / ONE)
    }
}

impl FromStr for Usd {
    type Err = String;

    /// Reads `2.5`, `0.075` or `1e-7`, as people and JSON write numbers.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an amount of dollars");
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + part.len() == 0
            || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit())
        {
            return Err(wrong());
        }
        let number = format!("{whole}{part}");
        let number = number.trim_start_matches('0');
        let kept = number.trim_end_matches('0');
        if kept.is_empty() {
            return Ok(Self::ZERO);
        }
        let point = i64::try_from(part.len()).map_err(|_| wrong())?;
        let dropped = i64::try_from(number.len() - kept.len()).map_err(|_| wrong())?;
        let shift = DECIMALS as i64 + i64::from(exponent) - point + dropped;
        let shift = u32::try_from(shift).map_err(|_| format!("`{text}` has too many decimals"))?;
        let value = kept.parse::<u128>().ok();
        let value = value.and_then(|v| v.checked_mul(10_u128.checked_pow(shift)?));
        value.map(Self).ok_or_else(|| format!("`{text}` is too large"))
    }
}

/// `$1.50`, with more decimals if there are any.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.digits())
    }
}

/// The decimal number as a text, so that nothing is rounded.
impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.digits())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Debug for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The price of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// One token of the prompt.
    input: Usd,
    /// One token of the answer.
    output: Usd,
}

impl Price {
    /// From the prices of a million tokens in US dollars, as providers publish them.
    ///
    /// # Errors
    /// If a price has more than 12 decimals.
    pub fn per_million(input: Usd, output: Usd) -> Result<Self, String> {
        let one = |usd: Usd| {
            let whole = usd.0.is_multiple_of(MILLION);
            whole.then_some(Usd(usd.0 / MILLION)).ok_or("a price has more than 12 decimals")
        };
        Ok(Self { input: one(input)?, output: one(output)? })
    }

    /// Returns true if answers of any length are free.
    #[must_use]
    pub fn answers_are_free(&self) -> bool {
        self.output == Usd::ZERO
    }

    /// Returns true if prompts and answers are free.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.answers_are_free() && self.input == Usd::ZERO
    }

    /// The cost of tokens in US dollars. Prices of cached tokens are lower; they are not known here.
    #[must_use]
    pub fn of(&self, prompt_tokens: u64, completion_tokens: u64) -> Usd {
        let cost = |usd: Usd, tokens: u64| Usd(usd.0.saturating_mul(u128::from(tokens)));
        cost(self.input, prompt_tokens).plus(cost(self.output, completion_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (text, shown) in [
            ("0", "$0.00"),
            ("0.0", "$0.00"),
            ("5", "$5.00"),
            ("2.5", "$2.50"),
            (".075", "$0.075"),
            ("1e-7", "$0.0000001"),
            ("1.5E2", "$150.00"),
            ("000100", "$100.00"),
            ("0.000000000000000001", "$0.000000000000000001"),
            ("0.10000000000000000000000", "$0.10"),
        ] {
            assert_eq!(usd(text).to_string(), shown, "{text}");
        }
        for text in ["", ".", "-1", "+1", "1,5", "1.2.3", "1e", "NaN", "inf", "1e-19", "1e30", "½"]
        {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
        assert_eq!(usd("3").minus(usd("5")), Usd::ZERO);
    }

    #[test]
    fn amounts_are_kept_exactly_and_shown_roughly() {
        let exact = usd("0.123456789012345678");
        let kept = serde_json::to_string(&exact).unwrap();
        assert_eq!(kept, r#""0.123456789012345678""#);
        assert_eq!(serde_json::from_str::<Usd>(&kept).unwrap(), exact);
        assert!(serde_json::from_str::<Usd>("\"-1\"").is_err());
        for (text, shown) in [
            ("0", "$0.00"),
            ("0.000012341", "$0.00001235"),
            ("0.0274", "$0.0274"),
            ("1.2345", "$1.235"),
            ("12.341", "$12.35"),
            ("12345.671", "$12345.68"),
        ] {
            assert_eq!(usd(text).rounded_up().to_string(), shown, "{text}");
        }
        assert_eq!(usd("2.50").to_f64(), 2.5);
    }

    #[test]
    fn a_million_sums_lose_nothing() {
        let price = Price::per_million(usd("0.1"), usd("0.3")).unwrap();
        let sum = (0..1_000_000).fold(Usd::ZERO, |sum, _| sum.plus(price.of(1, 1)));
        assert_eq!(sum, usd("0.4"));
        assert_eq!(price.of(u64::MAX, u64::MAX).to_string(), "$7378697629483.820646");
        assert!(Price::per_million(usd("0.0000000000001"), Usd::ZERO).is_err());
    }
}
