//! Selects candidates by the words of a search, and reads where they have them.
//!
//! If few records have any of the words, all of them are candidates. Otherwise the server scores a bounded number of
//! records: those with the rarest words, those with two of the others, those with a word in the title, and those of a time that
//! the query names. The score only
//! decides which records are candidates; their features decide the order.

use std::collections::{BTreeMap, HashMap, HashSet};

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::expansion::Lookups;
use fetchwell_ranking::lexical::ranking::RankedRecord;
use fetchwell_ranking::lexical::scoring::Evidence;
use fetchwell_ranking::lexical::selection::Likeness;
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_ranking::lexical::understanding::TimeWindow;
use fetchwell_source::SourceError;
use tokio_postgres::types::ToSql;

use super::super::tables::PostgresTables;
use super::super::words::{NO_TIME, RawVector, TITLE, marked, stream_word};
use super::scope::Scope;
use super::tsquery::TextQuery;
use super::vocabulary::Terms;

/// Number of candidates that are ranked by their features.
pub(super) const DEPTH: usize = 400;

/// Maximum number of records that the server scores for one selection.
const MAX_SCORED: u64 = 4_000;

/// Number of candidates of a selection that completes another one, and the maximum number of records scored for it.
const FURTHER: usize = 200;
const MAX_SCORED_FURTHER: u64 = 1_000;

/// Number of candidates of other streams that are ranked beside those of one stream.
const OTHERS: usize = 50;

/// Number of candidates of each time that the query names, and of the newest ones of a time if it names nothing else.
const OF_TIME: usize = 100;
const NEWEST: usize = 50;

/// Number of words of which each pair is looked up.
const PAIRED: usize = 4;

/// Maximum sum of the records with each word of a further selection. Such selections are by pairs, by titles and of other
/// streams. More common words decide little beside rarer ones, and the index reads an entry for each record that has them.
const MAX_READ: u64 = 50_000;

/// Number of groups of words that the server scores with one weight each.
const GROUPS: usize = 4;

/// Minimum bytes of a stored vector that is detoasted once, and not for each score.
const LARGE_VECTOR_BYTES: i32 = 4_000;

/// Maximum bytes of a vector, as it is stored, that is read as a whole. Of a larger one the server selects the words.
const MAX_VECTOR_BYTES: i32 = 48 * 1024;

/// Word of the index that a record can have.
#[derive(Debug)]
struct Clause {
    text: String,
    /// Number of the word of the query that it stands for.
    slot: usize,
    /// Weight of the word in the score of the server.
    weight: f32,
    /// Number of records in scope that have the word.
    frequency: u64,
    /// True if the query is about the word.
    is_matter: bool,
}

/// Word of the query that a word of the index stands for.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    slot: usize,
    /// Quality of the match.
    quality: f32,
    has_places: bool,
}

/// Conditions on records besides their words.
#[derive(Debug)]
pub(crate) struct Conditions {
    pub(crate) constraints: Option<TextQuery>,
    /// True if they require all words of the search.
    pub(crate) have_all_words: bool,
    /// Earliest second at which a record was written, and the second before which it was.
    pub(crate) after: Option<i64>,
    pub(crate) before: Option<i64>,
    /// Ids of the only records, if few pass the filter of a search.
    pub(crate) within: Option<Vec<i64>>,
}

/// Selection of candidates for one search.
pub(super) struct Candidates<'a> {
    tables: &'a PostgresTables<'a>,
    query: &'a QueryTerms,
    lookups: &'a Lookups,
    scope: &'a Scope,
    conditions: &'a Conditions,
    clauses: Vec<Clause>,
    /// Meanings of each word, by its bytes.
    slots: BTreeMap<&'a [u8], Vec<Meaning>>,
    /// Queries for the sequences that stand for words.
    sequences: Vec<TextQuery>,
}

/// Candidates of a search.
#[derive(Debug, Default)]
pub(super) struct Selected {
    pub(super) evidence: Vec<Evidence>,
    /// True if no other record matches.
    pub(super) is_complete: bool,
}

impl Conditions {
    /// Returns SQL for the conditions on the table `t`, beginning with `AND`, for values after the first `used` ones.
    pub(crate) fn sql(&self, used: usize) -> String {
        format!(
            " AND (${0}::bigint IS NULL OR t.time >= ${0}) AND (${1}::bigint IS NULL OR (t.time < ${1} AND t.time > {NO_TIME}))",
            used + 1,
            used + 2
        )
    }

