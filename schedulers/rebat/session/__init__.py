"""The scheduler's state machine: bytes and sockets stay outside, policies plug in."""
