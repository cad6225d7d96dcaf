//! Tests of the fusion: order, pages, counts and faults of sources.

use super::*;

fn hit(connection: &str, record: usize, time: Option<&str>) -> Hit {
    let address = format!("{connection}/s:r{record:03}").parse::<Handle>().unwrap().address().clone();
    Hit { time: time.map(str::to_owned), ..Hit::new(HitId::Record(address), String::new()) }
}

fn page(hits: impl IntoIterator<Item = Hit>, next: Option<&str>) -> SearchPage {
    SearchPage {
        hits: hits.into_iter().collect(),
        next: next.map(|next| SearchPosition(next.to_owned())),
        ..SearchPage::default()
    }
}

fn two() -> Fusion {
    Fusion::start(Arc::default(), ["a", "b"].map(|name| name.parse().unwrap()))
}

fn names(page: &SearchPage) -> Vec<String> {
    page.hits.iter().map(|hit| name(&Names::default(), &"s".parse().unwrap(), hit)).collect()
}

#[test]
fn the_first_page_of_two_sources_shows_both_fairly() {
    for b_first in [false, true] {
        let mut fusion = two();
        let inputs = [("a", 0), ("b", 1)];
        let order = if b_first { [inputs[1], inputs[0]] } else { inputs };
        for (connection, input) in order {
            fusion.push_page(input, page((0..25).map(|n| hit(connection, n, None)), None));
        }
        fusion.take(25);
        let first = fusion.page();
        let expect: Vec<String> = (0..25).map(|n| format!("{}/s:r{:03}", ["a", "b"][n % 2], n / 2)).collect();
        assert_eq!(names(&first), expect);
        let mut rest = Fusion::resume(Arc::default(), &first.next.unwrap()).unwrap();
        rest.take(100);
        let rest = rest.page();
        assert_eq!((rest.hits.len(), rest.next), (25, None));
    }
}

#[test]
fn hit_of_two_sources_comes_first_and_once() {
    let mut fusion = two();
    fusion.push_page(0, page([hit("a", 0, None), hit("x", 7, None)], None));
    fusion.push_page(1, page([hit("b", 0, None), hit("b", 1, None), hit("x", 7, None)], None));
    fusion.take(10);
    assert_eq!(names(&fusion.page()), ["x/s:r007", "a/s:r000", "b/s:r000", "b/s:r001"]);
}

#[test]
fn ties_go_to_the_newer_hit() {
    let mut fusion = two();
    fusion.push_page(0, page([hit("a", 0, Some("2026-01-01T00:00:00Z")), hit("a", 1, None)], None));
    let hits = [hit("b", 0, Some("2026-01-01T02:00:00+01:00")), hit("b", 1, Some("2020"))];
    fusion.push_page(1, page(hits, None));
    fusion.take(10);
    assert_eq!(names(&fusion.page()), ["b/s:r000", "a/s:r000", "b/s:r001", "a/s:r001"]);
}

#[test]
fn repeated_hits_and_cursor_cycles_end_the_search() {
    let mut fusion = Fusion::start(Arc::default(), ["a".parse().unwrap()]);
    let (mut reads, mut all) = (0, Vec::new());
    loop {
        if let Some(pending) = fusion.pending_reads().pop() {
            reads += 1;
            assert!(reads < 50);
            fusion.push_page(
                pending.input,
                page((0..5).map(|n| hit("a", n, None)), Some(["x", "y"][reads % 2])),
            );
            fusion.take(3);
            continue;
        }
        let page = fusion.page();
        all.extend(names(&page));
        let Some(next) = page.next else { break };
        fusion = Fusion::resume(Arc::default(), &next).unwrap();
        fusion.take(3);
    }
    assert_eq!(all, (0..5).map(|n| format!("a/s:r{n:03}")).collect::<Vec<_>>());
}

