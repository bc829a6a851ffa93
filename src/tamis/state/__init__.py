"""Store, log, manifest, snapshot, rollup."""
