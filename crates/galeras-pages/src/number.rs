//! Numbers for people: four significant digits, thousands apart, a true minus.

/// A count, with a comma between thousands.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number to four significant digits: `0.01235`, `12.3`, `1,234,568`, `1.2e-9`.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if value.is_nan() {
        return "NaN".to_string();
    }
    if size == 0.0 || size.is_infinite() {
        return format!("{sign}{}", if size == 0.0 { "0" } else { "∞" });
    }
    if !(1e-4..1e15).contains(&size) {
        let text = format!("{size:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{sign}{}e{}", trimmed(mantissa), exponent.replace('-', "−"));
    }
    if size >= 1000.0 {
        if size.fract() == 0.0 || size >= 9999.5 {
            return format!("{sign}{}", count(size.round() as u64));
        }
        return format!("{sign}{}", trimmed(&format!("{size:.1}")));
    }
    // The number of digits before the point; negative for zeros after it.
    let places = size.log10().floor() as i32 + 1;
    let decimals = (4 - places).max(0) as usize;
    format!("{sign}{}", trimmed(&format!("{size:.decimals$}")))
}

/// An estimate: to three decimals if it is of the size of a score, else as [`number`].
pub(crate) fn estimate(value: f64) -> String {
    let size = value.abs();
    if (0.001..10.0).contains(&size) {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{size:.3}");
    }
    number(value)
}

/// A p-value: `p = 0.032`, `p < 0.001`.
pub(crate) fn p_value(value: f64) -> String {
    match value {
        value if value < 0.001 => "< 0.001".to_string(),
        value if value < 0.0995 => format!("= {value:.3}"),
        _ => format!("= {value:.2}"),
    }
}

/// A duration: `0.4 s`, `3 min 12 s`, `2 h 05 min`.
pub(crate) fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return number(value);
    }
    if value < 0.0995 {
        return format!("{:.0} ms", value * 1000.0);
    }
    if value < 9.95 {
        return format!("{value:.1} s");
    }
    let whole = value.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// A size: `820 bytes`, `1.2 MB`.
pub(crate) fn bytes(value: u64) -> String {
    match value {
        0..1000 => format!("{value} bytes"),
        1000..1_000_000 => format!("{:.0} kB", value as f64 / 1e3),
        _ => format!("{:.1} MB", value as f64 / 1e6),
    }
}

/// Without zeros at the end of decimals.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
