"""Adapters that come and go while the service runs: their document in the store, who follows it, who carries it out."""
