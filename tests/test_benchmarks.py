"""Benchmarks: what their ratios are divided by, and what is printed above them."""

import os
import threading

import numpy as np
import torch

from tests.benchmarks import peers, steady
from tests.benchmarks.__main__ import machine, names


def test_the_machine_line_names_instruction_sets_kernels_and_load(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    line = machine()
    assert f"torch {torch.backends.cpu.get_cpu_capability()}" in line
    assert "openblas" in line
    assert "load " in line
    assert line.rstrip().endswith("AVX2") or "ONEDNN_MAX_CPU_ISA=AVX2" in line


def test_every_benchmark_is_listed():
    assert {"peers", "sweep", "features"} <= set(names())


def test_the_limit_counts_layers_above_the_head_only(monkeypatch):
    """One input in one batch: the padded passes are every layer for every head; at least are those above it."""
    monkeypatch.setattr(peers, "LAYERS", 3)
    monkeypatch.setattr(peers, "HEADS", 2)
    monkeypatch.setattr(peers, "HIDDEN", 128)
    length, layer = 5, 12 * 128**2 + 2 * 5 * 128
    passes, least = peers.multiplications([length], "bert")
    assert passes == 6 * length * 3 * layer
    begun = length * (64 * 128 + 64 * 512 + 4 * 128**2)
    shared, after = 2 * length * layer, 2 * length * layer  # the unmodified model; layer 1 for two heads of layer 0
    read = 5 * (2 * 128**2 + 2 * 2 * length * 128) + 7 * 10 * 128**2
    assert least == shared + after + 4 * begun + read


def test_the_vocabulary_counts_at_every_position_of_a_peer_only():
    with_words, without = (np.array(peers.multiplications([7, 5], name)) for name in ("gpt2", "bert"))
    words = peers.WORDS * peers.HIDDEN
    assert np.allclose(with_words - without, [144 * 2 * 7 * words, 2 * 145 * words], rtol=1e-12)


def test_batches_of_a_peer_are_padded_to_their_longest(monkeypatch):
    monkeypatch.setattr(peers, "BATCH", 2)
    (ids, mask, last), (alone, _, _) = peers.padded([[4, 5], [6, 7, 8], [9]])
    assert ids.tolist() == [[4, 5, 0], [6, 7, 8]]
    assert mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert last == [1, 2]
    assert alone.tolist() == [[9]]


def test_growth_compares_the_ends_of_what_follows_the_first_runs():
    assert steady.growth([900, 100, 100, 100, 100, 150], 1) == 0.5
    assert steady.growth([50, 100, 100, 100, 100, 100], 1) == 0


def test_memory_files_and_threads_are_those_of_the_process(tmp_path):
    resident, files, threads = steady.usage(os.getpid())
    held, ended = bytearray(60_000_000), threading.Event()
    held[::4096] = b"1" * len(held[::4096])
    thread = threading.Thread(target=ended.wait)
    thread.start()
    with (tmp_path / "file").open("w"):
        after = steady.usage(os.getpid())
    ended.set()
    thread.join()
    assert after[0] - resident > 40
    assert (after[1] - files, after[2] - threads) == (1, 1)
