//! A cumulative histogram (Prometheus `le` buckets).

use super::exposition::Exposition;

/// Counts of observed numbers by bucket.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    /// Upper bound of each bucket, inclusive, ascending.
    bounds: &'static [f64],
    /// Number of observations in each bucket. Those above the last bound are in `count` only.
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, buckets: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
        let bucket = self.bounds.partition_point(|bound| *bound < number);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += 1;
        }
    }

    /// Writes the histogram's samples with these labels.
    pub(crate) fn expose(&self, exposition: &mut Exposition, name: &str, labels: &[(&str, &str)]) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        let mut sample = |bound: &str, count: u64| {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
            exposition.sample(&bucket, &labels, count);
        };
        for (bound, count) in self.bounds.iter().zip(&self.buckets) {
            below += count;
            sample(&bound.to_string(), below);
        }
        sample("+Inf", self.count);
        exposition.sample(&format!("{name}_sum"), labels, self.sum);
        exposition.sample(&format!("{name}_count"), labels, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_all_that_is_at_most_their_bound() {
        let mut histogram = Histogram::new(&[0.5, 1.0, 10.0]);
        for number in [0.0, 0.5, 0.75, 1.0, 10.0, 11.0] {
            histogram.observe(number);
        }
        let mut exposition = Exposition::default();
        histogram.expose(&mut exposition, "x", &[("of", "y")]);
        let expect = "x_bucket{of=\"y\",le=\"0.5\"} 2\nx_bucket{of=\"y\",le=\"1\"} 4\nx_bucket{of=\"y\",le=\"10\"} 5\n\
                      x_bucket{of=\"y\",le=\"+Inf\"} 6\nx_sum{of=\"y\"} 23.25\nx_count{of=\"y\"} 6\n";
        assert_eq!(exposition.into_text(), expect);
    }
}
