#!/usr/bin/env python3
"""Compares codes of vectors and a graph index, on vectors like those of benches/vectors.rs.

    benches/vectors.py CHUNKS DIMENSIONS

Prints rows of a table: 8-bit codes with rescoring, binary codes with rescoring (Hamming distance, plain or centred at the
mean), and usearch, each with the best and the median time of 30 queries and the share of the ten nearest that were found.
Needs `pip install numpy usearch`.
"""

import sys
import time

import numpy as np
from usearch.index import Index

DIRECTIONS = 64
QUERIES = 30


class Random:
    """The numbers of benches/vectors.rs (SplitMix64)."""

    def __init__(self):
        self.state = 7

    def numbers(self, count):
        step = 0x9E3779B97F4A7C15
        mixed = np.uint64(self.state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(step)
        self.state = (self.state + count * step) % (1 << 64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
        return (mixed >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24) - np.float32(0.5)


def make(chunks, dimensions):
    """Returns vectors around some directions, and queries."""
    random = Random()
    directions = random.numbers(DIRECTIONS * dimensions).reshape(DIRECTIONS, dimensions)

    def near(places):
        noise = random.numbers(len(places) * dimensions).reshape(len(places), dimensions)
        vectors = directions[places % DIRECTIONS] + np.float32(1.5) * noise
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    blocks = [near(np.arange(start, min(chunks, start + 5_000))) for start in range(0, chunks, 5_000)]
    return np.concatenate(blocks), near(np.arange(QUERIES) * 7)


def measure(name, search, queries, exact, more=""):
    """Prints a row for a search."""
    times, found = [], 0
    for query, nearest in zip(queries, exact, strict=True):
        start = time.perf_counter()
        rows = search(query)
        times.append((time.perf_counter() - start) * 1_000)
        found += len(set(rows[:10]) & set(nearest))
    recall = found / (10 * len(queries))
    print(f"| {name} | {min(times):.1f} | {np.median(times):.1f} | {recall:.3f} | {more} |", flush=True)


def main():
    chunks, dimensions = int(sys.argv[1]), int(sys.argv[2])
    vectors, queries = make(chunks, dimensions)
    exact = [np.argsort(-(vectors @ query))[:10] for query in queries]

    def rescored(rows, query):
        return rows[np.argsort(-(vectors[rows] @ query))[:10]]

    scales = np.abs(vectors).max(1) / 127
    codes = np.round(vectors / scales[:, None]).astype(np.int8)
    near = lambda query: np.argsort(-((codes.astype(np.float32) @ query) * scales))[:100]
    measure("8 bits", near, queries, exact, f"{dimensions} bytes a chunk; times of numpy")
    measure("8 bits, 100 rescored", lambda query: rescored(near(query), query), queries, exact)

    for name, center in (("binary", 0), ("binary, centred", vectors.mean(0))):
        bits = lambda numbers, center=center: np.packbits(numbers > center, axis=-1).view(np.uint64)
        stored = bits(vectors)
        for count in (100, 400, 1_000, 2_000):

            def search(query, count=count):
                distances = np.bitwise_count(stored ^ bits(query)).sum(1, dtype=np.uint16)
                return rescored(np.argpartition(distances, count)[:count], query)

            measure(f"{name}, {count} rescored", search, queries, exact, f"{dimensions // 8} bytes a chunk")

    for kind in ("f32", "i8"):
        index = Index(ndim=dimensions, metric="cos", dtype=kind)
        start = time.perf_counter()
        index.add(np.arange(chunks), vectors, threads=2)
        built = f"built in {time.perf_counter() - start:.0f} s, {index.memory_usage // chunks} bytes a chunk"
        for expansion in (64, 200, 800):
            index.expansion_search = expansion
            search = lambda query: index.search(query, 50).keys
            measure(f"usearch {kind}, expansion {expansion}", search, queries, exact, built)
        for share in (5, 50, 1_000):
            covered = np.arange(0, chunks, share)
            nearest = [covered[np.argsort(-(vectors[covered] @ query))[:10]] for query in queries]
            index.expansion_search = 1_000

            def filtered(query, share=share):
                keys = index.search(query, 1_000).keys
                return keys[keys % share == 0]

            measure(f"usearch {kind}, 1,000 filtered to {100 / share:g} %", filtered, queries, nearest)


if __name__ == "__main__":
    main()
