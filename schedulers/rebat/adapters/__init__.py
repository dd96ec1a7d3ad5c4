"""rebat's schedulers inside other people's frameworks."""
