"""The provider suite asserts like a test module, so pytest must rewrite it like one."""

import pytest

pytest.register_assert_rewrite("tests.agent_loop.llm.provider_suite")
