"""Networks. One training step is one sentence: an encoder turns a batch into vectors, an output
layer scores labels under an objective, updates itself and hands back the gradient of the vectors,
and autograd takes that through the encoder.

::

    rows of X, Tokens      h (b, e)                      loss, gradient of h
    batches/ ──► encoders/ ─────────► outputs/ ◄── objectives/ ◄── Y, weights of its entries
                 bag                  full           binary (logistic, hinges), softmax,
                 transformer          lean           squared error, length of the error;
                 average              fan_in         corrected for missing labels
                 convolution          pool
    ◄──────────── training/: plan, schedule, trainer, validation, checkpoint, pruning ───────────►

- An *encoder* is a ``torch.nn.Module`` that maps a batch to vectors (b, e). Nothing outside its
  file knows the names of its weights.
- An *output layer* owns its weights, their precision and the state of their optimiser. ``step(h,
  targets, objective, rate)`` goes through the labels in chunks, takes the gradient of h from the
  weights before it changes them, and never holds (b, L) numbers; ``top(h, k)`` answers in chunks.
  What a layer keeps is in ``outputs``: float32 weights and Adam's moments (``full``); weights of
  32, 16 or 8 bits and nothing else (``lean``); f values and the inputs they read (``fan_in``).
  ``OutputPlan`` chooses, ``OutputArrays`` is what remains and answers.
- An *objective* is arithmetic on scores and targets: value, gradient, the bias to start from.
- *training* knows these nouns and nothing of what they are. What is mined, shortlisted or added
  arrives as batches.

torch is imported by the modules of this room only when something is trained or encoded: a trained
``Network`` is four arrays and answers without torch. Rankers that read texts are in
``longtail.text``.
"""

from longtail.deep.network import Network

__all__ = ["Network"]
