//! From numbers to places, and the round numbers at the ticks of an axis.

use crate::spec::Scale;

/// An axis of numbers between two places in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) range: Range,
    /// The place of the lowest and that of the highest number.
    from: f64,
    to: f64,
}

impl Axis {
    /// Where a number is.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let Range { low, high, log } = self.range;
        let share = match log {
            true => (value.ln() - low.ln()) / (high.ln() - low.ln()),
            // Halves do not overflow where the whole would.
            false if (high - low).is_infinite() => {
                (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
            }
            false => (value - low) / (high - low),
        };
        self.from + (self.to - self.from) * share
    }
}

/// The range of an axis of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
}

impl Range {
    /// The range of numbers with a little air, and with `anchors` in it that need none.
    pub(crate) fn of(values: impl Iterator<Item = f64>, anchors: &[f64], scale: Scale) -> Range {
        let log = scale == Scale::Log;
        let to = |v: f64| if log { v.ln() } else { v };
        let back = |v: f64| if log { v.exp() } else { v };
        let (low, high) = extent(values);
        let anchors = anchors.iter().copied().filter(|a| !log || *a > 0.0);
        let (least, most) = anchors.clone().fold((low, high), |(a, b), v| (a.min(v), b.max(v)));
        if least > most {
            let (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
            return Range { low, high, log };
        }
        // Halves do not overflow where the whole would.
        let span = (to(most) / 2.0 - to(least) / 2.0) * 2.0;
        let air = match span {
            s if s > 0.0 && s.is_finite() => s * 0.04,
            0.0 if log => 0.5,
            0.0 => (to(most).abs() * 0.1).max(0.5),
            _ => 0.0,
        };
        let anchored = |v: f64| anchors.clone().any(|a| a == v);
        let low = match anchored(least) && low >= least && most > least {
            true => least,
            false => back(to(least) - air),
        };
        let high = match anchored(most) && high <= most && most > least {
            true => most,
            false => back(to(most) + air),
        };
        // Neither overflows, and a logarithmic axis does not begin at 0.
        let least_of_all = if log { f64::from_bits(1) } else { -f64::MAX };
        Range { low: low.max(least_of_all), high: high.min(f64::MAX), log }
    }

    /// The axis of this range between two places.
    pub(crate) fn axis(&self, from: f64, to: f64) -> Axis {
        Axis { range: *self, from, to }
    }

    /// Round numbers within the range, at most about `most` of them, with their texts.
    pub(crate) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let most = most.max(2);
        if self.log {
            let ticks = self.log_ticks(most);
            if ticks.len() >= 2 {
                return ticks.into_iter().map(|v| (v, number(v))).collect();
            }
        }
        let step = step((self.high / most as f64) - (self.low / most as f64));
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
        // A step of 25 hundredths has two decimals, one of 2 tenths one.
        let decimals = match (step * 10_f64.powi(decimals as i32)).fract() {
            f if f > 1e-6 && f < 1.0 - 1e-6 => decimals + 1,
            _ => decimals,
        };
        let largest = self.low.abs().max(self.high.abs());
        (0..=(last - first).clamp(0.0, 100.0) as i64)
            .map(|i| (first + i as f64) * step)
            .map(|v| if v.abs() < step * 1e-9 { 0.0 } else { v })
            .filter(|v| !self.log || *v > 0.0)
            .filter(|v| *v >= self.low - step * 1e-9 && *v <= self.high + step * 1e-9)
            .map(|v| (v, tick_text(v, decimals, largest, step)))
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (last - first).max(1) as usize;
        let factors: &[f64] = match most / decades {
            0 | 1 => &[1.0],
            2 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let every = decades.div_ceil(most).max(1);
        // Multiples of the stride where there are enough, such as 1, 1000, 1e6.
        let multiples = (first..=last).filter(|e| e.rem_euclid(every as i32) == 0);
        let exponents: Vec<i32> = match every {
            1 => multiples.collect(),
            _ if multiples.clone().count() > 3 => multiples.collect(),
            _ => (first + 1..last).step_by(every).collect(),
        };
        exponents
            .into_iter()
            .flat_map(|e| factors.iter().map(move |f| parse_power(*f, e)))
            .filter(|v| *v > 0.0 && v.is_finite())
            .filter(|v| *v >= self.low * (1.0 - 1e-12) && *v <= self.high * (1.0 + 1e-12))
            .collect()
    }
}

/// The least and the greatest of numbers.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    values.fold(none, |(low, high), value| (low.min(value), high.max(value)))
}

