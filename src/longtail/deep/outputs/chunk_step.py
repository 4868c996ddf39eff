"""One chunk of a full layer on a GPU: gradients by scores, gradient of the vectors, update.

What bounds a step is three products of (rows x labels x width); everything else has to hide behind
them. So the chunk is wide enough that starting a kernel costs nothing against it, the gradients by
scores are written once and read twice, in bfloat16, and loss, targets, rounding and update are the
ends of the kernels that multiply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from longtail.deep.objectives.objective import Pointwise
from longtail.deep.outputs.stored import Sgd, Stored
from longtail.deep.triton_modules import kernels

__all__ = ["ChunkStep", "Tiles", "chunk_step"]

GRADIENTS = 1 << 26  # of a chunk: 128 MiB
WIDEST = 1 << 19
_ALIGNED = 128  # columns of a chunk, so that tiles begin where the hardware can copy
_GENERATIONS = (9, 10)  # Hopper, Blackwell: 227 KiB on the chip


@dataclass(frozen=True)
class Tiles:
    """How a product is cut up: a tile of ``rows`` x ``columns``, ``depth`` terms at a time, with
    ``warps`` and ``stages`` of the pipeline; no rows: as the library multiplies. ``turns``:
    programs per processor that take tiles in turn, or 0 for one program per tile; ``split``:
    whether the end of a tile is done in halves.
    """

    rows: int
    columns: int
    depth: int
    warps: int = 8
    stages: int = 3
    turns: int = 0
    split: bool = False

    def options(self) -> dict[str, Any]:
        return {
            "BM": self.rows,
            "BN": self.columns,
            "BK": self.depth,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }


# By bits of a weight. Measured on an H200 (benchmarks/deep/output_layers.py --part tune).
SCORES = {
    16: Tiles(128, 128, 64, 4, 3, turns=2, split=True),
    8: Tiles(128, 128, 128, 4, 3, turns=2, split=True),
}
INPUTS = {16: Tiles(0, 0, 0), 8: Tiles(0, 0, 0)}
UPDATE = {16: Tiles(128, 256, 64, 8, 3), 8: Tiles(128, 128, 64, 4, 3, split=True)}


def chunk_step(weights: Stored, width: int) -> Any:
    """Return the class of kernels for a layer, or None where there are none: on a CPU or a GPU
    without enough memory on the chip, without Triton, for float32, or for vectors whose rows do not
    begin at multiples of 16 bytes.
    """
    if weights.precision == "float32" or width % 16 or not weights.raw.is_cuda:
        return None
    large = torch.cuda.get_device_capability(weights.raw.device)[0] in _GENERATIONS
    return ChunkStep if large and _kernels() is not None else None


class ChunkStep:
    """The kernels of one step on a batch of vectors ``x`` (b, e), raw of the weights' precision."""

    def __init__(
        self,
        weights: Stored,
        bias: torch.Tensor,
        x: torch.Tensor,
        goal: Pointwise,
        sgd: Sgd,
        tiles: tuple[Tiles, Tiles, Tiles] | None = None,
    ) -> None:
        self.weights, self.bias, self.goal, self.sgd = weights, bias, goal, sgd
        self.bits = 16 if weights.precision == "bfloat16" else 8
        kinds = {16: torch.bfloat16, 8: torch.float8_e4m3fn}
        self.kind = kinds[self.bits]
        self.x_raw = x.contiguous()
        self.x = self.x_raw.view(self.kind)
        self.x_wide = self.x if self.bits == 16 else self.x.to(torch.bfloat16)
        self.rows, self.e = x.shape
        device = x.device
        self.tiles = tiles or (SCORES[self.bits], INPUTS[self.bits], UPDATE[self.bits])
        self.processors = _processors(device)
        self.edges = chunk_edges(self.rows, len(weights.raw))
        self.stride = -(-min(self.edges[1], len(weights.raw)) // _ALIGNED) * _ALIGNED
        self.gradients = torch.empty(
            self.rows * self.stride, dtype=torch.bfloat16, device=device
        ).view(self.rows, self.stride)
        cut = self.tiles[1]
        self.shares = 1
        if cut.rows:
            tiles_of_result = -(-self.rows // cut.rows) * -(-self.e // cut.columns)
            self.shares = max(1, self.processors // tiles_of_result)
        self.totals = torch.zeros(self.shares, self.rows, self.e, device=device)
        self.observed, self.cuts = self._observed()

    def _observed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of observed labels, and where those of each chunk begin."""
        rows, labels = self.goal.rows, self.goal.columns
        z = torch.empty(len(rows), device=rows.device)
        if len(rows):
            _kernels().entry_scores[(len(rows),)](
                self.x_raw if self.bits == 8 else self.x_raw.view(torch.int16),
                self.weights.raw,
                self.bias,
                rows,
                labels,
                z,
                len(rows),
                self.e,
                BITS=self.bits,
                BLOCK=min(1024, 1 << (self.e - 1).bit_length()),
                num_warps=1,
            )
        edges = torch.tensor(self.edges, device=rows.device)
        return self.goal.at(z), torch.searchsorted(labels, edges)

    def __call__(self, seeds: list[int]) -> torch.Tensor:
        """Learn all chunks, each with its seed; return the gradient of the vectors."""
        for chunk, seed in enumerate(seeds):
            begin, end = self.edges[chunk : chunk + 2]
            g = self.score_gradients(begin, end)
            self.put_entries(g, chunk, begin)
            self.input_gradient(g, begin, end)
            self.update(g, begin, end, seed)
        return self.totals.sum(0)

    def _programs(self, cut: Tiles, tiles: int) -> int:
        return min(tiles, cut.turns * self.processors) if cut.turns else tiles

    def score_gradients(self, begin: int, end: int) -> torch.Tensor:
        """Return the gradients by the scores of a chunk, as if no label was observed."""
        cut, width = self.tiles[0], end - begin
        goal, g = self.goal, self.gradients[:, :width]
        programs = self._programs(cut, -(-self.rows // cut.rows) * -(-width // cut.columns))
        out_columns = cut.columns // 2 if cut.split else cut.columns
        _kernels().score_gradients[(programs,)](
            _tiled(self.x, cut.rows, cut.depth),
            _tiled(self.weights.raw[begin:end].view(self.kind), cut.columns, cut.depth),
            _tiled(g, cut.rows, out_columns),
            self.bias[begin:end],
            self.bias if goal.per_row is None else goal.per_row,
            self.rows,
            width,
            self.e,
            goal.scale,
            KIND=goal.kind,
            PER_ROW=goal.per_row is not None,
            PROGRAMS=programs,
            SPLIT=cut.split,
            FLATTEN=cut.turns > 0,
            **cut.options(),
        )
        return g

    def put_entries(self, g: torch.Tensor, chunk: int, begin: int) -> None:
        """Write the gradients of the observed labels of a chunk."""
        if len(self.observed):
            programs = 64
            _kernels().put_entries[(programs,)](
                g,
                self.stride,
                self.goal.rows,
                self.goal.columns,
                self.observed,
                self.cuts,
                chunk,
                begin,
                PROGRAMS=programs,
                BLOCK=128,
                num_warps=4,
            )

    def input_gradient(self, g: torch.Tensor, begin: int, end: int) -> None:
        """Add what a chunk contributes to the gradient of the vectors."""
        cut, weights = self.tiles[1], self.weights.raw[begin:end].view(self.kind)
        if not cut.rows:
            low = weights if self.bits == 16 else self._widened(begin, end)
            even = len(low) // 8 * 8  # a product over a number of labels that 8 divides is quicker
            for some in (slice(0, even), slice(even, len(low))):
                if some.start < some.stop:
                    part = torch.mm(g[:, some], low[some], out_dtype=torch.float32)
                    self.totals[0] += part
            return
        count = -(-self.rows // cut.rows) * -(-self.e // cut.columns)
        _kernels().input_gradient[(count * self.shares,)](
            _tiled(g, cut.rows, cut.depth),
            _tiled(weights, cut.depth, cut.columns),
            self.totals,
            self.rows,
            end - begin,
            self.e,
            BITS=self.bits,
            SHARES=self.shares,
            **cut.options(),
        )

    def _widened(self, begin: int, end: int) -> torch.Tensor:
        """Return E4M3 weights of a chunk as bfloat16."""
        raw, block = self.weights.raw[begin:end], 4096
        out = torch.empty(raw.shape, dtype=torch.bfloat16, device=raw.device)
        _kernels().widened[(-(-raw.numel() // block),)](raw, out, raw.numel(), BLOCK=block)
        return out

    def update(self, g: torch.Tensor, begin: int, end: int, seed: int) -> None:
        """Change the weights of a chunk."""
        cut, width, own = self.tiles[2], end - begin, self.weights
        programs = self._programs(cut, -(-width // cut.rows) * -(-self.e // cut.columns))
        raw = own.raw[begin:end]
        _kernels().update[(programs,)](
            _tiled(g, cut.depth, cut.rows),
            _tiled(self.x_wide, cut.depth, cut.columns),
            _tiled(raw, cut.rows, cut.columns // 2 if cut.split else cut.columns),
            raw if own.momentum is None else own.momentum[begin:end],
            raw if own.slots is None else own.slots[begin:end],
            raw if own.compensation is None else own.compensation,
            self.rows,
            width,
            self.e,
            seed - (1 << 32) if seed >= 1 << 31 else seed,
            self.sgd.rate,
            self.sgd.momentum,
            self.sgd.weight_decay,
            BITS=self.bits,
            MOMENTUM=own.momentum is not None,
            COMPENSATED=own.compensation is not None,
            PROGRAMS=programs,
            SPLIT=cut.split,
            FLATTEN=cut.turns > 0,
            **cut.options(),
        )


def chunk_edges(rows: int, labels: int) -> list[int]:
    """Return where the chunks of labels begin and end, for a batch of so many rows."""
    width = min(WIDEST, max(_ALIGNED, GRADIENTS // max(1, rows) // _ALIGNED * _ALIGNED))
    return [*range(0, labels, width), labels]


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 4  # kernels that are interpreted, in tests
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _tiled(matrix: torch.Tensor, rows: int, columns: int) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, columns])


def _kernels() -> Any:
    return kernels("outputs.chunk_kernels")
