"""Training: what turns an encoder, an output layer and an objective into a model.

``Plan`` says how, ``train`` does it. The loop knows batches, vectors, rates and epochs, and nothing
of what encoders or layers are made of.
"""
