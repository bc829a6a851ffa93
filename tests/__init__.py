"""Tests mirror the code; what several rooms share (``values``) lies here."""
