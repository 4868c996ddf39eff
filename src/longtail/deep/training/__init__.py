"""Training: what turns an encoder, an output layer and an objective into a model.

::

    Plan ──► Trainer: epochs ──► Step: h = encoder(batch) ──► output.step(h) ──► gradient of h
             │                                ▲─────────────────────────────────────┘
             ├── schedule     rate of this step
             ├── validation   stop here? keep the best epoch
             ├── pruning      fewer weights, by pruning_schedule
             └── checkpoint   go on from here another time
    cost, output_cost: what all of it will take, before it begins

``Plan`` says how, ``Trainer`` does it. The loop knows batches, vectors, rates and epochs, and
nothing of what encoders or layers are made of.
"""
