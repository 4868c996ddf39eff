"""Rankers that read texts: an encoder of ``longtail.deep``, a tokenizer and an output layer.

::

    texts ──► Tokenizer ──► Tokens ──► encoder ──► vectors (n, e) ──► weights of labels ──► TopK
              (features)    (data)     torch, or ONNX Runtime          native, as ``Network``

They take texts or ``Tokens`` wherever other rankers take features, and keep the same contract:
calibration, filters, saving, labels that come later. Training needs the extra ``text`` (torch,
transformers); answering needs it too, or the extra ``onnx``.
"""

from longtail.text.dual_encoder import DualEncoder
from longtail.text.text_network import TextNetwork
from longtail.text.unidec import UniDEC
from longtail.text.xr_transformer import XRTransformer

__all__ = ["DualEncoder", "TextNetwork", "UniDEC", "XRTransformer"]
