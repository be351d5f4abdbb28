"""The goals of `make bench-chat`: what each line measures, its bar and its stretch; and the line as JSON. Pure.

The bars are those of the project's performance page. A line without a bar is reported only. `docs/performance.md`
explains every line; a test keeps the two in step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from training.bench.figures import Figure

REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Limit:
    """`at_most` or `at_least` a number; printed as `<= 5 ms`."""

    number: float
    unit: str = ""
    is_most: bool = True

    def __str__(self) -> str:
        number = f"{self.number:,g}" if self.number < 1_000_000 else f"{self.number:,.0f}"
        text = f"x{number}" if self.unit == "x" else f"{number} {self.unit}".strip()
        return f"{'<=' if self.is_most else '>='} {text}"

    def is_met(self, value: float) -> bool:
        """Whether the value keeps to it."""
        return value <= self.number if self.is_most else value >= self.number


def at_most(number: float, unit: str = "") -> Limit:
    """`<= number unit`."""
    return Limit(number, unit)


def at_least(number: float, unit: str = "") -> Limit:
    """`>= number unit`."""
    return Limit(number, unit, is_most=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """One figure of a goal. `key` names it inside the bench: `G3.p50`."""

    key: str
    what: str
    bar: Limit | None = None
    stretch: Limit | None = None

    @property
    def goal(self) -> str:
        """`G3` of `G3.p50`."""
        return self.key.partition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One measured figure, as it is printed and kept."""

    aim: Aim
    figure: Figure
    note: str = field(default="")

    @property
    def is_met(self) -> bool:
        """Whether the bar holds; what is only reported always does."""
        return self.aim.bar is None or self.aim.bar.is_met(self.figure.value)

    def as_json(self) -> str:
        """The line: goal, what, value, bar, pass, n, interval, and the stretch where there is one."""
        content: dict[str, object] = {
            "goal": self.aim.goal,
            "what": f"{self.aim.what}; {self.note}" if self.note else self.aim.what,
            "value": _rounded(self.figure.value),
            "bar": str(self.aim.bar) if self.aim.bar else REPORTED,
            "pass": self.is_met,
            "n": self.figure.n,
            "interval": [_rounded(self.figure.low), _rounded(self.figure.high)],
        }
        if self.aim.stretch:
            content["stretch"] = str(self.aim.stretch)
        return json.dumps(content)


def _rounded(value: float) -> float:
    """Four digits that mean something."""
    return float(f"{value:.4g}") if abs(value) < 10_000 else round(value)