/// `factor` times a power of ten, as near as a number of the machine can be.
fn parse_power(factor: f64, exponent: i32) -> f64 {
    format!("{factor}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not below `rough`.
fn step(rough: f64) -> f64 {
    let rough = rough.max(f64::MIN_POSITIVE);
    let exponent = rough.log10().floor() as i32;
    let fits = |f: &f64| parse_power(*f, exponent) >= rough * (1.0 - 1e-9);
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(fits).unwrap_or(10.0);
    let step = parse_power(factor, exponent);
    if step.is_finite() { step } else { 1e308 }
}

fn tick_text(value: f64, decimals: usize, largest: f64, step: f64) -> String {
    if value == 0.0 && decimals > 10 {
        return "0".to_string();
    }
    if value != 0.0 && (!(1e-4..1e7).contains(&largest) || decimals > 10) {
        let text = format!("{value:e}");
        // Sums of steps end in digits that mean nothing.
        let digits = (value.abs().log10().floor() - step.log10().floor()).clamp(0.0, 15.0) as usize;
        let text = if text.len() > 12 { format!("{value:.digits$e}") } else { text };
        return trim_exponent(&text).replace('-', "−");
    }
    grouped(&format!("{value:.decimals$}"))
}

fn trim_exponent(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => {
            format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_string(),
    }
}

/// A number as text: three significant digits, whole numbers in full.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e7 {
        return grouped(&format!("{value:.0}"));
    }
    if !(1e-4..1e7).contains(&size) {
        return trim_exponent(&format!("{value:.2e}")).replace('-', "−");
    }
    let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => grouped(text.trim_end_matches('0').trim_end_matches('.')),
        false => grouped(&text),
    }
}

/// A count, in groups of three digits.
pub(crate) fn count(n: usize) -> String {
    grouped(&n.to_string())
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let hundred = share * 100.0;
    match hundred {
        h if h >= 9999.5 => "> 9999 %".to_string(),
        h if h == 0.0 || h >= 99.95 || (h - h.round()).abs() < 1e-9 => format!("{h:.0} %"),
        h if h < 0.1 => "< 0.1 %".to_string(),
        h => format!("{h:.1} %"),
    }
}

/// Digits in groups of three, from ten thousand on, with a true minus.
pub(crate) fn grouped(text: &str) -> String {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) if rest.bytes().any(|b| (b'1'..=b'9').contains(&b)) => ("−", rest),
        Some(rest) => ("", rest),
        None => ("", text),
    };
    let (whole, part) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = sign.to_string();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(low: f64, high: f64, log: bool, most: usize) -> Vec<String> {
        Range { low, high, log }.ticks(most).into_iter().map(|(_, t)| t).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(0.0, 1.0, false, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(-0.3, 0.31, false, 4), ["−0.2", "0.0", "0.2"]);
        assert_eq!(texts(0.0, 100_000.0, false, 4), ["0", "25,000", "50,000", "75,000", "100,000"]);
        assert_eq!(texts(0.0, 1.0, false, 4), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(texts(0.0, 3e8, false, 3), ["0", "1e8", "2e8", "3e8"]);
        assert_eq!(texts(0.0, 2e-13, false, 2), ["0", "1e−13", "2e−13"]);
        assert_eq!(texts(0.5, 2000.0, true, 5), ["1", "10", "100", "1000"]);
        assert_eq!(texts(3.0, 5.0, true, 5), ["3.0", "3.5", "4.0", "4.5", "5.0"]);
    }

    #[test]
    fn ticks_say_where_they_are_and_are_within() {
        for (low, high) in [(1e-300, 3e-300), (-7e12, 5e13), (0.1, 0.1000001), (-1e300, 1e300)] {
            let ticks = Range { low, high, log: false }.ticks(6);
            assert!(ticks.len() >= 2 && ticks.len() < 14, "{low} {high} {ticks:?}");
            let range = low - 1e-9 * (high - low)..=high * (1.0 + 1e-9);
            assert!(ticks.iter().all(|(v, _)| range.contains(v)), "{ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0].1 != pair[1].1), "{ticks:?}");
        }
    }

    #[test]
    fn ranges_have_air_but_not_beyond_an_anchor() {
        let range = Range::of([2.0, 10.0].into_iter(), &[0.0], Scale::Linear);
        assert!(range.low == 0.0 && range.high > 10.0, "{range:?}");
        let one = Range::of([5.0].into_iter(), &[], Scale::Linear);
        assert!(one.low < 5.0 && one.high > 5.0);
        let wide = Range::of([-f64::MAX, f64::MAX].into_iter(), &[], Scale::Linear);
        let axis = wide.axis(0.0, 100.0);
        assert_eq!([-f64::MAX, 0.0, f64::MAX].map(|v| axis.at(v)), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let all = [0.0, 12.0, 0.12345, -0.5, 1234.5, 12345.0, 1e9, 1.5e-7].map(number);
        assert_eq!(all.join(" "), "0 12 0.123 −0.5 1234 12,345 1e9 1.5e−7");
        assert_eq!([0.125, 1.0, 1.7e121].map(percent), ["12.5 %", "100 %", "> 9999 %"]);
    }
}
