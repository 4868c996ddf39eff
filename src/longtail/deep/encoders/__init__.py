"""Encoders: from a batch to vectors (b, e).

An encoder is a ``torch.nn.Module`` called with a batch of the kind it reads; it has ``width``, the
size e of its vectors. A new one is a file here; nothing outside it knows the names of its weights.

=================  ==========  ==================================================================
file               reads       what it is
=================  ==========  ==================================================================
``bag``            rows of X   a sum of embeddings and a ReLU: the first layer of ``Network``
``transformer``    Tokens      a text encoder of ``transformers``, pooled to one vector
``average``        Tokens      mean of embeddings and a residual block (Astec)
``convolution``    Tokens      convolutions of three widths over embeddings (InceptionXML)
=================  ==========  ==================================================================
"""