_AIMS = (
    Aim(key="G1.ping", what="CPU per inbound message (ping: auth, flood limit, validation, answer) by raw ASGI echo",
        bar=at_most(2.0, "x"), stretch=at_most(1.5, "x")),
    Aim(key="G1.invalid", what="the same, a message.send that validation refuses",
        bar=at_most(2.0, "x"), stretch=at_most(1.5, "x")),
    Aim(key="G1.limited", what="the same, a valid message.send beyond the visitor's rate limit (one Redis script)"),
    Aim(key="G1.raw_us", what="CPU of the raw ASGI echo per message, us"),
    Aim(key="G2.echo", what="delay of others' pings while one handler blocks 1 s in sync code, p99 less calm, ms",
        bar=at_most(10, "ms"), stretch=at_most(2, "ms")),
    Aim(key="G2.stored", what="delay of another visitor's message.accepted meanwhile (one database thread), ms"),
    Aim(key="G3.p50", what="added time to first token, one turn, to the hand-over to the output screen, p50, ms",
        bar=at_most(5, "ms"), stretch=at_most(3, "ms")),
    Aim(key="G3.p99", what="the same, p99, ms", bar=at_most(15, "ms")),
    Aim(key="G3.input_screen", what="of it the crisis screen of the visitor's message (encoder process), p50, ms"),
    Aim(key="G3.hold_back", what="hold-back of the output screen: oldest token of a delta, hand-over to page, p50, ms"),
    Aim(key="G3.hold_back_p95", what="the same, p95, ms"),
    Aim(key="G4.p50", what="added time to first token, 60 turns starting together on one core, p50, ms",
        bar=at_most(100, "ms"), stretch=at_most(50, "ms")),
    Aim(key="G4.p99", what="the same, p99, ms", bar=at_most(200, "ms"), stretch=at_most(100, "ms")),
    Aim(key="G4.screened_p50", what="the same with the real encoder on the other core, p50, ms"),
    Aim(key="G4.screened_late", what="of these messages, those whose screen took longer than the product waits, %"),
    Aim(key="G5.rate", what="tokens/s handed over by those of the bare engine, 60 streams at 50/s, one core, %",
        bar=at_least(98, "%"), stretch=at_least(99.5, "%")),
    Aim(key="G6.cpu_us", what="web CPU per relayed token, 60 streams at 50/s, coalesced by the spans, us",
        bar=at_most(110, "us"), stretch=at_most(50, "us")),
    Aim(key="G7.send_path", what="sessions per core at 50 tokens/s, send path (delta to frame) by raw ASGI, %",
        bar=at_least(90, "%"), stretch=at_least(95, "%")),
    Aim(key="G7.whole_turn", what="sessions per core at 50 tokens/s, whole turn (>= 98 % delivered, p99 gap <= 100 ms)",
        bar=at_least(120), stretch=at_least(200)),
    Aim(key="G8.transactions", what="transactions per turn", bar=at_most(2)),
    Aim(key="G8.cpu_ms", what="CPU of a turn's transactions in the database thread, ms",
        bar=at_most(2, "ms"), stretch=at_most(1, "ms")),
    Aim(key="G8.per_token", what="writes that grow with the tokens (a reply of 400 less one of 40)", bar=at_most(0)),
    Aim(key="G8.all_cpu_ms", what="CPU of all database work of a turn, reads and prompt included, ms"),
    Aim(key="G9.per_connection", what="memory per idle authenticated connection, KB",
        bar=at_most(64, "KB"), stretch=at_most(48, "KB")),
    Aim(key="G9.process", what="memory of one web process with 10,000 idle connections, GB",
        bar=at_most(0.6, "GB"), stretch=at_most(0.4, "GB")),
    Aim(key="G10.resume", what="welcome with the running text after a cut, p95, ms",
        bar=at_most(300, "ms"), stretch=at_most(100, "ms")),
    Aim(key="G10.texts", what="texts that are not byte-identical after cuts", bar=at_most(0)),
    Aim(key="G11.dropped", what="Redis away for 2 s: sockets dropped", bar=at_most(0)),
    Aim(key="G11.lost", what="Redis away for 2 s: messages or texts silently lost", bar=at_most(0)),
    Aim(key="G11.again", what="Redis away for 2 s: delivery to another process again after it is back, ms",
        bar=at_most(1000, "ms")),
    Aim(key="G14.llamacpp", what="llamacpp: a LoRA published, served and the pointer flipped, s", bar=at_most(2, "s")),
    Aim(key="G14.llamacpp_failed", what="llamacpp: streams in flight that failed meanwhile", bar=at_most(0)),
    Aim(key="G14.vllm", what="vllm: a LoRA published, served and the pointer flipped, s", bar=at_most(2, "s")),
    Aim(key="G14.vllm_failed", what="vllm: streams in flight that failed meanwhile", bar=at_most(0)),
    Aim(key="G15.pinned", what="8 chats through the product by 8 straight to the engine (one core each), tokens/s, %",
        bar=at_least(97, "%"), stretch=at_least(99, "%")),
    Aim(key="G15.unpinned", what="the same, nothing pinned, %"),
    Aim(key="G15.graded", what="the same, pinned, grading on, %"),
    Aim(key="G15.bare", what="the bare engine on one core, tokens/s"),
    Aim(key="leak.waves", what="memory after wave 4 of 1,000 connections by wave 2", bar=at_most(1.03, "x")),
    Aim(key="idle.open", what="idle sockets of 10,000 that stay open in one process", bar=at_least(10_000)),
    Aim(key="slow.rate", what="tokens/s of 200 normal readers beside 50 slow ones by without them, %",
        bar=at_least(98, "%")),
    Aim(key="slow.gap", what="p99 delay of a delta to the normal readers meanwhile, by without them, ms more"),
)  # fmt: skip
AIMS = {aim.key: aim for aim in _AIMS}
GOALS = tuple(dict.fromkeys(aim.goal for aim in _AIMS))
