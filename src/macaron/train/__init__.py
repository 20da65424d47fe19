"""Training specialists: data, runs, checkpoints. Nothing here imports torch until a run needs it."""
