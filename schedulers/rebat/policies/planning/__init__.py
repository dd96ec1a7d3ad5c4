"""When which queued attempt starts."""
