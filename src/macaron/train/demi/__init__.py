"""The data of the specialists of `demi`: builders that read registry packages or generate rows from our own banks."""
