"""Exact group-relative policy updates: status, parameters, counts and gradients, with a proof behind every comparison.

The public names stand in `__init__.pyi`; each is imported when it is first used, so that `import exactgrpo` is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
