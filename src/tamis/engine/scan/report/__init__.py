"""What a scan did, and how that is shown."""