    /// Returns SQL for the only records of the table `t`, beginning with `AND`, and adds its value.
    pub(super) fn within<'v>(&'v self, values: &mut Vec<&'v (dyn ToSql + Sync)>) -> String {
        let Some(ids) = &self.within else { return String::new() };
        values.push(ids);
        format!(" AND t.id = ANY (${}::bigint[])", values.len())
    }

    /// Returns SQL for the conditions on the record of a chunk, beginning with `AND`, and adds its values. `record` is SQL that
    /// is true for the row `t` of the record.
    pub(crate) fn of_chunks<'v>(&'v self, record: &str, values: &mut Vec<&'v (dyn ToSql + Sync)>) -> String {
        let Self { constraints, after, before, within, .. } = self;
        if constraints.is_none() && after.is_none() && before.is_none() && within.is_none() {
            return String::new();
        }
        let mut times = self.sql(values.len());
        values.push(after);
        values.push(before);
        times.push_str(&self.within(values));
        let mut words = String::new();
        if let Some(TextQuery(query)) = constraints {
            values.push(query);
            words = format!(" AND t.words @@ CAST(${}::text AS tsquery)", values.len());
        }
        format!(" AND EXISTS (SELECT 1 FROM fetchwell.texts t WHERE {record}{times}{words})")
    }
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        tables: &'a PostgresTables<'a>,
        query: &'a QueryTerms,
        terms: &Terms<'_>,
        lookups: &'a Lookups,
        scope: &'a Scope,
        conditions: &'a Conditions,
    ) -> Result<Self, SourceError> {
        let mut clauses = Vec::new();
        let mut slots: BTreeMap<&[u8], Vec<Meaning>> = BTreeMap::new();
        for (slot, lookup) in lookups.words.iter().enumerate() {
            for alternative in &lookup.alternatives {
                // Another form counts at most as much as the word of the query, however rare it is.
                let weight = alternative.quality * lookup.weight.min(lookups.rarity(alternative.frequency));
                let has_places = lookups.has_places(alternative);
                let meaning = Meaning { slot, quality: alternative.quality, has_places };
                slots.entry(alternative.text.as_bytes()).or_default().push(meaning);
                if !lookup.selects() {
                    continue;
                }
                let frequency = terms.frequency_in_scope(&alternative.text)?;
                let (text, is_matter) = (alternative.text.clone(), lookup.is_matter());
                clauses.push(Clause { text, slot, weight, frequency, is_matter });
            }
        }
        clauses.sort_by(|one, other| {
            one.frequency.cmp(&other.frequency).then_with(|| one.text.cmp(&other.text))
        });
        let sequences =
            lookups.sequences.iter().filter_map(|each| TextQuery::sequence(&each.words)).collect();
        Ok(Self { tables, query, lookups, scope, conditions, clauses, slots, sequences })
    }

    /// Returns the query for records with any word of the search; `None` if no record has one.
    pub(super) fn any(&self) -> Option<TextQuery> {
        let words = self.clauses.iter().map(|clause| TextQuery::word(&clause.text));
        TextQuery::any(words.chain(self.sequences.iter().cloned()))
    }

    /// Returns an upper bound of the number of records with any of the words.
    pub(super) fn max_matches(&self) -> u64 {
        let sum: u64 = self.clauses.iter().map(|clause| clause.frequency).sum();
        let sum = sum + self.lookups.sequences.iter().map(|sequence| sequence.frequency).sum::<u64>();
        sum.min(self.scope.records_in_scope)
    }

    /// Returns the number of records in scope that have the most frequent word.
    pub(super) fn min_matches(&self) -> u64 {
        self.clauses.last().map_or(0, |clause| clause.frequency)
    }

    /// Returns true if all records that match have the same word.
    pub(super) fn is_one_word(&self) -> bool {
        self.clauses.len() == 1 && self.sequences.is_empty()
    }

    /// Selects candidates and reads where they have the words.
    pub(super) fn select(&self) -> Result<Selected, SourceError> {
        let Selected { evidence, is_complete } = self.select_by_words()?;
        let mut found = Found::default();
        found.add(evidence);
        for window in &self.query.dates {
            found.add(self.of_time(*window)?);
        }
        Ok(Selected { evidence: found.evidence, is_complete })
    }

    /// Selects the candidates of a time: those with the rarest words that the query is about, or the newest ones if it is about
    /// nothing else. A year is no more than its words then.
    fn of_time(&self, window: TimeWindow) -> Result<Vec<Evidence>, SourceError> {
        let Conditions { constraints, have_all_words, after, before, within } = self.conditions;
        let before = before.map_or(window.before(), |before| before.min(window.before()));
        let conditions = Conditions {
            constraints: constraints.clone(),
            after: (*after).max(Some(window.after())),
            before: Some(before),
            have_all_words: *have_all_words,
            within: within.clone(),
        };
        if self.query.has_matter {
            let matter: Vec<&Clause> = self.clauses.iter().filter(|clause| clause.is_matter).collect();
            let rarest = matter.iter().take(count_within_limit(matter.iter().copied(), 1));
            return match TextQuery::any(rarest.map(|clause| TextQuery::word(&clause.text))) {
                Some(query) => self.read(Some(&query), OF_TIME, &conditions),
                None => Ok(Vec::new()),
            };
        }
        if window.is_narrow() { self.read(None, NEWEST, &conditions) } else { Ok(Vec::new()) }
    }

    fn select_by_words(&self) -> Result<Selected, SourceError> {
        let Some(any) = self.any() else {
            return Ok(Selected { evidence: Vec::new(), is_complete: true });
        };
        let mut found = Found::default();
        // One selection is enough if few records match, or if all of them have the same words.
        if self.max_matches() <= MAX_SCORED || self.conditions.have_all_words {
            found.add(self.read(Some(&any), DEPTH, self.conditions)?);
            if found.evidence.len() < DEPTH {
                return Ok(Selected { evidence: found.evidence, is_complete: true });
            }
        } else {
            for (query, count) in self.selections() {
                found.add(self.read(Some(&query), count, self.conditions)?);
            }
            if found.evidence.len() < DEPTH {
                found.add(self.read(Some(&any), DEPTH - found.evidence.len(), self.conditions)?);
            }
        }
        if let Some(stream) = self.dominant_stream(&found.evidence) {
            let without = TextQuery::not(TextQuery::word(&stream_word(stream)));
            let any = TextQuery::any(self.rarest().map(|clause| TextQuery::word(&clause.text)));
            if let Some(others) = any.and_then(|any| TextQuery::all([any, without])) {
                found.add(self.read(Some(&others), OTHERS, self.conditions)?);
            }
        }
        Ok(Selected { evidence: found.evidence, is_complete: false })
    }

    /// Returns selections of records when too many have any of the words.
    fn selections(&self) -> Vec<(TextQuery, usize)> {
        let mut sum = 0;
        let rare = self.clauses.iter().take_while(|clause| {
            sum += clause.frequency;
            sum <= MAX_SCORED
        });
        let rare = rare.count();
        let word = |clause: &Clause| TextQuery::word(&clause.text);
        let mut selections = Vec::new();
        selections
            .extend(TextQuery::any(self.clauses.iter().take(rare).map(word)).map(|query| (query, DEPTH)));
        let others = self.clauses.get(rare..).unwrap_or_default();
        let paired = others.get(..count_within_limit(others.iter(), 2).min(PAIRED)).unwrap_or_default();
        let mut pairs = Vec::new();
        for (at, one) in paired.iter().enumerate() {
            let others = paired.iter().skip(at + 1).filter(|other| other.slot != one.slot);
            pairs.extend(others.filter_map(|other| TextQuery::all([word(one), word(other)])));
        }
        selections.extend(TextQuery::any(pairs).map(|query| (query, FURTHER)));
        let titles = self.rarest().map(|clause| TextQuery::word(&marked(TITLE, &clause.text)));
        selections.extend(TextQuery::any(titles).map(|query| (query, FURTHER)));
        selections.extend(TextQuery::any(self.sequences.iter().cloned()).map(|query| (query, FURTHER)));
        selections
    }

    /// Returns the rarest words, at least one, with at most [`MAX_READ`] records together.
    fn rarest(&self) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().take(count_within_limit(self.clauses.iter(), 1))
    }

    /// Reads the best `count` records that match a query and conditions, by the score of the server. Without a query, these are
    /// the newest ones that meet the conditions.
    fn read(
        &self,
        query: Option<&TextQuery>,
        count: usize,
        conditions: &Conditions,
    ) -> Result<Vec<Evidence>, SourceError> {
        let scored = if count < DEPTH { MAX_SCORED_FURTHER } else { MAX_SCORED };
        let all = TextQuery::all(query.cloned().into_iter().chain(conditions.constraints.clone()));
        let filter = if all.is_some() { "t.words @@ CAST($1::text AS tsquery)" } else { "$1::text IS NULL" };
        let (newest, scored) = match query {
            Some(_) => ("", scored),
            None => (" ORDER BY t.time DESC, t.id", saturated(count)),
        };
        let query = all.map(|TextQuery(query)| query);
        let (weights, groups) = self.score_groups();
        let Conditions { after, before, .. } = conditions;
        let average = self.scope.average_length();
        let in_sequences = self.lookups.sequences.iter().flat_map(|sequence| &sequence.words);
        let unselecting = self.lookups.words.iter().filter(|word| !word.selects());
        let unselecting =
            unselecting.flat_map(|word| &word.alternatives).map(|alternative| &alternative.text);
        let words = self.clauses.iter().map(|clause| &clause.text).chain(in_sequences).chain(unselecting);
        let words: Vec<&str> = words.map(String::as_str).collect();
        let count = saturated::<i64>(count);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&query, after, before, &words, &count, &average];
        let mut score = vec!["0::float8".to_owned()];
        for (weight, group) in weights.iter().zip(&groups) {
            score.push(format!(
                "${}::float8 * ts_rank('{{0.6,0.6,0.6,1}}', t.words, CAST(${}::text AS tsquery))",
                values.len() + 1,
                values.len() + 2
            ));
            values.extend([weight as &(dyn ToSql + Sync), &group.0]);
        }
        let within = conditions.within(&mut values);
        // A bounded number of records is scored, and the vectors of the best ones are read.
        let sql = format!(
            "SELECT t.id, t.stream, t.length, t.title_words, t.similarity, {}, t.time,
                 CASE WHEN pg_column_size(t.words) <= {MAX_VECTOR_BYTES} THEN t.words ELSE (
                     SELECT string_agg(quote_literal(v.lexeme) || coalesce(':' || array_to_string(v.positions, ','), ''), ' ')::tsvector
                     FROM unnest(t.words) AS v WHERE v.lexeme = ANY ($4::text[])) END
             FROM (
                 SELECT t.id, ({}) * (1 + 0.25 / (1 + t.length / $6::real)) AS score
                 FROM (
                     SELECT t.id, t.length,
                         CASE WHEN pg_column_size(t.words) < {LARGE_VECTOR_BYTES} THEN t.words ELSE t.words || ''::tsvector END AS words
                     FROM fetchwell.texts t WHERE {filter}{}{within}{newest} LIMIT {scored}
                 ) t
                 ORDER BY score DESC, t.id LIMIT $5
             ) b JOIN fetchwell.texts t ON t.id = b.id",
            "(SELECT s.connection FROM fetchwell.streams s WHERE s.id = t.stream)",
            score.join(" + "),
            conditions.sql(1),
        );
        let rows = self.tables.queries.query(&sql, &values)?;
        Ok(rows.iter().map(|row| self.evidence(row, average)).collect())
    }

    /// Returns the words in groups of about the same weight, with the weight of each group times its number of words.
    fn score_groups(&self) -> (Vec<f64>, Vec<TextQuery>) {
        let mut clauses: Vec<&Clause> = self.clauses.iter().collect();
        clauses.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        let size = clauses.len().div_ceil(GROUPS).max(1);
        let groups = clauses.chunks(size);
        let weighted = groups.filter_map(|group| {
            // The server divides the score of a query by the number of its words.
            let weight = group.iter().map(|clause| f64::from(clause.weight)).sum::<f64>();
            Some((weight, TextQuery::any(group.iter().map(|clause| TextQuery::word(&clause.text)))?))
        });
        let sequences = self.lookups.sequences.iter().zip(&self.sequences).map(|(sequence, query)| {
            let weight = self.lookups.words.get(sequence.slot).map_or(0.0, |lookup| lookup.weight);
            (f64::from(weight * sequence.quality), query.clone())
        });
        weighted.chain(sequences).unzip()
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of words")]
    fn evidence(&self, row: &tokio_postgres::Row, average: f32) -> Evidence {
        let number = |column: usize| row.try_get::<_, i64>(column).unwrap_or_default();
        let count = |column: usize| row.try_get::<_, i32>(column).unwrap_or_default().unsigned_abs();
        let title_words = count(3);
        let mut matches =
            vec![fetchwell_ranking::lexical::ranking::WordMatches::default(); self.lookups.words.len()];
        let mut in_sequences: HashMap<&[u8], Vec<u32>> = HashMap::new();
        let is_in_sequence = |word: &[u8]| {
            self.lookups
                .sequences
                .iter()
                .any(|sequence| sequence.words.iter().any(|each| each.as_bytes() == word))
        };
        let vector = row.try_get::<_, RawVector<'_>>(7);
        if let Ok(vector) = &vector {
            let _truncated = vector.for_each(|word, positions| {
                let (slots, is_in_sequence) = (self.slots.get(word), is_in_sequence(word));
                if slots.is_none() && !is_in_sequence {
                    return;
                }
                let positions: Vec<u32> = positions.collect();
                if is_in_sequence {
                    in_sequences.insert(word, positions.clone());
                }
                let slots = slots.into_iter().flatten();
                for Meaning { slot, quality, has_places } in slots {
                    let Some(matches) = matches.get_mut(*slot) else { continue };
                    matches.frequency += quality * positions.len().max(1) as f32;
                    matches.quality = matches.quality.max(*quality);
                    if !has_places {
                        continue;
                    }
                    if positions.first().is_some_and(|first| *first < title_words) {
                        matches.title_quality = matches.title_quality.max(*quality);
                    }
                    matches.positions.extend_from_slice(&positions);
                }
            });
        }
        for matches in &mut matches {
            matches.positions.sort_unstable();
            matches.positions.dedup();
        }
        for sequence in &self.lookups.sequences {
            let places = sequence
                .words
                .iter()
                .map(|word| in_sequences.get(word.as_bytes()).map_or(&[][..], Vec::as_slice));
            let places: Vec<(u32, &[u32])> = (0..).zip(places).collect();
            if let Some(matches) = matches.get_mut(sequence.slot) {
                matches.add_sequence(&places, sequence.quality, title_words);
            }
        }
        Evidence {
            row: number(0),
            stream: number(1).unsigned_abs(),
            time: Some(number(6)).filter(|time| *time > NO_TIME),
            likeness: Some(Likeness {
                connection: number(5).unsigned_abs(),
                similarity: number(4).cast_unsigned(),
            }),
            record: RankedRecord { matches, relative_length: count(2) as f32 / average, title_words },
        }
    }

    /// Returns the row of the stream that most candidates are of, if the search covers others.
    fn dominant_stream(&self, candidates: &[Evidence]) -> Option<i64> {
        if self.scope.has_one_stream() {
            return None;
        }
        let mut counts: HashMap<u64, usize> = HashMap::new();
        candidates.iter().for_each(|candidate| *counts.entry(candidate.stream).or_default() += 1);
        let (stream, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count > candidates.len() * 6 / 10).then(|| i64::try_from(stream).unwrap_or_default())
    }
}

/// Counts the first words that have at most [`MAX_READ`] records together. Returns at least `min`.
fn count_within_limit<'c>(clauses: impl Iterator<Item = &'c Clause>, min: usize) -> usize {
    let mut sum = 0;
    let is_read = |(at, clause): &(usize, &Clause)| {
        sum += clause.frequency;
        *at < min || sum <= MAX_READ
    };
    clauses.enumerate().take_while(is_read).count()
}

/// Candidates of several selections, each once.
#[derive(Debug, Default)]
struct Found {
    evidence: Vec<Evidence>,
    rows: HashSet<i64>,
}

impl Found {
    fn add(&mut self, candidates: Vec<Evidence>) {
        let new = candidates.into_iter().filter(|candidate| self.rows.insert(candidate.row));
        self.evidence.extend(new);
    }
}
