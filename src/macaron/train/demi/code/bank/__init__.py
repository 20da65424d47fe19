"""Small programming tasks of our own: each function's docstring is the request, its body the answer.

The functions are read as text and never called outside the tests, which run every example in their docstrings.
"""
