"""The embedded engine: llama.cpp's server in a child process of ours, with a fair gate in front."""
