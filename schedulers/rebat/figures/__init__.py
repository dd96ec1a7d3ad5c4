"""Pictures, drawn by matplotlib without a display."""
