"""One small protocol per data format."""
