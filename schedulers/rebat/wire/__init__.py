"""Everything between bytes and a session: the codec, the links, recordings, the conversation."""
