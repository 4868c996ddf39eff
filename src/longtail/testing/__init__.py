"""The contract that every ranker keeps, as tests that run on a ranker of your own.

A file ``test_mine.py`` with two things in it, run by pytest::

    from longtail.testing.contract import *

    @pytest.fixture
    def ranker():
        return Mine            # called with parameters by name; makes an unfitted ranker

``answers``, ``filters``, ``inputs``, ``parameters``, ``probabilities``, ``refusals`` and ``saving``
hold the tests, ``problems`` the data they run on. What a ranker does not offer is skipped. pandas
and pytest are needed (the extra ``test``).
"""

__all__: list[str] = []
