//! Use of a budget by one answer: `TokenBudget` of the Context Protection API.

/// Budget of one answer, with the estimated tokens of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    threshold: usize,
    hard_cap: usize,
    estimated_tokens: usize,
}

/// Reason for which a budget is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsoundBudget {
    /// The threshold is 0, so that nothing fits.
    #[error("the threshold is 0; it has to be more")]
    NoThreshold,
    /// The cap is below the threshold, so that an answer that need not be summarized is refused.
    #[error("the hard cap of {hard_cap} tokens is less than the threshold of {threshold}")]
    CapBelowThreshold {
        /// Threshold in tokens.
        threshold: usize,
        /// Hard cap in tokens.
        hard_cap: usize,
    },
}

impl TokenBudget {
    /// Creates a budget in tokens for an answer of `estimated_tokens`.
    ///
    /// # Errors
    ///
    /// The threshold is 0, or more than the hard cap.
    pub fn new(threshold: usize, hard_cap: usize, estimated_tokens: usize) -> Result<Self, UnsoundBudget> {
        match () {
            () if threshold == 0 => Err(UnsoundBudget::NoThreshold),
            () if hard_cap < threshold => Err(UnsoundBudget::CapBelowThreshold { threshold, hard_cap }),
            () => Ok(Self { threshold, hard_cap, estimated_tokens }),
        }
    }

    /// Returns the tokens above which an answer is summarized.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Returns the maximum number of tokens of an answer.
    #[must_use]
    pub fn hard_cap(&self) -> usize {
        self.hard_cap
    }

    /// Returns the estimated tokens of the answer.
    #[must_use]
    pub fn estimated_tokens(&self) -> usize {
        self.estimated_tokens
    }

    /// Returns the used share of the threshold, at most 1.
    #[must_use]
    pub fn budget_used(&self) -> f64 {
        self.budget_ratio().min(1.0)
    }

    /// Returns the tokens divided by the threshold.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts far below 2^53")]
    pub fn budget_ratio(&self) -> f64 {
        self.estimated_tokens as f64 / self.threshold as f64
    }

    /// Returns the tokens left below the threshold.
    #[must_use]
    pub fn budget_remaining(&self) -> usize {
        self.threshold.saturating_sub(self.estimated_tokens)
    }

    /// Returns true if the answer is summarized.
    #[must_use]
    pub fn summary_mode(&self) -> bool {
        self.estimated_tokens > self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(estimated: usize) -> TokenBudget {
        TokenBudget::new(4_000, 12_000, estimated).unwrap()
    }

    #[test]
    fn rule_threshold_is_above_zero_and_the_cap_not_below_it() {
        assert_eq!(TokenBudget::new(0, 12_000, 1), Err(UnsoundBudget::NoThreshold));
        let below = UnsoundBudget::CapBelowThreshold { threshold: 2, hard_cap: 1 };
        assert_eq!(TokenBudget::new(2, 1, 1), Err(below));
        assert!(TokenBudget::new(1, 1, usize::MAX).is_ok());
    }

    #[test]
    fn what_is_used_is_a_share_of_the_threshold() {
        for (estimated, used, ratio, remaining, summary) in [
            (0, 0.0, 0.0, 4_000, false),
            (2_000, 0.5, 0.5, 2_000, false),
            (4_000, 1.0, 1.0, 0, false),
            (4_001, 1.0, 1.000_25, 0, true),
            (6_000, 1.0, 1.5, 0, true),
        ] {
            let budget = of(estimated);
            assert!((budget.budget_used() - used).abs() < 1e-9, "{estimated}");
            assert!((budget.budget_ratio() - ratio).abs() < 1e-9, "{estimated}");
            assert_eq!((budget.budget_remaining(), budget.summary_mode()), (remaining, summary));
        }
    }
}
