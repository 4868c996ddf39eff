"""The encoder of InceptionXML: shapes, padding, attention of norm one, filters in a circle."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from longtail.deep.encoders.convolution import Convolution, _Attention, _circled


@pytest.fixture
def encoder() -> Convolution:
    torch.manual_seed(0)
    return Convolution(50, length=8)


def texts(n: int, t: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(n)
    ids = torch.randint(1, 50, (n, t))
    present = torch.arange(t)[None] < torch.randint(1, t + 1, (n, 1))
    return ids, present


def test_vectors_have_the_width_of_the_paper(encoder: Convolution) -> None:
    assert encoder.width == 480 and encoder.pooled(*texts(3, 8), None).shape == (3, 480)


def test_padding_changes_nothing(encoder: Convolution) -> None:
    ids, present = texts(6, 5)
    encoder.eval()
    alone = encoder.pooled(ids, present, None)
    padded = nn.functional.pad(ids, (0, 20), value=7), nn.functional.pad(present, (0, 20))
    torch.testing.assert_close(encoder.pooled(*padded, None), alone)


def test_words_count_by_their_place(encoder: Convolution) -> None:
    ids, present = texts(4, 8)
    encoder.eval()
    forwards = encoder.pooled(ids, torch.ones_like(present), None)
    backwards = encoder.pooled(ids.flip(1), torch.ones_like(present), None)
    assert not torch.allclose(forwards, backwards, atol=1e-3)


def test_no_unit_is_silent_at_the_start(encoder: Convolution) -> None:
    vectors = encoder.train().pooled(*texts(64, 8), None)
    assert (vectors.std(0) > 0.1).all()


def test_one_row_is_encoded_with_what_the_norms_have_learned(encoder: Convolution) -> None:
    encoder.train().pooled(*texts(64, 8), None)
    before = [norm.running_mean.clone() for norm in encoder.norms]
    vector = encoder.pooled(*texts(1, 8), None)
    assert torch.isfinite(vector).all()
    for norm, mean in zip(encoder.norms, before, strict=True):
        torch.testing.assert_close(norm.running_mean, mean)


def test_attention_starts_as_the_identity_and_has_a_norm_of_one() -> None:
    torch.manual_seed(1)
    attention = _Attention(6).train()
    x, y = torch.randn(2, 6, 4), torch.randn(2, 6, 4)
    torch.testing.assert_close(attention(x, y), x)
    for _ in range(200):  # the power method converges
        attention(x, y)
    with torch.no_grad():
        attention.scale.fill_(0.5)
    weight = attention.weight / torch.linalg.matrix_norm(attention.weight, 2)
    wanted = x + 0.5 * (x @ y.transpose(1, 2)) @ (weight @ x)
    torch.testing.assert_close(attention(x, y), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("window", [4, 8, 16])
def test_filters_go_round_in_a_circle(window: int) -> None:
    torch.manual_seed(2)
    one = nn.Conv1d(3, 2, window, stride=4)
    x = torch.randn(1, 3, 40)
    found = one(_circled(x, one))
    assert found.shape == (1, 2, 10)
    for place in range(10):
        first = 4 * place - (window - 4) // 2
        seen = x[0][:, [(first + i) % 40 for i in range(window)]]
        wanted = (one.weight * seen).sum((1, 2)) + one.bias
        torch.testing.assert_close(found[0, :, place], wanted, rtol=1e-4, atol=1e-5)
