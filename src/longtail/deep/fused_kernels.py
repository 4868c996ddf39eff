"""The Triton kernels behind ``longtail.deep.fused``: importing this needs Triton."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
import triton
import triton.language as tl

__all__ = ["adam", "logit_gradient", "sum_rows"]


# Batches are slices of longer arrays: where they begin, and how long they are, says nothing of the
# next, and a kernel is not compiled anew for each case.
@triton.jit(do_not_specialize_on_alignment=["rows"])
def adam(
    weights,
    first,
    second,
    gradient,
    rows,
    mask,
    width,
    rate,
    decay,
    one_less_beta1,
    beta2,
    one_less_beta2,
    epsilon,
    HAS_ROWS: tl.constexpr,
    HAS_MASK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take a step of Adam: one program for each row of the gradient and block of its columns."""
    i = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    row = tl.load(rows + i) if HAS_ROWS else i
    place = row * width + column
    g = tl.load(gradient + i * width + column, mask=inside, other=0.0).to(tl.float32)
    if HAS_MASK:
        g = tl.where(tl.load(mask + place, mask=inside, other=0).to(tl.int1), g, 0.0)
    m = tl.load(first + place, mask=inside, other=0.0)
    v = tl.load(second + place, mask=inside, other=0.0)
    w = tl.load(weights + place, mask=inside, other=0.0)
    m += one_less_beta1 * (g - m)
    v = beta2 * v + one_less_beta2 * g * g
    w = decay * w - rate * m / (tl.sqrt(v) + epsilon)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(weights + place, w, mask=inside)


@triton.jit(
    do_not_specialize=["n_entries", "n_bags"],
    do_not_specialize_on_alignment=["index", "offsets", "values"],
)
def sum_rows(matrix, index, offsets, values, out, n_entries, n_bags, width, BLOCK: tl.constexpr):
    """Sum weighted rows: one program for each bag and block of columns."""
    i = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    begin = tl.load(offsets + i)
    end = tl.load(offsets + i + 1, mask=i + 1 < n_bags, other=n_entries)
    total = tl.zeros((BLOCK,), tl.float32)
    for entry in range(begin, end):
        row = tl.load(index + entry)
        total += tl.load(values + entry) * tl.load(matrix + row * width + column, mask=inside)
    tl.store(out + i * width + column, total, mask=inside)


@triton.jit
def logit_gradient(
    products, bias, normaliser, out, width, scale, SOFTMAX: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute gradients of logits: one program for each row and block of columns."""
    i = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    z = tl.load(products + i * width + column, mask=inside, other=0.0).to(tl.float32)
    z += tl.load(bias + column, mask=inside, other=0.0)
    if SOFTMAX:  # noqa: SIM108 (a branch of the compiler, not of the kernel)
        value = tl.exp(z - tl.load(normaliser + i))
    else:
        value = 1 / (1 + tl.exp(-z))
    tl.store(out + i * width + column, scale * value, mask=inside)
