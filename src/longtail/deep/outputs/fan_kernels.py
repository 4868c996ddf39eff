"""The Triton kernels behind ``longtail.deep.outputs.fan_in_gpu``: importing this needs Triton.

Vectors come turned, (h, b): the inputs that labels gather are runs of the batch.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
import triton
import triton.language as tl

__all__ = ["gradients", "scores"]


@triton.jit
def scores(
    x,
    values,
    index,
    out,
    b,
    width,
    stride,
    F: tl.constexpr,
    LABELS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Set ``out[j, r] = sum_s values[s, j] x[index[s, j], r]`` for a tile of labels and rows."""
    label = tl.program_id(0) * LABELS + tl.arange(0, LABELS)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    there, inside = label < width, row < b
    total = tl.zeros((LABELS, ROWS), tl.float32)
    place = label.to(tl.int64)
    for _ in range(F):
        at = tl.load(index + place, mask=there, other=0).to(tl.int32)
        at = tl.where(at < 0, at + 65536, at)  # 16 bits without a sign
        weight = tl.load(values + place, mask=there, other=0.0)
        total += weight[:, None] * tl.load(
            x + at[:, None] * b + row[None, :], mask=there[:, None] & inside[None, :], other=0.0
        )
        place += stride
    tl.store(
        out + label.to(tl.int64)[:, None] * b + row[None, :],
        total,
        mask=there[:, None] & inside[None, :],
    )


@triton.jit
def gradients(
    x,
    slopes,
    values,
    index,
    back,
    out,
    b,
    width,
    stride,
    F: tl.constexpr,
    LABELS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Compute ``out[s, j] = sum_r slopes[j, r] x[index, r]`` and ``back[index, r] += values
    slopes[j, r]`` for a tile of labels; rows whose gradients are all zero are passed over.
    """
    label = tl.program_id(0) * LABELS + tl.arange(0, LABELS)
    there = label < width
    for s in range(F):
        tl.store(out + s * width + label, tl.zeros((LABELS,), tl.float32), mask=there)
    for begin in range(0, b, ROWS):
        row = begin + tl.arange(0, ROWS)
        inside = there[:, None] & (row < b)[None, :]
        slope = tl.load(
            slopes + label.to(tl.int64)[:, None] * b + row[None, :], mask=inside, other=0.0
        )
        if tl.max(tl.abs(slope)) > 0:
            live = inside & (slope != 0)
            place = label.to(tl.int64)
            for s in range(F):
                at = tl.load(index + place, mask=there, other=0).to(tl.int32)
                at = tl.where(at < 0, at + 65536, at)
                weight = tl.load(values + place, mask=there, other=0.0)
                there_x = at[:, None] * b + row[None, :]
                part = tl.sum(slope * tl.load(x + there_x, mask=live, other=0.0), axis=1)
                tl.atomic_add(back + there_x, weight[:, None] * slope, mask=live, sem="relaxed")
                known = tl.load(out + s * width + label, mask=there, other=0.0)
                tl.store(out + s * width + label, known + part, mask=there)
                place += stride