#[test]
fn counts_of_sources_are_added() {
    let counted = |count| SearchPage { count, ..page([hit("a", 0, None)], None) };
    let bound = |value| Count { value, accuracy: Accuracy::LowerBound };
    for (one, other, expect) in [
        (Some(Count::exact(4)), Some(Count::exact(5)), Count::exact(9)),
        (Some(Count::exact(4)), Some(bound(200)), bound(204)),
        (Some(Count::exact(4)), None, Count::exact(5)),
    ] {
        let mut fusion = two();
        fusion.push_page(0, counted(one));
        fusion.push_page(1, counted(other));
        assert_eq!(fusion.page().count, Some(expect));
    }
    let mut fusion = two();
    fusion.push_page(0, counted(Some(Count::exact(4))));
    fusion.fail(1);
    fusion.take(1);
    let page = fusion.page();
    assert_eq!((page.count, page.next), (Some(bound(4)), None));
}

#[test]
fn input_of_empty_pages_does_not_block_others() {
    let mut fusion = two();
    fusion.push_page(0, page((0..3).map(|n| hit("a", n, None)), None));
    for read in 0..MAX_READS {
        fusion.take(10);
        assert!(!fusion.has(1));
        fusion.push_page(1, page([], Some(&format!("page {read}"))));
    }
    fusion.take(10);
    assert_eq!(names(&fusion.page()), ["a/s:r000", "a/s:r001", "a/s:r002"]);
}

#[test]
fn count_without_a_source_is_a_lower_bound() {
    let mut fusion = two();
    fusion.fail(0);
    let count = Some(Count::exact(1));
    fusion.push_page(1, SearchPage { count, ..page([hit("b", 0, None)], None) });
    fusion.take(5);
    assert_eq!(fusion.page().count, count.map(Count::at_least));
}

#[test]
fn failed_source_is_read_again() {
    let mut fusion = two();
    fusion.fail(1);
    fusion.push_page(0, page((0..5).map(|n| hit("a", n, None)), Some("more")));
    fusion.take(3);
    let next = fusion.page().next.unwrap();
    let fusion = Fusion::resume(Arc::default(), &next).unwrap();
    let [pending] = <[PendingRead; 1]>::try_from(fusion.pending_reads()).unwrap();
    assert_eq!((pending.source.as_str(), pending.position), ("b", None));
}

#[test]
fn invalid_position_is_refused() {
    for text in ["", "{}", "null", "[1]"] {
        let refused = Fusion::resume(Arc::default(), &SearchPosition(text.to_owned())).unwrap_err();
        assert!(matches!(refused, SourceError::InvalidCursor), "{text}");
    }
}

/// Returns a hit with the share of the query's words in it.
fn listed(connection: &str, record: usize, percent: u8) -> Hit {
    Hit { coverage: Some(Coverage::from(percent)), ..hit(connection, record, None) }
}

#[test]
fn loose_hits_of_one_list_do_not_push_down_an_exact_hit_of_another() {
    // Each row has the coverage of ten hits of `a` and of the hits of `b` before its exact one, the rank of that one, and how
    // many hits come before it: with their words, and by rank alone.
    for (loose, rank, by_words, by_rank) in [
        (0, 1, 0, 1),
        (25, 1, 0, 1),
        (25, 5, 0, 9),
        (25, 10, 4, 19),
        (75, 1, 0, 1),
        (75, 5, 4, 9),
        // As good as exact: the order is that of the ranks.
        (100, 1, 1, 1),
        (100, 5, 9, 9),
    ] {
        for (is_covered, expect) in [(true, by_words), (false, by_rank)] {
            for b_first in [false, true] {
                let of_b = (1..=rank).map(|at| listed("b", at, if at == rank { 100 } else { loose }));
                let mut pages =
                    [(0, (0..10).map(|at| listed("a", at, loose)).collect::<Vec<_>>()), (1, of_b.collect())];
                if b_first {
                    pages.reverse();
                }
                let mut fusion = two();
                for (input, mut hits) in pages {
                    hits.iter_mut().filter(|_| !is_covered).for_each(|hit| hit.coverage = None);
                    fusion.push_page(input, page(hits, None));
                }
                fusion.take(30);
                let names = names(&fusion.page());
                let place = names.iter().position(|name| *name == format!("b/s:r{rank:03}")).unwrap();
                assert_eq!(place, expect, "{loose} % at {rank}, {is_covered}, {b_first}: {names:?}");
            }
        }
    }
}

