"""A clock that moves only when it is asked, so that times are a matter of the test."""

from dataclasses import dataclass

from tests.doubles.facts import TIME_MS


@dataclass
class SteppingClock:
    """Milliseconds since the epoch; each question moves it on by `step_ms`.

    Attributes:
        failing: What the next question raises instead of an answer; None to answer.
    """

    now_ms: int = TIME_MS
    step_ms: int = 1
    failing: Exception | None = None

    def __call__(self) -> int:
        if self.failing is not None:
            error, self.failing = self.failing, None
            raise error
        self.now_ms += self.step_ms
        return self.now_ms
