import pytest

# The cases aren't tests by their files' names, and shall tell as much as one where they fail.
pytest.register_assert_rewrite("conformance")
