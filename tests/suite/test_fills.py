"""Each word of ``fill`` has what makes its arrays."""

import numpy as np
import pytest

from gpubench.suite.fills import FILLERS, FILLS
from gpubench.suite.types import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("word", FILLS)
def test_each_word_makes_an_array_of_the_shape_and_dtype_that_is_asked_for(word, dtype):
    array = FILLERS[word]((3, 5), np.dtype(dtype), np.random.default_rng(1))

    assert (array.shape, array.dtype.name) == ((3, 5), dtype)
