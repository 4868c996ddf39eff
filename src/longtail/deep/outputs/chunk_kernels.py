"""The Triton kernels behind ``longtail.deep.outputs.chunk_step``: importing this needs Triton.

Three products per chunk of labels, tile by tile, on arrays that begin at the chunk. Descriptors let
the hardware copy tiles and fill what lies outside with zeros::

    score_gradients   G (b, w)  = f(X W^T + bias)
    input_gradient    P (s, b, e) += G W, over a share s of the labels
    update            W (w, e) <- round(W - rate (G^T X + decay W))

The gradient of the weights exists in the registers of ``update`` alone.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
import triton
import triton.language as tl

__all__ = ["entry_scores", "input_gradient", "put_entries", "score_gradients", "update", "widened"]


@triton.jit
def _number(raw, BITS: tl.constexpr):
    """Return raw weights as float32 numbers."""
    if BITS == 16:
        out = (raw.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        # Sign, exponent and mantissa at their places in a float, whose exponent is 120 less.
        bits = ((raw.to(tl.int32) << 24) >> 4) & -0x78100000
        out = bits.to(tl.float32, bitcast=True) * 1.329227995784916e36  # 2^120
    return out


@triton.jit
def _stochastic(value, place, seed, BITS: tl.constexpr):
    """Round by random bits of the place, as ``rounding.random_bits`` and ``stochastic`` do."""
    x = place.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    if BITS == 16:
        bits = value.to(tl.int32, bitcast=True) + (x >> 16).to(tl.int32)
        out = (bits >> 16).to(tl.int16)
    else:
        bits = (value * 7.52316384526264e-37).to(tl.int32, bitcast=True)  # times 2^-120
        size = bits & 0x7FFFFFFF
        code = tl.minimum((size + (x >> 12).to(tl.int32)) >> 20, 0x7E)
        code = tl.where(size > 0x7F800000, 0x7F, code)  # not a number
        out = (((bits >> 24) & 0x80) | code).to(tl.uint8)
    return out


@triton.jit
def _nearest(value, BITS: tl.constexpr):
    if BITS == 16:
        out = value.to(tl.bfloat16).to(tl.int16, bitcast=True)
    else:
        inside = tl.minimum(tl.maximum(value, -448.0), 448.0)
        out = inside.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    return out


@triton.jit
def _compensated(weights, change, code, owed_at, owing, BITS: tl.constexpr):
    """Round to nearest where compensations are kept, and keep what that loses."""
    lost = tl.load(owed_at, mask=owing, other=0)
    if BITS == 16:
        owed = change + _number(lost, 16)
    else:  # E5M2 is float16 less its last 8 bits
        owed = change + (lost.to(tl.int16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
    near = _nearest(weights + owed, BITS)
    left = owed - (_number(near, BITS) - weights)
    if BITS == 16:
        tl.store(owed_at, _nearest(left, 16), mask=owing)
    else:
        left = tl.minimum(tl.maximum(left, -57344.0), 57344.0)
        tl.store(owed_at, left.to(tl.float8e5).to(tl.uint8, bitcast=True), mask=owing)
    return tl.where(owing, near, code)


@triton.jit
def _slope(z, KIND: tl.constexpr):
    """Return the derivative of the loss of an absent label."""
    if KIND == "logistic":  # a root and a square are quicker than a division
        root = tl.rsqrt(1 + tl.exp2(-1.4426950408889634 * z))
        out = root * root
    elif KIND == "squared_hinge":
        out = 2 * tl.maximum(1 + z, 0.0)
    elif KIND == "hinge":
        out = tl.where(z > -1, 1.0, 0.0)
    else:
        out = 2 * z
    return out


@triton.jit
def _gradients(
    product, bias, per_row, row, column, b, width, scale, KIND: tl.constexpr, PER_ROW: tl.constexpr
):
    inside = column < width
    z = product + tl.load(bias + column, mask=inside, other=0.0)[None, :]
    if KIND == "softmax":
        value = tl.exp(z - tl.load(per_row + row, mask=row < b, other=0.0)[:, None])
    else:
        value = _slope(z, KIND)
        if PER_ROW:
            value *= tl.load(per_row + row, mask=row < b, other=0.0)[:, None]
    return (scale * value).to(tl.bfloat16)


@triton.jit
def score_gradients(
    x,
    w,
    out,
    bias,
    per_row,
    b,
    width,
    e,
    scale,
    KIND: tl.constexpr,
    PER_ROW: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    SPLIT: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    """Compute scores and their gradients. Tiles of the rows of a batch lie next to each other, so
    that they share the weights.
    """
    row_tiles = tl.cdiv(b, BM)
    for tile in tl.range(
        tl.program_id(0), row_tiles * tl.cdiv(width, BN), PROGRAMS, flatten=FLATTEN
    ):
        i = (tile % row_tiles) * BM
        j = (tile // row_tiles) * BN
        product = tl.zeros((BM, BN), tl.float32)
        for k in range(0, e, BK):
            product = tl.dot(x.load([i, k]), w.load([j, k]).T, product)
        row = i + tl.arange(0, BM)
        if SPLIT:  # two halves need half the memory on the chip, which is left to the pipeline
            halves = tl.permute(tl.reshape(product, (BM, 2, BN // 2)), (0, 2, 1))
            first, second = tl.split(halves)
            column = j + tl.arange(0, BN // 2)
            out.store(
                [i, j],
                _gradients(first, bias, per_row, row, column, b, width, scale, KIND, PER_ROW),
            )
            column += BN // 2
            out.store(
                [i, j + BN // 2],
                _gradients(second, bias, per_row, row, column, b, width, scale, KIND, PER_ROW),
            )
        else:
            column = j + tl.arange(0, BN)
            out.store(
                [i, j],
                _gradients(product, bias, per_row, row, column, b, width, scale, KIND, PER_ROW),
            )


@triton.jit
def widened(raw, out, count, BLOCK: tl.constexpr):
    """Return E4M3 weights as bfloat16."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    number = _number(tl.load(raw + i, mask=i < count, other=0), 8)
    tl.store(out + i, number.to(tl.bfloat16), mask=i < count)


