"""The interfaces of other programs, on Longtail's models: ``longtail.compat.omikuji``."""
