r"""Training: from rows and labels to the layers of a tree.

A level of the tree is one problem: which rows every parent sees (``negatives``), what rows and
labels weigh (``label_weights``, ``missing_labels``), what to minimise and how precisely
(``solver_options``). Children that share a parent share their rows, and go to the core together::

    rows of a parent (from negatives)           children of a parent: blocks of 16 outputs
    +------------------------------+            +-----------------+
    | row 3   row 8   row 9   ...  |  ------>   | w_0 w_1 ... w_15 | ...    one call: level.py
    +------------------------------+            +-----------------+
            \______ a part: a range of children that fits the memory (memory.py, parts.py),
                    which a checkpoint keeps when it is finished (checkpoint.py) ______/

Parts depend on the data and the memory limit alone, never on the number of threads.
"""
