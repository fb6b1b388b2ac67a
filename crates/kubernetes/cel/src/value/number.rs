//! Number conversions and Go's number formats.

/// Go's `%g` with the shortest digits that parse to the same value.
pub(crate) fn format_g(d: f64) -> String {
    if d.is_nan() {
        return "NaN".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if d == 0.0 {
        return if d.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{d:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{d}")
}

/// The int that equals a double exactly, if any.
pub(crate) fn double_to_int_lossless(d: f64) -> Option<i64> {
    let int = double_to_int(d)?;
    (int as f64 == d).then_some(int)
}

/// The uint that equals a double exactly, if any.
pub(crate) fn double_to_uint_lossless(d: f64) -> Option<u64> {
    let uint = double_to_uint(d)?;
    (uint as f64 == d).then_some(uint)
}

/// Truncates towards zero; `None` out of range, which includes the lower end.
pub(crate) fn double_to_int(d: f64) -> Option<i64> {
    (d.is_finite() && d > i64::MIN as f64 && d < i64::MAX as f64).then_some(d as i64)
}

/// Truncates towards zero; `None` out of range.
pub(crate) fn double_to_uint(d: f64) -> Option<u64> {
    (0.0..18_446_744_073_709_551_616.0).contains(&d).then_some(d as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_go_prints_them() {
        let table = [
            (1.0, "1"),
            (1_234_567.0, "1.234567e+06"),
            (123_456.5, "123456.5"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-12300.0, "-12300"),
            (100_000.0, "100000"),
            (f64::INFINITY, "+Inf"),
            (-0.0, "-0"),
        ];
        for (double, text) in table {
            assert_eq!(format_g(double), text);
        }
    }
}
