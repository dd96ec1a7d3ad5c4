# SPDX-License-Identifier: Apache-2.0
"""The handshake of Batsim 5: the first frame of each side.

Batsim sends the length of a text (32 bits) and the text of its option ``-s``. The scheduler replies
with flags (32 bits) and a *hello*, a JSON object that requests features of the simulation.
"""

from __future__ import annotations

import struct

import msgspec

import rebat
from rebat.core.errors import InputError, short
from rebat.wire.batsim5 import opened
from rebat.wire.decisions5 import Unsupported
from rebat.wire.tables5 import Strict

HELLO = "EDCHelloEvent"
BATPROTOCOL = "1.0.0"
"""Version of the protocol library. Batsim 5.0.0-rc2 does not check it."""

_BINARY, _JSON = 1, 2
"""Flags of the hello frame. If both are set, Batsim reads JSON."""

_WORD = struct.Struct("=I")


class Features(Strict):
    """Features of the simulation that a scheduler requests."""

    dynamic_registration: bool = False
    profile_reuse: bool = False
    acknowledge_dynamic_jobs: bool = False
    forward_profiles_on_job_submission: bool = False
    forward_profiles_on_jobs_killed: bool = False
    forward_profiles_on_simulation_begins: bool = False


OURS = Features(
    dynamic_registration=True, profile_reuse=True, forward_profiles_on_job_submission=True
)
"""The features that ``rebat serve`` requests.

Acknowledgements are not needed, because a registered job can be started immediately. Profiles in
the first message are not requested, because Batsim then crashes if a workload has unused profiles.
"""


class HelloCrash(InputError):
    """Error: a hello that makes Batsim 5 crash without a message (segmentation fault)."""


class Hello(Strict):
    """The first message of the scheduler."""

    batprotocol_version: str
    decision_component_name: str = ""
    decision_component_version: str = ""
    decision_component_commit: str | None = None
    requested_simulation_features: Features | None = None


def is_init(data: bytes) -> bool:
    """Return whether a frame is the first frame that Batsim 5 sends."""
    return len(data) >= _WORD.size and _WORD.unpack_from(data)[0] == len(data) - _WORD.size


def encode_init(text: str) -> bytes:
    """Return the first frame of Batsim with this text."""
    data = text.encode()
    return _WORD.pack(len(data)) + data


def decode_init(data: bytes) -> str:
    """Return the text of Batsim's first frame. If it is another frame, raise InputError."""
    if not is_init(data):
        expected = "a length in 4 bytes and a text of this length"
        raise InputError("the data is not the first frame of Batsim 5", expected=expected)
    return data[_WORD.size :].decode(errors="replace")


def encode_hello(features: Features = OURS) -> bytes:
    """Return the scheduler's first frame."""
    requested = {name: True for name in Features.__struct_fields__ if getattr(features, name)}
    hello = {
        "batprotocol_version": BATPROTOCOL,
        "decision_component_name": "rebat",
        "decision_component_version": rebat.__version__,
        "decision_component_commit": "",
        "requested_simulation_features": requested,
    }
    event = {"timestamp": 0.0, "event_type": HELLO, "event": hello}
    return _WORD.pack(_JSON) + msgspec.json.encode({"now": 0.0, "events": [event]})


def decode_hello(data: bytes) -> Features:
    """Return the features that the scheduler's first frame requests.

    Raises
    ------
    InputError
        If Batsim 5 would abort on the frame.
    HelloCrash
        If Batsim 5 would crash.
    """
    if len(data) < _WORD.size:
        raise InputError(
            f"the frame has {len(data)} bytes", expected="4 bytes of flags and a hello"
        )
    flags, content = _WORD.unpack_from(data)[0], data[_WORD.size :]
    if not flags & _JSON:
        expected = f"{_JSON}: JSON; rebat does not read binary messages"
        if flags != _BINARY or content.lstrip()[:1] == b"{":
            raise HelloCrash(f"the flags are {flags}", expected=expected)
        raise Unsupported(f"the flags are {flags}", expected=expected)
    _, events = opened(content)
    if [event.event_type for event in events] != [HELLO]:
        names = ", ".join(short(event.event_type) for event in events) or "no event"
        raise InputError(names, expected=f"exactly one event, {HELLO}")
    try:
        hello = msgspec.convert(events[0].event or {}, Hello, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error), HELLO) from None
    for key in ("decision_component_commit", "requested_simulation_features"):
        if getattr(hello, key) is None:
            raise HelloCrash("is missing", key, "a value: Batsim 5 crashes without it")
    return hello.requested_simulation_features or Features()