#[test]
fn hits_of_stores_keep_their_ranks_beside_lists() {
    let mut fusion = two();
    fusion.push_page(0, page((0..3).map(|n| hit("a", n, None)), None));
    fusion.push_page(1, page([listed("b", 0, 100), listed("b", 1, 0), listed("b", 2, 100)], None));
    fusion.take(10);
    let expect = ["a/s:r000", "b/s:r000", "a/s:r001", "a/s:r002", "b/s:r002", "b/s:r001"];
    assert_eq!(names(&fusion.page()), expect);
    // A list without a hit that has most of the words found by other means, such as meaning.
    let mut fusion = two();
    fusion.push_page(0, page((0..2).map(|n| hit("a", n, None)), None));
    fusion.push_page(1, page((0..2).map(|n| listed("b", n, 20)), None));
    fusion.take(10);
    assert_eq!(names(&fusion.page()), ["a/s:r000", "b/s:r000", "a/s:r001", "b/s:r001"]);
}

#[test]
fn walk_over_lists_loses_and_repeats_nothing() {
    // Hits without an id too, of which each is a hit of its own.
    let of = |connection: &str, at: usize| {
        let listed = listed(connection, at, [0, 100, 40, 75, 10][at % 5]);
        if at % 7 == 3 { Hit { id: HitId::Nameless, ..listed } } else { listed }
    };
    for limit in [1, 2, 3, 7, 50] {
        let (mut fusion, mut hits, mut pages) = (two(), Vec::new(), 0);
        loop {
            fusion.take(limit);
            while !fusion.has(limit) {
                let pending = fusion.pending_reads();
                if pending.is_empty() {
                    break;
                }
                for PendingRead { input, position, .. } in pending {
                    let start = position.map_or(0, |position| position.0.parse().unwrap());
                    let next = (start + 4 < 20).then(|| (start + 4).to_string());
                    let of_page = (start..start + 4).map(|at| of(["a", "b"][input], at));
                    fusion.push_page(input, page(of_page, next.as_deref()));
                }
                fusion.take(limit);
            }
            let page = fusion.page();
            hits.extend(page.hits.iter().map(|hit| (hit.id != HitId::Nameless).then(|| hit.id.clone())));
            pages += 1;
            assert!(pages <= 41, "{limit}");
            let Some(next) = page.next else { break };
            fusion = Fusion::resume(Arc::default(), &next).unwrap();
        }
        let nameless = hits.iter().filter(|hit| hit.is_none()).count();
        let named: HashSet<String> = hits.iter().flatten().map(|id| format!("{id:?}")).collect();
        assert_eq!((hits.len(), nameless, named.len()), (40, 6, 34), "{limit}");
    }
}

#[test]
fn coverage_is_stored_with_a_position() {
    let mut fusion = two();
    fusion.push_page(0, page((0..5).map(|n| listed("a", n, 20)), None));
    fusion.push_page(1, page((0..5).map(|n| listed("b", n, 100)), None));
    fusion.take(2);
    let first = fusion.page();
    let mut rest = Fusion::resume(Arc::default(), &first.next.clone().unwrap()).unwrap();
    rest.take(10);
    let all = [names(&first), names(&rest.page())].concat();
    let expect = (0..5).map(|n| format!("b/s:r00{n}")).chain((0..5).map(|n| format!("a/s:r00{n}")));
    assert_eq!(all, expect.collect::<Vec<_>>());
}