@triton.jit
def input_gradient(
    g,
    w,
    out,
    b,
    width,
    e,
    BITS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SHARES: tl.constexpr,
):
    """Compute the gradient of the inputs: one program per tile of the result and share of the
    labels.
    """
    columns = tl.cdiv(e, BN)
    tile, share = tl.program_id(0) // SHARES, tl.program_id(0) % SHARES
    i, j = (tile // columns) * BM, (tile % columns) * BN
    labels = tl.cdiv(tl.cdiv(width, BK), SHARES) * BK
    begin = share * labels
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(begin, tl.minimum(begin + labels, width), BK):
        weights = w.load([k, j])
        if BITS == 8:
            weights = weights.to(tl.bfloat16)
        total = tl.dot(g.load([i, k]), weights, total)
    row, column = i + tl.arange(0, BM), j + tl.arange(0, BN)
    place = out + share.to(tl.int64) * b * e + row[:, None] * e + column[None, :]
    inside = (row < b)[:, None] & (column < e)[None, :]
    tl.store(place, total + tl.load(place, mask=inside, other=0.0), mask=inside)


@triton.jit
def _moved(
    change,
    raw,
    i,
    j,
    momentum,
    slots,
    compensation,
    width,
    e,
    seed,
    rate,
    inertia,
    decay,
    BITS: tl.constexpr,
    MOMENTUM: tl.constexpr,
    COMPENSATED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Change the tile of weights at (i, j) by its gradient."""
    weights = _number(raw.load([i, j]), BITS)
    label, column = i + tl.arange(0, BM), j + tl.arange(0, BN)
    place = label[:, None] * e + column[None, :]
    change += decay * weights
    if MOMENTUM:
        inside = (label < width)[:, None] & (column < e)[None, :]
        change += inertia * tl.load(momentum + place, mask=inside, other=0.0)
        tl.store(momentum + place, change, mask=inside)
    change *= -rate
    code = _stochastic(weights + change, place, seed, BITS)
    if COMPENSATED:
        slot = tl.load(slots + label, mask=label < width, other=-1).to(tl.int64)
        owing = (slot >= 0)[:, None] & (column < e)[None, :]
        owed_at = compensation + slot[:, None] * e + column[None, :]
        code = _compensated(weights, change, code, owed_at, owing, BITS)
    raw.store([i, j], code)


@triton.jit(do_not_specialize=["seed"])
def update(
    g,
    x,
    raw,
    momentum,
    slots,
    compensation,
    b,
    width,
    e,
    seed,
    rate,
    inertia,
    decay,
    BITS: tl.constexpr,
    MOMENTUM: tl.constexpr,
    COMPENSATED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    SPLIT: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    """Update the weights. Tiles of the same labels lie next to each other, so that they share the
    gradients.
    """
    columns = tl.cdiv(e, BN)
    for tile in tl.range(tl.program_id(0), columns * tl.cdiv(width, BM), PROGRAMS, flatten=FLATTEN):
        i, j = (tile // columns) * BM, (tile % columns) * BN
        change = tl.zeros((BM, BN), tl.float32)
        for k in range(0, b, BK):
            change = tl.dot(g.load([k, i]).T, x.load([k, j]), change)
        if SPLIT:
            halves = tl.permute(tl.reshape(change, (BM, 2, BN // 2)), (0, 2, 1))
            first, second = tl.split(halves)
            _moved(
                first,
                raw,
                i,
                j,
                momentum,
                slots,
                compensation,
                width,
                e,
                seed,
                rate,
                inertia,
                decay,
                BITS,
                MOMENTUM,
                COMPENSATED,
                BM,
                BN // 2,
            )
            _moved(
                second,
                raw,
                i,
                j + BN // 2,
                momentum,
                slots,
                compensation,
                width,
                e,
                seed,
                rate,
                inertia,
                decay,
                BITS,
                MOMENTUM,
                COMPENSATED,
                BM,
                BN // 2,
            )
        else:
            _moved(
                change,
                raw,
                i,
                j,
                momentum,
                slots,
                compensation,
                width,
                e,
                seed,
                rate,
                inertia,
                decay,
                BITS,
                MOMENTUM,
                COMPENSATED,
                BM,
                BN,
            )


@triton.jit(do_not_specialize=["count"])
def entry_scores(
    x, raw, bias, rows, labels, out, count, e, BITS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute ``<x_row, w_label> + bias`` of observed labels, a program each; ``x`` is raw too."""
    i = tl.program_id(0)
    row, label = tl.load(rows + i), tl.load(labels + i)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, e, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < e
        weight = tl.load(raw + label * e + column, mask=inside, other=0)
        value = tl.load(x + row * e + column, mask=inside, other=0)
        total += _number(value, BITS) * _number(weight, BITS)
    tl.store(out + i, tl.sum(total) + tl.load(bias + label))


@triton.jit
def put_entries(
    out,
    stride,
    rows,
    labels,
    values,
    cuts,
    chunk,
    begin,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradients of the observed labels of a chunk, whose first label is ``begin``."""
    first, last = tl.load(cuts + chunk), tl.load(cuts + chunk + 1)
    for start in range(first + tl.program_id(0) * BLOCK, last, PROGRAMS * BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < last
        row = tl.load(rows + i, mask=inside, other=0)
        column = tl.load(labels + i, mask=inside, other=0) - begin
        value = tl.load(values + i, mask=inside, other=0.0)
        tl.store(out + row * stride + column, value.to(tl.bfloat16), mask=inside)
