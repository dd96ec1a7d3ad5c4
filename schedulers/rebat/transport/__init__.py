"""Bytes over ZeroMQ, and recordings of conversations: thin loops without any knowledge of jobs."""
