"""Run folders, read back: listed, looked at and compared."""
